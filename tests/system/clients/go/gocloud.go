package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/awssnssqs"
)

const published = 100

// The Go CDK: its topic sends in batches, its subscription receives ahead and deletes in batches; each message comes once.
func goCloud(ctx context.Context, one, other *sqs.Client) {
	name := fmt.Sprintf("gocloud-%d", time.Now().UnixNano())
	url := must(one.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName: &name, Attributes: map[string]string{"VisibilityTimeout": "60"},
	})).QueueUrl
	topic := awssnssqs.OpenSQSTopic(ctx, one, aws.ToString(url), nil)
	subscription := awssnssqs.OpenSubscription(ctx, other, aws.ToString(url), &awssnssqs.SubscriptionOptions{
		WaitTime: time.Second,
	})
	sent := make(chan error)
	for number := range published {
		go func() {
			sent <- topic.Send(ctx, &pubsub.Message{
				Body:     []byte(fmt.Sprintf("body %d \x00\xff", number)), // no text: it travels in base64
				Metadata: map[string]string{"a name/with\tmore": "a value"},
			})
		}()
	}
	for range published {
		err := <-sent
		check(err == nil, fmt.Sprintf("each is sent: %v", err))
	}
	seen := map[string]int{}
	for len(seen) < published {
		message := must(subscription.Receive(ctx))
		check(message.Metadata["a name/with\tmore"] == "a value", "metadata come back")
		seen[string(message.Body)]++
		check(seen[string(message.Body)] == 1, "each comes once")
		message.Ack()
	}
	check(topic.Shutdown(ctx) == nil && subscription.Shutdown(ctx) == nil, "both end well")
	must(one.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: url}))
}
