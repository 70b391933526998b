package elasticq;

import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.camel.CamelContext;
import org.apache.camel.ProducerTemplate;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.aws2.sns.Sns2Constants;
import org.apache.camel.component.aws2.sqs.Sqs2Constants;
import org.apache.camel.impl.DefaultCamelContext;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sns.SnsClient;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;

/**
 * Apache Camel's components aws2-sqs and aws2-sns, which make their queues and topics themselves. Messages go through a
 * standard queue, a FIFO queue, and a topic to a queue. A message that fails comes again after its visibility timeout.
 * With the argument "rolling" they go on until there is a file "over"; no call may fail, and each message comes once.
 */
public final class Camel {
  private static final int SENT = 40;
  private static final long EACH_MS = 50;
  private static final long PATIENCE_MS = 120_000;
  private static final String RUN = "camel-" + System.nanoTime();
  private static final Path WORK = Path.of(System.getenv("WORK"));
  private static final String[] ENDPOINTS = System.getenv("ENDPOINTS").split(",");
  private static final Queue<String> ERRORS = new ConcurrentLinkedQueue<>();
  private static final Map<String, Map<String, Integer>> SEEN = new ConcurrentHashMap<>();

  private static URI last() {
    return URI.create(ENDPOINTS[ENDPOINTS.length - 1]);
  }

  private static String queue(String name, String more) {
    return "aws2-sqs://" + RUN + name + "?amazonSQSClient=#sqs&autoCreateQueue=true" + more;
  }

  private static final class Routes extends RouteBuilder {
    private final String arn;

    Routes(String arn) {
      this.arn = arn;
    }

    @Override
    public void configure() {
      onException(Exception.class).process(exchange -> {
        Exception error = exchange.getProperty(org.apache.camel.Exchange.EXCEPTION_CAUGHT, Exception.class);
        if (!"as it should".equals(error.getMessage())) {
          ERRORS.add(String.valueOf(error));
        }
      });
      String polls = "&waitTimeSeconds=2&maxMessagesPerPoll=10&extendMessageVisibility=true&visibilityTimeout=60";
      from(queue("", polls + "&concurrentConsumers=2")).process(exchange -> came("queue", exchange));
      from(queue(".fifo", polls)).process(exchange -> came("fifo", exchange));
      from("aws2-sqs://" + RUN + "-topic?amazonSQSClient=#sqs" + polls).process(exchange -> came("topic", exchange));
      from("aws2-sqs://" + RUN + "-failing?amazonSQSClient=#sqs&autoCreateQueue=true&visibilityTimeout=1&waitTimeSeconds=2")
          .process(exchange -> {
            came("failing", exchange);
            if (SEEN.get("failing").size() == 1 && SEEN.get("failing").containsValue(1)) {
              throw new IllegalStateException("as it should");
            }
          });
      from("direct:queue").to(queue("", ""));
      from("direct:batch").setHeader(Sqs2Constants.SQS_OPERATION, constant("sendBatchMessage")).to(queue("", ""));
      from("direct:fifo").to(queue(".fifo", "&messageGroupIdStrategy=useConstant&messageDeduplicationIdStrategy=useExchangeId"));
      from("direct:topic").setHeader(Sns2Constants.SUBJECT, constant("a subject"))
          .to("aws2-sns://" + RUN + "?amazonSNSClient=#sns&autoCreateTopic=true&subscribeSNStoSQS=true&queueArn=" + arn);
      from("direct:failing").to(queue("-failing", ""));
    }

    private static void came(String what, org.apache.camel.Exchange exchange) {
      SEEN.get(what).merge(exchange.getMessage().getBody(String.class), 1, Integer::sum);
    }
  }

  public static void main(String[] arguments) throws Exception {
    boolean isRolling = List.of(arguments).contains("rolling");
    List<String> ways = List.of("queue", "fifo", "topic");
    for (String name : List.of("queue", "fifo", "topic", "failing")) {
      SEEN.put(name, new ConcurrentHashMap<>());
    }
    SqsClient sqs = SqsClient.builder().endpointOverride(last()).region(Region.US_EAST_1).build();
    SnsClient sns = SnsClient.builder().endpointOverride(URI.create(ENDPOINTS[0])).region(Region.US_EAST_1).build();
    String url = sqs.createQueue(r -> r.queueName(RUN + "-topic")
        .attributes(Map.of(QueueAttributeName.VISIBILITY_TIMEOUT, "60"))).queueUrl();
    String arn = sqs.getQueueAttributes(r -> r.queueUrl(url).attributeNames(QueueAttributeName.QUEUE_ARN))
        .attributes().get(QueueAttributeName.QUEUE_ARN);
    int sent = 0;
    int batch = 0;
    try (CamelContext context = new DefaultCamelContext()) {
      context.getRegistry().bind("sqs", sqs);
      context.getRegistry().bind("sns", sns);
      context.addRoutes(new Routes(arn));
      context.start();
      ProducerTemplate template = context.createProducerTemplate();
      Files.createFile(WORK.resolve("begun"));
      long began = System.currentTimeMillis();
      while (isRolling ? !Files.exists(WORK.resolve("over")) : sent < SENT) {
        for (String way : ways) {
          try {
            template.sendBody("direct:" + way, "message " + sent);
          } catch (Exception error) {
            ERRORS.add(way + " " + sent + ": " + error.getCause());
          }
        }
        sent++;
        Thread.sleep(Math.max(0, began + sent * EACH_MS - System.currentTimeMillis())); // a real program's pace
      }
      if (!isRolling) {
        batch = 10;
        template.sendBody("direct:batch", java.util.stream.IntStream.range(0, batch).mapToObj(n -> "batch " + n).toList());
        template.sendBody("direct:failing", "failing");
        await("failing", 1, 2);
      }
      await("queue", sent + batch, 1);
      await("fifo", sent, 1);
      await("topic", sent, 1);
    }
    if (!ERRORS.isEmpty()) {
      throw new IllegalStateException(ERRORS.size() + " errors, first: " + ERRORS.stream().limit(5).toList());
    }
    System.out.println("camel: " + sent + " messages through each of a queue, a FIFO queue and a topic, no error");
    System.exit(0);
  }

  /** Waits until so many bodies came, each so many times. */
  private static void await(String what, int bodies, int times) throws Exception {
    Map<String, Integer> seen = SEEN.get(what);
    long deadline = System.currentTimeMillis() + PATIENCE_MS;
    while ((seen.size() < bodies || times > 1 && !seen.containsValue(times)) && System.currentTimeMillis() < deadline) {
      Thread.sleep(20); // nothing announces the last message
    }
    if (seen.size() != bodies || seen.values().stream().anyMatch(count -> count != times)) {
      throw new IllegalStateException(what + ": of " + bodies + " came, as often: " + seen + " " + ERRORS);
    }
  }

  private Camel() {}
}
