package watermill

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-aws/sns"
	"github.com/ThreeDotsLabs/watermill-aws/sqs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
	"github.com/aws/aws-sdk-go-v2/aws"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
)

func topicFeatures() tests.Features {
	return tests.Features{Persistent: true, ConsumerGroups: true}
}

// A pub/sub of topics: each subscriber makes a queue named by queueOf, lets the topic send to it and subscribes it.
func topics(
	t *testing.T, resolver sns.TopicResolver, queueOf sns.GenerateSqsQueueNameFn,
) (message.Publisher, message.Subscriber) {
	t.Helper()
	logger := watermill.NewStdLogger(false, false)
	publisher, err := sns.NewPublisher(sns.PublisherConfig{
		AWSConfig: settings(), OptFns: topicsAt(), TopicResolver: resolver,
	}, logger)
	if err != nil {
		t.Fatal(err)
	}
	subscriber, err := sns.NewSubscriber(
		sns.SubscriberConfig{
			AWSConfig: settings(), OptFns: topicsAt(), TopicResolver: resolver, GenerateSqsQueueName: queueOf,
			GenerateSubscribeInput: createFirst,
		},
		sqs.SubscriberConfig{AWSConfig: settings(), OptFns: queuesAt(), QueueConfigAttributes: queueAttributes()},
		logger,
	)
	if err != nil {
		t.Fatal(err)
	}
	return publisher, subscriber
}

// Publishers create topics, subscribers do not, and the tests subscribe first: SNS refuses that, and so do we.
func createFirst(ctx context.Context, of sns.GenerateSubscribeInputParams) (*awssns.SubscribeInput, error) {
	name, err := sns.ExtractTopicNameFromTopicArn(of.SnsTopicArn)
	if err != nil {
		return nil, err
	}
	client := awssns.NewFromConfig(settings(), topicsAt()...)
	if _, err := client.CreateTopic(ctx, &awssns.CreateTopicInput{Name: aws.String(string(name))}); err != nil {
		return nil, err
	}
	return sns.GenerateSubscribeInputDefault(ctx, of)
}

func topicsByName(t *testing.T, queueOf sns.GenerateSqsQueueNameFn) (message.Publisher, message.Subscriber) {
	t.Helper()
	resolver, err := sns.NewGenerateArnTopicResolver(account, region)
	if err != nil {
		t.Fatal(err)
	}
	return topics(t, resolver, queueOf)
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
		return topics(t, sns.TransparentTopicResolver{}, sns.GenerateSqsQueueNameEqualToTopicName)
	})
}
