package watermill

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
)

// Run by name only, each beside itself as often as STRESS_TEST_COUNT says, with thousands of messages in each test.

func TestStressOfQueues(t *testing.T) {
	t.Parallel()
	tests.TestPubSubStressTest(t, queueFeatures(), queuesByName, nil)
}

func TestStressOfTopics(t *testing.T) {
	t.Parallel()
	tests.TestPubSubStressTest(t, topicFeatures(), oneQueue, queueOfGroup)
}
