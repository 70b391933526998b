package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/awssnssqs"
)

// SNS by the SDK and by the Go CDK: a filter, an envelope, a typed error.
func topics(ctx context.Context, one, other *sqs.Client) {
	settings := must(config.LoadDefaultConfig(ctx, config.WithRegion("us-east-1")))
	var clients []*sns.Client
	for _, endpoint := range strings.Split(os.Getenv("ENDPOINTS"), ",") {
		clients = append(clients, sns.NewFromConfig(settings, func(options *sns.Options) {
			options.BaseEndpoint = aws.String(endpoint)
		}))
	}
	client, last := clients[0], clients[len(clients)-1]
	name := fmt.Sprintf("go-topic-%d", time.Now().UnixNano())
	topic := must(client.CreateTopic(ctx, &sns.CreateTopicInput{Name: &name})).TopicArn
	url := must(one.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name})).QueueUrl
	arn := must(one.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: url, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn},
	})).Attributes["QueueArn"]
	subscription := must(last.Subscribe(ctx, &sns.SubscribeInput{
		TopicArn: topic, Protocol: aws.String("sqs"), Endpoint: &arn, ReturnSubscriptionArn: true,
		Attributes: map[string]string{"FilterPolicy": `{"kind": ["new"]}`},
	})).SubscriptionArn
	for _, kind := range []string{"old", "new"} {
		must(last.Publish(ctx, &sns.PublishInput{
			TopicArn: topic, Message: aws.String("of kind " + kind), Subject: aws.String("s"),
			MessageAttributes: map[string]types.MessageAttributeValue{
				"kind": {DataType: aws.String("String"), StringValue: &kind},
			},
		}))
	}
	got := must(other.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: url, WaitTimeSeconds: 5, MaxNumberOfMessages: 10,
	})).Messages
	check(len(got) == 1, "the filter lets one pass")
	envelope := map[string]any{}
	check(json.Unmarshal([]byte(*got[0].Body), &envelope) == nil, "the envelope is JSON")
	check(envelope["Message"] == "of kind new" && envelope["Subject"] == "s", "the envelope holds the message")
	must(other.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: got[0].ReceiptHandle}))
	must(client.SetSubscriptionAttributes(ctx, &sns.SetSubscriptionAttributesInput{
		SubscriptionArn: subscription, AttributeName: aws.String("FilterPolicy"), AttributeValue: aws.String(""),
	}))
	goCloudTopic(ctx, last, other, *topic, *url)
	must(client.DeleteTopic(ctx, &sns.DeleteTopicInput{TopicArn: topic}))
	_, err := last.Publish(ctx, &sns.PublishInput{TopicArn: topic, Message: aws.String("x")})
	var missing *types.NotFoundException
	check(errors.As(err, &missing), fmt.Sprintf("a missing topic is NotFoundException: %v", err))
	must(one.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: url}))
}

// What the Go CDK publishes by SNS its subscription of a queue opens, in envelopes.
func goCloudTopic(ctx context.Context, client *sns.Client, queues *sqs.Client, arn, url string) {
	topic := awssnssqs.OpenSNSTopic(ctx, client, arn, nil)
	subscription := awssnssqs.OpenSubscription(ctx, queues, url, &awssnssqs.SubscriptionOptions{WaitTime: time.Second})
	for number := range 20 {
		check(topic.Send(ctx, &pubsub.Message{
			Body: []byte(fmt.Sprintf("body %d \x00\xff", number)), Metadata: map[string]string{"a": "value"},
		}) == nil, "each is published")
	}
	seen := map[string]bool{}
	for len(seen) < 20 {
		message := must(subscription.Receive(ctx))
		check(message.Metadata["a"] == "value", "metadata come back")
		seen[string(message.Body)] = true
		message.Ack()
	}
	check(topic.Shutdown(ctx) == nil && subscription.Shutdown(ctx) == nil, "both end well")
}
