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
