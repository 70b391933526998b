package elasticq;

import com.amazon.sqs.javamessaging.ProviderConfiguration;
import com.amazon.sqs.javamessaging.SQSConnection;
import com.amazon.sqs.javamessaging.SQSConnectionFactory;
import io.awspring.cloud.sqs.annotation.SqsListener;
import io.awspring.cloud.sqs.config.SqsBootstrapConfiguration;
import io.awspring.cloud.sqs.config.SqsMessageListenerContainerFactory;
import io.awspring.cloud.sqs.operations.SqsTemplate;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.BooleanSupplier;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sqs.SqsAsyncClient;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.batchmanager.SqsAsyncBatchManager;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;

/**
 * The SDK's batch manager, Spring Cloud AWS and the JMS library, each with a queue of its own: every message that was
 * sent comes, and comes once. With the argument "rolling" they go on until there is a file "over"; no call may fail.
 */
public final class Libraries {
  private static final int SENT = 40;
  private static final long EACH_MS = 25;
  private static final long PATIENCE_MS = 120_000;
  private static final Path WORK = Path.of(System.getenv("WORK"));
  private static final URI ENDPOINT = URI.create(System.getenv("ENDPOINTS").split(",")[0]);
  private static final Queue<String> ERRORS = new ConcurrentLinkedQueue<>();

  /** What one library was given to send, and what came. */
  private abstract static class Library implements AutoCloseable {
    final String name;
    final String queue;
    final Map<String, Integer> seen = new ConcurrentHashMap<>();
    final List<CompletableFuture<?>> sends = new ArrayList<>();
    int sent;

    Library(String name) {
      this.name = name;
      this.queue = name + "-" + System.nanoTime();
    }

    abstract void send(String body) throws Exception;

    void came(String body) {
      seen.merge(body, 1, Integer::sum);
    }

    void failed(String what, Throwable error) {
      ERRORS.add(name + " " + what + ": " + error);
    }
  }

  /** Sends, receives and deletes in batches that it makes itself. */
  private static final class Batches extends Library {
    private final SqsAsyncClient client = asyncClient();
    private final SqsAsyncBatchManager manager = client.batchManager();
    private final String url;
    private final Thread reader = new Thread(this::read);
    private volatile boolean isOver;

    Batches() throws Exception {
      super("batches");
      Map<QueueAttributeName, String> attributes = Map.of(QueueAttributeName.VISIBILITY_TIMEOUT, "60");
      url = client.createQueue(r -> r.queueName(queue).attributes(attributes)).get().queueUrl();
      reader.start();
    }

    @Override
    void send(String body) {
      sends.add(manager.sendMessage(r -> r.queueUrl(url).messageBody(body)));
    }

    private void read() {
      while (!isOver) {
        try {
          for (Message message : manager.receiveMessage(r -> r.queueUrl(url).waitTimeSeconds(1)).get().messages()) {
            came(message.body());
            // Not waited for: a call waits up to 200 ms for others to share its batch with.
            manager.deleteMessage(r -> r.queueUrl(url).receiptHandle(message.receiptHandle()))
                .whenComplete((done, error) -> { if (error != null) failed("delete", error); });
          }
        } catch (Exception error) {
          failed("receive", error);
        }
      }
    }

    @Override
    public void close() throws Exception {
      isOver = true;
      reader.join();
      manager.close();
      client.close();
    }
  }

  /** Spring Cloud AWS: a template and an annotated listener, which makes the queue. */
  private static final class Spring extends Library {
    private static Spring current;
    private final AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();

    Spring() {
      super("spring");
      current = this;
      System.setProperty("queue", queue);
      context.register(Beans.class);
      context.refresh();
    }

    @Override
    void send(String body) {
      context.getBean(SqsTemplate.class).send(queue, body);
    }

    @Override
    public void close() {
      context.close();
    }
  }

  @Configuration
  @Import(SqsBootstrapConfiguration.class)
  static class Beans {
    @Bean
    SqsAsyncClient sqsAsyncClient() {
      return asyncClient();
    }

    @Bean
    SqsTemplate sqsTemplate(SqsAsyncClient client) {
      return SqsTemplate.newTemplate(client);
    }

