"""The content of docs/coverage.md: a call for each action, a value for each attribute, a cause for each error."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from tests.system.acceptance.raw import Answer, Endpoint

Parameters = dict[str, Any]
ACCOUNT = "000000000000"


@dataclass
class World:
    """A standard and a FIFO queue with a dead-letter queue each, and messages received from them."""

    endpoint: Endpoint
    protocol: str

    def __post_init__(self) -> None:
        self.name = f"coverage-{uuid4().hex}"
        self.dead = self.create(f"{self.name}-dead")
        self.url = self.create(self.name, RedrivePolicy=self.policy(f"{self.name}-dead"), MessageRetentionPeriod="600")
        self.fifo = self.create(f"{self.name}.fifo", FifoQueue="true", ContentBasedDeduplication="true")

    def create(self, name: str, **attributes: str) -> str:
        return str(
            self.endpoint.json("CreateQueue", {"QueueName": name, "Attributes": attributes}).document["QueueUrl"]
        )

    def arn(self, name: str) -> str:
        return f"arn:aws:sqs:us-east-1:{ACCOUNT}:{name}"

    def policy(self, name: str) -> str:
        return json.dumps({"deadLetterTargetArn": self.arn(name), "maxReceiveCount": 2})

    def call(self, action: str, parameters: Parameters) -> Answer:
        return self.endpoint.call(self.protocol, action, parameters)

    def handle(self) -> str:
        """Of a message that was sent and received just now."""
        self.endpoint.json("SendMessage", {"QueueUrl": self.url, "MessageBody": "body"})
        found = self.endpoint.json("ReceiveMessage", {"QueueUrl": self.url, "WaitTimeSeconds": 5}).document["Messages"]
        return str(found[0]["ReceiptHandle"])

    def task(self) -> str:
        """The handle of a slow move task."""
        for _ in range(5):
            self.endpoint.json("SendMessage", {"QueueUrl": self.dead, "MessageBody": "body"})
        parameters = {
            "SourceArn": self.arn(f"{self.name}-dead"),
            "DestinationArn": self.arn(self.name),
            "MaxNumberOfMessagesPerSecond": 1,
        }
        return str(self.endpoint.json("StartMessageMoveTask", parameters).document["TaskHandle"])

    def tagged(self) -> str:
        self.endpoint.json("TagQueue", {"QueueUrl": self.url, "Tags": {"a": "b"}})
        return self.url

    def permitted(self) -> str:
        self.endpoint.json(
            "AddPermission",
            {"QueueUrl": self.url, "Label": "l", "AWSAccountIds": [ACCOUNT], "Actions": ["SendMessage"]},
        )
        return self.url


def _send_entries(count: int) -> list[Parameters]:
    return [{"Id": str(at), "MessageBody": "body"} for at in range(count)]


# Each must be answered with 200 by both protocols.
ACTIONS: dict[str, Callable[[World], Parameters]] = {
    "AddPermission": lambda w: {
        "QueueUrl": w.url, "Label": "l", "AWSAccountIds": [ACCOUNT], "Actions": ["SendMessage", "*"]
    },
    "CancelMessageMoveTask": lambda w: {"TaskHandle": w.task()},
    "ChangeMessageVisibility": lambda w: {"QueueUrl": w.url, "ReceiptHandle": w.handle(), "VisibilityTimeout": 5},
    "ChangeMessageVisibilityBatch": lambda w: {
        "QueueUrl": w.url, "Entries": [{"Id": "a", "ReceiptHandle": w.handle(), "VisibilityTimeout": 5}]
    },
    "CreateQueue": lambda w: {"QueueName": f"{w.name}-new", "Attributes": {"DelaySeconds": "1"}, "tags": {"a": "b"}},
    "DeleteMessage": lambda w: {"QueueUrl": w.url, "ReceiptHandle": w.handle()},
    "DeleteMessageBatch": lambda w: {"QueueUrl": w.url, "Entries": [{"Id": "a", "ReceiptHandle": w.handle()}]},
    "DeleteQueue": lambda w: {"QueueUrl": w.url},
    "GetQueueAttributes": lambda w: {"QueueUrl": w.url, "AttributeNames": ["All"]},
    "GetQueueUrl": lambda w: {"QueueName": w.name, "QueueOwnerAWSAccountId": ACCOUNT},
    "ListDeadLetterSourceQueues": lambda w: {"QueueUrl": w.dead, "MaxResults": 5},
    "ListMessageMoveTasks": lambda w: {"SourceArn": (w.task(), w.arn(f"{w.name}-dead"))[1], "MaxResults": 5},
    "ListQueueTags": lambda w: {"QueueUrl": w.tagged()},
    "ListQueues": lambda w: {"QueueNamePrefix": w.name, "MaxResults": 1},
    "PurgeQueue": lambda w: {"QueueUrl": w.url},
    "ReceiveMessage": lambda w: {
        "QueueUrl": w.fifo, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 0, "VisibilityTimeout": 5,
        "AttributeNames": ["All"], "MessageSystemAttributeNames": ["All"], "MessageAttributeNames": ["All"],
        "ReceiveRequestAttemptId": "attempt",
    },
    "RemovePermission": lambda w: {"QueueUrl": w.permitted(), "Label": "l"},
    "SendMessage": lambda w: {
        "QueueUrl": w.fifo, "MessageBody": "body", "MessageGroupId": "g", "MessageDeduplicationId": "d",
        "MessageAttributes": {"a": {"DataType": "String", "StringValue": "b"}},
        "MessageSystemAttributes": {
            "AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a994272793"}
        },
    },
    "SendMessageBatch": lambda w: {"QueueUrl": w.url, "Entries": _send_entries(10)},
    "SetQueueAttributes": lambda w: {"QueueUrl": w.url, "Attributes": {"VisibilityTimeout": "5"}},
    "StartMessageMoveTask": lambda w: {"SourceArn": w.arn(f"{w.name}-dead"), "DestinationArn": w.arn(w.name)},
    "TagQueue": lambda w: {"QueueUrl": w.url, "Tags": {"a": "b"}},
    "UntagQueue": lambda w: {"QueueUrl": w.tagged(), "TagKeys": ["a"]},
}  # fmt: skip

# Values that must read back as they were set; on a FIFO queue where only those have it. None: AWS's own, read only.
ATTRIBUTES: dict[str, Callable[[World], str] | None] = {
    "ApproximateNumberOfMessages": None,
    "ApproximateNumberOfMessagesDelayed": None,
    "ApproximateNumberOfMessagesNotVisible": None,
    "ContentBasedDeduplication": lambda w: "true",
    "CreatedTimestamp": None,
    "DeduplicationScope": lambda w: "messageGroup",
    "DelaySeconds": lambda w: "7",
    "FifoQueue": lambda w: "true",
    "FifoThroughputLimit": lambda w: "perMessageGroupId",
    "KmsDataKeyReusePeriodSeconds": lambda w: "600",
    "KmsMasterKeyId": lambda w: "alias/mine",
    "LastModifiedTimestamp": None,
    "MaximumMessageSize": lambda w: "2048",
    "MessageRetentionPeriod": lambda w: "61",
    "Policy": lambda w: '{"Version": "2012-10-17",  "Statement": []}',
    "QueueArn": None,
    "ReceiveMessageWaitTimeSeconds": lambda w: "3",
    "RedriveAllowPolicy": lambda w: '{"redrivePermission":  "denyAll"}',
    "RedrivePolicy": lambda w: f'{{"maxReceiveCount": 7,  "deadLetterTargetArn": "{w.arn(w.name + "-dead")}"}}',
    "SqsManagedSseEnabled": lambda w: "false",
    "VisibilityTimeout": lambda w: "8",
}
FIFO_ATTRIBUTES = ("FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit")
TOGETHER = {
    "FifoThroughputLimit": {"DeduplicationScope": "messageGroup"},
    "KmsDataKeyReusePeriodSeconds": {"KmsMasterKeyId": "alias/mine"},
}

Cause = tuple[str, Callable[[World], Parameters]]

# The Query code of each error, and a call that gets it.
ERRORS: dict[str, Cause] = {
    "AWS.SimpleQueueService.BatchEntryIdsNotDistinct": (
        "SendMessageBatch", lambda w: {"QueueUrl": w.url, "Entries": _send_entries(1) * 2}
    ),
    "AWS.SimpleQueueService.BatchRequestTooLong": (
        "SendMessageBatch",
        lambda w: {"QueueUrl": w.url, "Entries": [{"Id": i, "MessageBody": "x" * 600_000} for i in "ab"]},
    ),
    "AWS.SimpleQueueService.EmptyBatchRequest": ("SendMessageBatch", lambda w: {"QueueUrl": w.url, "Entries": []}),
    "AWS.SimpleQueueService.InvalidBatchEntryId": (
        "SendMessageBatch", lambda w: {"QueueUrl": w.url, "Entries": [{"Id": "a b", "MessageBody": "x"}]}
    ),
    "AWS.SimpleQueueService.NonExistentQueue": ("PurgeQueue", lambda w: {"QueueUrl": w.url + "-none"}),
    "AWS.SimpleQueueService.TooManyEntriesInBatchRequest": (
        "SendMessageBatch", lambda w: {"QueueUrl": w.url, "Entries": _send_entries(11)}
    ),
    "InvalidAttributeName": ("GetQueueAttributes", lambda w: {"QueueUrl": w.url, "AttributeNames": ["Colour"]}),
    "InvalidAttributeValue": (
        "SetQueueAttributes", lambda w: {"QueueUrl": w.url, "Attributes": {"DelaySeconds": "901"}}
    ),
    "InvalidMessageContents": ("SendMessage", lambda w: {"QueueUrl": w.url, "MessageBody": "\u0001"}),
    "InvalidParameterValue": ("ReceiveMessage", lambda w: {"QueueUrl": w.url, "MaxNumberOfMessages": 11}),
    "MissingParameter": ("SendMessage", lambda w: {"QueueUrl": w.url}),
    "OverLimit": (
        "SetQueueAttributes",
        lambda w: {"QueueUrl": w.url, "Attributes": {"Policy": json.dumps({"Id": "x" * 8_192, "Statement": []})}},
    ),
    "QueueAlreadyExists": ("CreateQueue", lambda w: {"QueueName": w.name, "Attributes": {"DelaySeconds": "9"}}),
    "ReceiptHandleIsInvalid": ("DeleteMessage", lambda w: {"QueueUrl": w.url, "ReceiptHandle": "garbage"}),
    "ResourceNotFoundException": ("ListMessageMoveTasks", lambda w: {"SourceArn": w.arn("none")}),
}  # fmt: skip

ELSEWHERE = {
    "AWS.SimpleQueueService.PurgeQueueInProgress": "only with `sixty_second_rules`",
    "AWS.SimpleQueueService.QueueDeletedRecently": "only with `sixty_second_rules`",
    "RequestThrottled": "the bound of remembered SDK calls is reached",
}
NEVER = {
    "AWS.SimpleQueueService.MessageNotInflight": "AWS and elasticq answer InvalidParameterValue instead",
    "AWS.SimpleQueueService.UnsupportedOperation": "everything is supported",
    "InvalidAddress": "a QueueUrl that names no queue is a QueueDoesNotExist",
    "InvalidIdFormat": "deprecated in the model; ReceiptHandleIsInvalid instead",
    "InvalidSecurity": "HTTP is allowed",
    "KMS.*": "there is no key service; any key id is stored",
}

DIFFERENCES = (
    "Counters (`ApproximateNumberOf...`) are exact, but expired dead letters may count for a while after a restart.",
    "A short poll finds every message; AWS may miss some of a small queue.",
    "Changes of attributes, deletes and purges act at once; AWS takes up to a minute (retention: 15).",
    "The two 60-second rules (purge again, create after delete) are off unless `sixty_second_rules` is on.",
    "There are no call rates: FIFO's 300 calls a second, tagging's 30.",
    "KMS keys are stored and read back, but encrypt nothing and cause no errors.",
    "`NextToken` and receipt handles have their own form: 56 characters for a handle.",
    "Tags beyond 50 are refused; AWS documents the number as advice.",
    "The texts are ours for: bad tags, bad RedriveAllowPolicy, a source that the dead-letter queue does not allow, too "
    "many principals or conditions in a policy.",
    "A QueueUrl does not name its region: an unsigned call reaches the queues of node.region only.",
    "A delete with the handle of an earlier receive removes a standard queue's message unless a later receive has it "
    "in flight; AWS promises neither.",
    "A change of visibility after the timeout succeeds and leaves the message visible; AWS's effect is not recorded.",
    "A Query request with `Accept: application/json` gets JSON; the form is recorded from AWS for ListQueues, "
    "GetQueueAttributes, ReceiveMessage and errors, and the same for the others.",
    "A browser's unsigned GET can only read (setting `csrf`).",
    "Creating a queue again with other tags is refused, as users report of AWS; without tags it is not.",
    "Without its dead-letter queue, a source keeps its messages and delivers them further.",
    "maxReceiveCount counts the receives of its own queue, also in a chain of dead-letter queues "
    "(`ApproximateReceiveCount` counts all).",
    "A move task without a rate moves up to 10,000 messages a second; AWS chooses at most 500.",
    "A move task skips messages in flight or delayed, and those sent after its start.",
    "A move task that ran for 36 hours is FAILED with the reason `TaskTimedOut`; AWS's reason is not known.",
    "After a restart or failover, messages whose visibility timeout ended meanwhile stay invisible a little longer, so "
    "consumers can extend it.",
    "AWSTraceHeader has at most 1,024 bytes, RedrivePolicy and RedriveAllowPolicy 8,192, integers 32 bits, a request "
    "without messages 262,144 bytes. Far longer ids, names and lists than AWS's fail the whole call, also in entries "
    "of a batch. AWS's bounds are not known.",
    "Extensions, only on request: `ElasticqPageSize`, `ElasticqIdempotencyWindow`, peeks, priority queues, fair "
    "shares, scheduled messages, partitions of FIFO queues ([client](client.md)), consumer groups with their fences.",
)
