package watermill

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-aws/sns"
	"github.com/ThreeDotsLabs/watermill-aws/sqs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
)

func topicFeatures() tests.Features {
	return tests.Features{Persistent: true, ConsumerGroups: true}
}

// How topics and the queues of their subscribers are found, made and written to.
type kind struct {
	resolver  sns.TopicResolver
	marshaler sns.Marshaler
	queueOf   sns.GenerateSqsQueueNameFn
	topic     sns.ConfigAttributes
	queue     sqs.QueueConfigAttributes
}

// A pub/sub of topics: each subscriber makes a queue, lets the topic send to it and subscribes it.
func topics(t *testing.T, of kind) (message.Publisher, message.Subscriber) {
	t.Helper()
	logger := watermill.NewStdLogger(false, false)
	publisher, err := sns.NewPublisher(sns.PublisherConfig{
		AWSConfig: settings(), OptFns: topicsAt(), TopicResolver: of.resolver, CreateTopicConfig: of.topic,
		Marshaler: of.marshaler,
	}, logger)
	if err != nil {
		t.Fatal(err)
	}
	subscriber, err := sns.NewSubscriber(
		sns.SubscriberConfig{
			AWSConfig: settings(), OptFns: topicsAt(), TopicResolver: of.resolver, GenerateSqsQueueName: of.queueOf,
			GenerateSubscribeInput: of.createFirst,
		},
		sqs.SubscriberConfig{AWSConfig: settings(), OptFns: queuesAt(), QueueConfigAttributes: of.queue},
		logger,
	)
	if err != nil {
		t.Fatal(err)
	}
	return publisher, subscriber
}

// Publishers create topics, subscribers do not, and the tests subscribe first: SNS refuses that, and so do we.
func (of kind) createFirst(ctx context.Context, to sns.GenerateSubscribeInputParams) (*awssns.SubscribeInput, error) {
	name, err := sns.ExtractTopicNameFromTopicArn(to.SnsTopicArn)
	if err != nil {
		return nil, err
	}
	input, err := sns.GenerateCreateTopicInputDefault(ctx, name, of.topic)
	if err != nil {
		return nil, err
	}
	if _, err := awssns.NewFromConfig(settings(), topicsAt()...).CreateTopic(ctx, &input); err != nil {
		return nil, err
	}
	return sns.GenerateSubscribeInputDefault(ctx, to)
}

func topicsByName(t *testing.T, queueOf sns.GenerateSqsQueueNameFn) (message.Publisher, message.Subscriber) {
	t.Helper()
	resolver, err := sns.NewGenerateArnTopicResolver(account, region)
	if err != nil {
		t.Fatal(err)
	}
	return topics(t, kind{resolver: resolver, queueOf: queueOf, queue: queueAttributes()})
}

// One queue for each topic.
func oneQueue(t *testing.T) (message.Publisher, message.Subscriber) {
	return topicsByName(t, sns.GenerateSqsQueueNameEqualToTopicName)
}

// One queue for each consumer group.
func queueOfGroup(t *testing.T, group string) (message.Publisher, message.Subscriber) {
	return topicsByName(t, func(context.Context, sns.TopicArn) (string, error) { return group, nil })
}

func TestTopics(t *testing.T) {
	t.Parallel()
	tests.TestPubSub(t, topicFeatures(), oneQueue, queueOfGroup)
}

func TestTopicsByArn(t *testing.T) {
	t.Parallel()
	features := topicFeatures()
	features.GenerateTopicFunc = func(context tests.TestContext) string {
		return "arn:aws:sns:" + region + ":" + account + ":" + context.TestID.String()
	}
	context := tests.TestContext{TestID: tests.NewTestID(), Features: features}
	tests.TestPublishSubscribe(t, context, func(t *testing.T) (message.Publisher, message.Subscriber) {
		return topics(t, kind{
			resolver: sns.TransparentTopicResolver{}, queueOf: sns.GenerateSqsQueueNameEqualToTopicName,
			queue: queueAttributes(),
		})
	})
}

func TestTopicCreatedTwiceIsOne(t *testing.T) {
	t.Parallel()
	publisher, subscriber := oneQueue(t)
	name := watermill.NewUUID()
	arns := map[string]bool{}
	for range 2 {
		arn, err := publisher.(*sns.Publisher).CreateTopic(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		arns[arn] = true
		if err := subscriber.(*sns.Subscriber).SubscribeInitialize(name); err != nil {
			t.Fatal(err)
		}
	}
	if len(arns) != 1 {
		t.Fatalf("one topic has one ARN: %v", arns)
	}
}
