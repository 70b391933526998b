package watermill

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill-aws/sns"
	"github.com/ThreeDotsLabs/watermill-aws/sqs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
	"github.com/aws/aws-sdk-go-v2/aws"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
)

// The suite names topics in ways of its own; those of FIFO topics and of their queues end so.
const suffix = ".fifo"

// Messages of one payload are one group, whose order holds for any number of subscribers.
func fifoFeatures() tests.Features {
	return tests.Features{Persistent: true, ConsumerGroups: true, GuaranteedOrder: true}
}

type fifoTopics struct{}

func (fifoTopics) ResolveTopic(_ context.Context, topic string) (sns.TopicArn, error) {
	return sns.GenerateTopicArn(region, account, topic+suffix)
}

type grouping struct{}

func (grouping) Marshal(topic sns.TopicArn, of *message.Message) *awssns.PublishInput {
	input := sns.DefaultMarshalerUnmarshaler{}.Marshal(topic, of)
	input.MessageGroupId, input.MessageDeduplicationId = aws.String(string(of.Payload)), aws.String(of.UUID)
	return input
}

func fifo(t *testing.T, queueOf sns.GenerateSqsQueueNameFn) (message.Publisher, message.Subscriber) {
	t.Helper()
	return topics(t, kind{
		resolver: fifoTopics{}, marshaler: grouping{}, queueOf: queueOf,
		topic: sns.ConfigAttributes{FifoTopic: "true"},
		queue: sqs.QueueConfigAttributes{VisibilityTimeout: visibility, FifoQueue: true},
	})
}

func fifoQueue(t *testing.T) (message.Publisher, message.Subscriber) {
	return fifo(t, sns.GenerateSqsQueueNameEqualToTopicName)
}

func fifoQueueOfGroup(t *testing.T, group string) (message.Publisher, message.Subscriber) {
	return fifo(t, func(context.Context, sns.TopicArn) (string, error) { return group + suffix, nil })
}

func TestFifoTopics(t *testing.T) {
	t.Parallel()
	tests.TestPubSub(t, fifoFeatures(), fifoQueue, fifoQueueOfGroup)
}
