package watermill

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-aws/sqs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Order is tested with one subscriber: what ten received in order they hand to the test in an order of their own.
func queueFeatures() tests.Features {
	return tests.Features{Persistent: true, GuaranteedOrder: true, GuaranteedOrderWithSingleSubscriber: true}
}

func queueAttributes() sqs.QueueConfigAttributes {
	return sqs.QueueConfigAttributes{VisibilityTimeout: visibility}
}

// A pub/sub of queues whose URLs are found in the given way, that receives so many messages at once.
func queues(t *testing.T, resolver sqs.QueueUrlResolver, atOnce int32) (message.Publisher, message.Subscriber) {
	t.Helper()
	logger := watermill.NewStdLogger(false, false)
	publisher, err := sqs.NewPublisher(sqs.PublisherConfig{
		AWSConfig: settings(), OptFns: queuesAt(), CreateQueueConfig: queueAttributes(), QueueUrlResolver: resolver,
	}, logger)
	if err != nil {
		t.Fatal(err)
	}
	subscriber, err := sqs.NewSubscriber(sqs.SubscriberConfig{
		AWSConfig: settings(), OptFns: queuesAt(), QueueConfigAttributes: queueAttributes(), QueueUrlResolver: resolver,
		GenerateReceiveMessageInput: func(ctx context.Context, queue sqs.QueueURL) (*awssqs.ReceiveMessageInput, error) {
			input, err := sqs.GenerateReceiveMessageInputDefault(ctx, queue)
			if err == nil {
				input.MaxNumberOfMessages = atOnce
			}
			return input, err
		},
	}, logger)
	if err != nil {
		t.Fatal(err)
	}
	return publisher, subscriber
}

// Each finds its queues by GetQueueUrl and remembers them.
func queuesByName(t *testing.T) (message.Publisher, message.Subscriber) {
	return queues(t, nil, 1)
}

func TestQueues(t *testing.T) {
	t.Parallel()
	tests.TestPubSub(t, queueFeatures(), queuesByName, nil)
}

func TestTenAtOnce(t *testing.T) {
	t.Parallel()
	context := tests.TestContext{TestID: tests.NewTestID(), Features: queueFeatures()}
	tests.TestPublishSubscribe(t, context, func(t *testing.T) (message.Publisher, message.Subscriber) {
		return queues(t, nil, 10)
	})
}

func TestUrlsOfAws(t *testing.T) {
	t.Parallel()
	context := tests.TestContext{TestID: tests.NewTestID(), Features: queueFeatures()}
	tests.TestPublishSubscribe(t, context, func(t *testing.T) (message.Publisher, message.Subscriber) {
		return queues(t, sqs.GenerateQueueUrlResolver{AwsRegion: region, AwsAccountID: account}, 10)
	})
}

func TestUrlsOfOurOwn(t *testing.T) {
	t.Parallel()
	features := queueFeatures()
	features.GenerateTopicFunc = func(context tests.TestContext) string {
		first, _, _ := strings.Cut(os.Getenv("ENDPOINTS"), ",")
		return first + "/" + account + "/" + context.TestID.String()
	}
	context := tests.TestContext{TestID: tests.NewTestID(), Features: features}
	tests.TestPublishSubscribe(t, context, func(t *testing.T) (message.Publisher, message.Subscriber) {
		return queues(t, sqs.TransparentUrlResolver{}, 10)
	})
}

// As services do that are deployed one after the other: the later one's settings differ, and it uses the queue as it is.
func TestQueueOfOtherSettingsIsUsed(t *testing.T) {
	t.Parallel()
	name := watermill.NewUUID()
	for _, seconds := range []string{visibility, "20"} {
		subscriber, err := sqs.NewSubscriber(sqs.SubscriberConfig{
			AWSConfig: settings(), OptFns: queuesAt(),
			QueueConfigAttributes:    sqs.QueueConfigAttributes{VisibilityTimeout: seconds},
			GenerateCreateQueueInput: sqs.GenerateCreateQueueInputDefault, QueueUrlResolver: unknowing{},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := subscriber.SubscribeInitialize(name); err != nil {
			t.Fatal(err)
		}
	}
}

// Never knows whether a queue is there, so that it is created each time.
type unknowing struct{}

func (unknowing) ResolveQueueUrl(
	_ context.Context, of sqs.ResolveQueueUrlParams,
) (sqs.QueueUrlResolverResult, error) {
	return sqs.QueueUrlResolverResult{QueueName: sqs.QueueName(of.Topic)}, nil
}

func TestMissingQueueIsToldAtOnce(t *testing.T) {
	t.Parallel()
	subscriber, err := sqs.NewSubscriber(sqs.SubscriberConfig{
		AWSConfig: settings(), OptFns: queuesAt(), DoNotCreateQueueIfNotExists: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := subscriber.Subscribe(t.Context(), "nobody-made-it"); err == nil || !strings.Contains(err.Error(), "exist") {
		t.Fatalf("it says that the queue does not exist: %v", err)
	}
	publisher, err := sqs.NewPublisher(sqs.PublisherConfig{
		AWSConfig: settings(), OptFns: queuesAt(), DoNotCreateQueueIfNotExists: true,
	}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	err = publisher.Publish("nobody-made-it", message.NewMessage("1", []byte("x")))
	if err == nil || !strings.Contains(err.Error(), "exist") {
		t.Fatalf("it says that the queue does not exist: %v", err)
	}
}
