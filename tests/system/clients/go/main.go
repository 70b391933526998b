// The Go SDK v2 as services use it: send, batch, long poll, cancelled long poll, typed errors; the Go CDK (gocloud.go);
// and topics (topics.go).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
	return value
}

func check(is bool, what string) {
	if !is {
		fmt.Fprintln(os.Stderr, "not so:", what)
		os.Exit(1)
	}
}

func clients(ctx context.Context) []*sqs.Client {
	settings := must(config.LoadDefaultConfig(ctx, config.WithRegion("us-east-1")))
	var found []*sqs.Client
	for _, endpoint := range strings.Split(os.Getenv("ENDPOINTS"), ",") {
		found = append(found, sqs.NewFromConfig(settings, func(options *sqs.Options) {
			options.BaseEndpoint = aws.String(endpoint)
		}))
	}
	return found
}

func typedErrors(ctx context.Context, client *sqs.Client) {
	_, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("nobody-made-it")})
	var missing *types.QueueDoesNotExist
	check(errors.As(err, &missing), fmt.Sprintf("a missing queue is QueueDoesNotExist: %v", err))
}

func sendAndReceive(ctx context.Context, one, other *sqs.Client, url *string) {
	entries := []types.SendMessageBatchRequestEntry{}
	for number := range 10 {
		id := fmt.Sprint(number)
		entries = append(entries, types.SendMessageBatchRequestEntry{Id: &id, MessageBody: aws.String("body " + id)})
	}
	sent := must(one.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: url, Entries: entries}))
	check(len(sent.Successful) == 10 && len(sent.Failed) == 0, "ten of a batch are sent")
	seen := map[string]bool{}
	for deadline := time.Now().Add(30 * time.Second); len(seen) < 10 && time.Now().Before(deadline); {
		got := must(other.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: url, MaxNumberOfMessages: 10, WaitTimeSeconds: 5,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		}))
		for _, message := range got.Messages {
			seen[*message.Body] = true
			must(one.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: message.ReceiptHandle}))
		}
	}
	check(len(seen) == 10, "ten are received")
}

func cancelledPollLosesNothing(ctx context.Context, one, other *sqs.Client, url *string) {
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err := other.ReceiveMessage(short, &sqs.ReceiveMessageInput{QueueUrl: url, WaitTimeSeconds: 20})
	check(err != nil, "a cancelled long poll ends with an error")
	must(one.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: url, MessageBody: aws.String("after the cancel"),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"blob": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 255}},
		},
	}))
	got := must(other.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: url, WaitTimeSeconds: 10, MessageAttributeNames: []string{"All"},
	}))
	check(len(got.Messages) == 1, "the message was not handed to the one who left")
	check(string(got.Messages[0].MessageAttributes["blob"].BinaryValue) == "\x00\x01\xff", "binary comes back")
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	all := clients(ctx)
	one, other := all[0], all[len(all)-1]
	typedErrors(ctx, other)
	name := fmt.Sprintf("go-%d", time.Now().UnixNano())
	url := must(one.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name})).QueueUrl
	sendAndReceive(ctx, one, other, url)
	cancelledPollLosesNothing(ctx, one, other, url)
	must(other.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: url}))
	goCloud(ctx, one, other)
	topics(ctx, one, other)
	fmt.Println("go: typed error, batch of 10, cancelled long poll, binary attribute; Go CDK; topics")
}
