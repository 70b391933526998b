package elasticq;

import java.net.URI;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sns.SnsClient;
import software.amazon.awssdk.services.sns.model.NotFoundException;
import software.amazon.awssdk.services.sqs.SqsAsyncClient;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;
import software.amazon.awssdk.services.sqs.model.QueueDoesNotExistException;
import software.amazon.awssdk.services.sqs.model.SendMessageBatchRequestEntry;

/** The Java SDK v2 as services use it; it checks every MD5 by itself. */
public final class Job {
  public static void main(String[] arguments) throws Exception {
    List<URI> endpoints = List.of(System.getenv("ENDPOINTS").split(",")).stream().map(URI::create).toList();
    URI last = endpoints.get(endpoints.size() - 1);
    try (SqsClient one = client(endpoints.get(0));
        SqsClient other = client(last);
        SqsAsyncClient async = SqsAsyncClient.builder().endpointOverride(last).region(Region.US_EAST_1).build()) {
      missingQueueIsTyped(other);
      String name = "java-" + System.nanoTime();
      Map<QueueAttributeName, String> attributes = Map.of(QueueAttributeName.VISIBILITY_TIMEOUT, "60");
      String url = one.createQueue(r -> r.queueName(name).attributes(attributes)).queueUrl();
      batch(one, other, url);
      cancelledPollLosesNothing(one, async, url);
      try (SnsClient sns = SnsClient.builder().endpointOverride(last).region(Region.US_EAST_1).build()) {
        topic(sns, one, url, name);
      }
      other.deleteQueue(r -> r.queueUrl(url));
    }
    System.out.println("java: typed error, batch of 10, MD5s, cancelled asynchronous long poll; topic with a filter");
  }

  private static void topic(SnsClient sns, SqsClient sqs, String url, String name) {
    String topic = sns.createTopic(r -> r.name(name)).topicArn();
    String queue =
        sqs.getQueueAttributes(r -> r.queueUrl(url).attributeNames(QueueAttributeName.QUEUE_ARN))
            .attributes().get(QueueAttributeName.QUEUE_ARN);
    Map<String, String> attributes = Map.of("RawMessageDelivery", "true", "FilterPolicy", "{\"kind\": [\"new\"]}");
    String subscription =
        sns.subscribe(r -> r.topicArn(topic).protocol("sqs").endpoint(queue).attributes(attributes)).subscriptionArn();
    check(sns.listSubscriptionsByTopicPaginator(r -> r.topicArn(topic)).subscriptions().stream()
        .anyMatch(each -> each.subscriptionArn().equals(subscription)), "the subscription is listed");
    for (String kind : List.of("old", "new")) {
      var attribute =
          software.amazon.awssdk.services.sns.model.MessageAttributeValue.builder().dataType("String")
              .stringValue(kind).build();
      sns.publish(r -> r.topicArn(topic).message("of kind " + kind).messageAttributes(Map.of("kind", attribute)));
    }
    List<Message> messages =
        sqs.receiveMessage(r -> r.queueUrl(url).maxNumberOfMessages(10).waitTimeSeconds(5).messageAttributeNames("All"))
            .messages();
    check(messages.size() == 1 && messages.get(0).body().equals("of kind new"), "the filter lets one pass");
    check(messages.get(0).messageAttributes().get("kind").stringValue().equals("new"), "attributes come along");
    sns.deleteTopic(r -> r.topicArn(topic));
    try {
      sns.publish(r -> r.topicArn(topic).message("x"));
    } catch (NotFoundException expected) {
      return;
    }
    check(false, "a missing topic is NotFoundException");
  }

  private static SqsClient client(URI endpoint) {
    return SqsClient.builder().endpointOverride(endpoint).region(Region.US_EAST_1).build();
  }

  private static void check(boolean is, String what) {
    if (!is) {
      throw new IllegalStateException("not so: " + what);
    }
  }

  private static void missingQueueIsTyped(SqsClient client) {
    try {
      client.getQueueUrl(r -> r.queueName("nobody-made-it"));
    } catch (QueueDoesNotExistException expected) {
      return;
    }
    check(false, "a missing queue is QueueDoesNotExistException");
  }

  private static void batch(SqsClient one, SqsClient other, String url) {
    MessageAttributeValue colour = MessageAttributeValue.builder().dataType("String").stringValue("green").build();
    List<SendMessageBatchRequestEntry> entries =
        IntStream.range(0, 10)
            .mapToObj(n -> SendMessageBatchRequestEntry.builder().id("e" + n).messageBody("body " + n)
                .messageAttributes(Map.of("colour", colour)).build())
            .toList();
    check(one.sendMessageBatch(r -> r.queueUrl(url).entries(entries)).successful().size() == 10, "ten are sent");
    Set<String> seen = new HashSet<>();
    for (int attempt = 0; attempt < 10 && seen.size() < 10; attempt++) {
      List<Message> messages =
          other.receiveMessage(r -> r.queueUrl(url).maxNumberOfMessages(10).waitTimeSeconds(5)
              .messageAttributeNames("All")).messages();
      for (Message message : messages) {
        check(message.messageAttributes().get("colour").stringValue().equals("green"), "attributes come back");
        seen.add(message.body());
        one.deleteMessage(r -> r.queueUrl(url).receiptHandle(message.receiptHandle()));
      }
    }
    check(seen.size() == 10, "ten are received");
  }

  private static void cancelledPollLosesNothing(SqsClient one, SqsAsyncClient async, String url) throws Exception {
    var left = async.receiveMessage(r -> r.queueUrl(url).waitTimeSeconds(20));
    Thread.sleep(500); // the poll is on its way; nothing tells when it waits
    left.cancel(true);
    var poll = async.receiveMessage(r -> r.queueUrl(url).waitTimeSeconds(20));
    one.sendMessage(r -> r.queueUrl(url).messageBody("after the cancel"));
    check(poll.get(30, TimeUnit.SECONDS).messages().size() == 1, "the message was not handed to the one who left");
  }
}
