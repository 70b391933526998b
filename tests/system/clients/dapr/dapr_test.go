// Package dapr runs Dapr's own conformance tests of pub/sub against SNS and SQS.
package dapr

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dapr/components-contrib/pubsub/aws/snssqs"
	"github.com/dapr/components-contrib/tests/conformance/pubsub"
	"github.com/dapr/kit/logger"
)

// check runs all of Dapr's pub/sub tests with new topics and a new queue.
// Its settings are those of Dapr's file tests/config/pubsub/aws/snssqs/docker/pubsub.yml, except that messages may be FIFO.
func check(t *testing.T, fifo bool) {
	endpoints := strings.Split(os.Getenv("ENDPOINTS"), ",")
	run := fmt.Sprintf("dapr-%d", time.Now().UnixNano())
	config, err := pubsub.NewTestConfig("aws.snssqs.docker", nil, map[string]any{
		"pubsubName":             "aws-snssqs",
		"testTopicName":          run + "-one",
		"testTopicForBulkSub":    run + "-bulk",
		"testMultiTopic1Name":    run + "-first",
		"testMultiTopic2Name":    run + "-second",
		"waitDurationToPublish":  "100ms",
		"checkInOrderProcessing": fifo,
	})
	if err != nil {
		t.Fatal(err)
	}
	pubsub.ConformanceTests(t, map[string]string{
		"endpoint":                 endpoints[len(endpoints)-1],
		"accessKey":                "000000000000",
		"secretKey":                "secret",
		"region":                   "us-east-1",
		"consumerID":               run,
		"fifo":                     fmt.Sprint(fifo),
		"messageVisibilityTimeout": "10",
		"messageRetryLimit":        "10",
		"messageWaitTimeSeconds":   "1",
		"messageMaxNumber":         "10",
		"concurrencyMode":          "single",
	}, snssqs.NewSnsSqs(logger.NewLogger("dapr")), config)
}

func TestStandard(t *testing.T) { check(t, false) }

func TestFIFO(t *testing.T) { check(t, true) }

// The last line is what the run of the clients shows.
func TestMain(m *testing.M) {
	status := m.Run()
	if status == 0 {
		fmt.Println("dapr: its conformance tests of pub/sub, with standard and with FIFO topics")
	}
	os.Exit(status)
}