    @Bean
    SqsMessageListenerContainerFactory<Object> defaultSqsListenerContainerFactory(SqsAsyncClient client) {
      return SqsMessageListenerContainerFactory.builder().sqsAsyncClient(client).build();
    }

    @Bean
    Listener listener() {
      return new Listener();
    }
  }

  static class Listener {
    @SqsListener(queueNames = "${queue}", pollTimeoutSeconds = "1", messageVisibilitySeconds = "60")
    void came(String body) {
      Spring.current.came(body);
    }
  }

  /** The JMS library: a producer, and a listener that acknowledges by itself. */
  private static final class Jms extends Library {
    private final SqsClient client = SqsClient.builder().endpointOverride(ENDPOINT).region(Region.US_EAST_1).build();
    private final SQSConnection connection;
    private final Session session;
    private final MessageProducer producer;

    Jms() throws Exception {
      super("jms");
      connection = new SQSConnectionFactory(new ProviderConfiguration(), client).createConnection();
      connection.getWrappedAmazonSQSClient().createQueue(queue);
      connection.setExceptionListener(error -> failed("connection", error));
      session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      Session receiving = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      producer = session.createProducer(session.createQueue(queue));
      receiving.createConsumer(receiving.createQueue(queue)).setMessageListener(message -> {
        try {
          came(((TextMessage) message).getText());
        } catch (Exception error) {
          failed("message", error);
        }
      });
      connection.start();
    }

    @Override
    void send(String body) throws Exception {
      producer.send(session.createTextMessage(body));
    }

    @Override
    public void close() throws Exception {
      connection.close();
      client.close();
    }
  }

  public static void main(String[] arguments) throws Exception {
    boolean isRolling = List.of(arguments).contains("rolling");
    StringBuilder told = new StringBuilder();
    try (Batches batches = new Batches(); Spring spring = new Spring(); Jms jms = new Jms()) {
      List<Library> all = List.of(batches, spring, jms);
      List<Thread> senders = new ArrayList<>();
      BooleanSupplier isOver = () -> Files.exists(WORK.resolve("over"));
      for (Library library : all) {
        senders.add(new Thread(() -> sendAll(library, isRolling, isOver)));
      }
      senders.forEach(Thread::start);
      Files.createFile(WORK.resolve("begun"));
      for (Thread sender : senders) {
        sender.join();
      }
      for (Library library : all) {
        judge(library, told);
      }
    }
    if (!ERRORS.isEmpty()) {
      throw new IllegalStateException(ERRORS.size() + " errors, first: " + ERRORS.stream().limit(5).toList());
    }
    System.out.println("java:" + told + ", each came once, no error");
    System.exit(0);
  }

  private static void sendAll(Library library, boolean isRolling, BooleanSupplier isOver) {
    long began = System.currentTimeMillis();
    for (int number = 0; isRolling ? !isOver.getAsBoolean() : number < SENT; number++) {
      try {
        library.send("message " + number);
        Thread.sleep(Math.max(0, began + number * EACH_MS - System.currentTimeMillis())); // a real program's pace
      } catch (Exception error) {
        library.failed("send", error);
      }
      library.sent++;
    }
  }

  private static void judge(Library library, StringBuilder told) throws Exception {
    for (CompletableFuture<?> send : library.sends) {
      try {
        send.get();
      } catch (Exception error) {
        library.failed("send", error);
      }
    }
    int sent = library.sent;
    long deadline = System.currentTimeMillis() + PATIENCE_MS;
    while (library.seen.size() < sent && System.currentTimeMillis() < deadline) {
      Thread.sleep(20); // nothing announces the last message
    }
    if (library.seen.size() < sent) {
      library.failed("receive", new IllegalStateException(library.seen.size() + " of " + sent + " came"));
    }
    long twice = library.seen.values().stream().filter(count -> count > 1).count();
    if (twice > 0) {
      library.failed("receive", new IllegalStateException(twice + " came again"));
    }
    told.append(' ').append(library.name).append(' ').append(sent);
  }

  private static SqsAsyncClient asyncClient() {
    return SqsAsyncClient.builder().endpointOverride(ENDPOINT).region(Region.US_EAST_1).build();
  }

  private Libraries() {}
}
