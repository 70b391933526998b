"""What the calls of a siege are about: queues, topics and groups, and what earlier answers have named.

The names are few and fixed, so the number of queues, topics and groups is bounded however long a siege lasts.
"""

import base64
import json
import re
from collections import defaultdict, deque
from collections.abc import Callable
from random import Random
from typing import Any, Final

from elasticq.engine.actions.queue_attributes import NAMES, READ_ONLY
from elasticq.engine.ordering.partitions import PARTITIONS
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION
from tests.system.siege.values import INTEGERS, TEXTS, spoilt, text, write

OTHER_ACCOUNT: Final = "999999999999"
QUEUES: Final[dict[str, dict[str, str]]] = {
    "plain": {},
    "short": {"VisibilityTimeout": "1"},
    "dead": {},
    "dead.fifo": {"FifoQueue": "true"},
    "fifo.fifo": {"FifoQueue": "true"},
    "content.fifo": {"FifoQueue": "true", "ContentBasedDeduplication": "true"},
    "high.fifo": {
        "FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId",
    },
    "parts.fifo": {"FifoQueue": "true", PARTITIONS: "4"},
    "priority": {"ElasticqOrder": "priority", "ElasticqDefaultPriority": "0"},
    "schedule": {"ElasticqSchedule": "true"},
    "fair": {"ElasticqFairness": "round_robin", "ElasticqMaxInFlightPerGroup": "2"},
    "weighted": {
        "ElasticqFairness": "weighted", "ElasticqGroupSeparator": "/", "ElasticqGroupWeights": '{"a": 3, "a/b": 2}',
    },
    "window": {"ElasticqIdempotencyWindow": "60"},
}  # fmt: skip
TOPICS: Final[dict[str, dict[str, str]]] = {
    "news": {}, "more": {}, "topic.fifo": {"FifoTopic": "true"}, "same.fifo": {"FifoTopic": "true"},
}  # fmt: skip
GROUPS: Final = ("g", "h", "parts", "prefix")
DEAD_LETTERS: Final = {
    "plain": "dead", "short": "dead", "priority": "dead", "fair": "dead", "fifo.fifo": "dead.fifo",
}  # fmt: skip
ODD_NAMES: Final = ("a", "x" * 80, "x" * 75 + ".fifo", "-", "_")
"""Legal names at their bounds, of queues and topics that are made and deleted all the time."""
ODD_SHARE: Final = 0.05
REMEMBERED, NEWEST = 50, 5
LARGE: Final = tuple(
    f'{{"a":[{",".join([value] * (260_000 // len(value + ",")))}]}}' for value in ("1", '"y"', '{"b":"1"}', "[]")
)
"""Messages near the bound of a topic, with many values for a filter to compare."""
LARGE_SHARE: Final = 0.04
LEARNT: Final = {
    "ReceiptHandle": "queue", "MessageId": "queue", "Sequence": "queue", "id": "queue", "receipt": "queue",
    "ConsumerId": "group", "Token": "group", "SubscriptionArn": "topic", "TaskHandle": "", "NextToken": "",
}  # fmt: skip
"""Members of answers that later calls use, and to what they belong."""
_LEARNT: Final = re.compile(rf'["<]({"|".join(LEARNT)})[">](?:\s*:\s*"?)?([^"<,}}\]\s]{{1,4000}})')
READ_CHARS: Final = 65_536
STATEMENT: Final = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sqs:SendMessage", "Resource": "*"}


class World:
    """One worker's knowledge. ``begin`` chooses the account, queue, topic and group that the next call is about.

    spoilt_share: part of the documents in attributes that have something extreme in them.
    """

    def __init__(self, random: Random, accounts: tuple[str, ...] = (DEFAULT_ACCOUNT,), hook: str = "http://h/") -> None:
        self.random = random
        self.accounts = accounts
        self.hook = hook
        self.spoilt_share = 0.5
        self._learnt: defaultdict[tuple[str, ...], deque[str]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
        self.begin()

    def begin(self, action: str = "") -> None:
        """Choose again. action: it gets a queue on which it can succeed; a deletion mostly gets one of ODD_NAMES."""
        self.account = self.random.choice(self.accounts)
        self.queue, self.topic = self.random.choice(list(QUEUES)), self.random.choice(list(TOPICS))
        self.group = self.random.choice(GROUPS)
        if self.random.random() < (0.8 if "elete" in action and "Message" not in action else ODD_SHARE):
            self.queue = self.topic = self.random.choice(ODD_NAMES)
        elif "riorit" in action and self.random.random() < 0.8:
            self.queue = "priority"
        elif "chedule" in action and self.random.random() < 0.8:
            self.queue = "schedule"

    # What answers have named.

    def learn(self, about: tuple[str, str, str, str], answer: bytes) -> None:
        """Remember names of an answer. about: what ``focus`` was when the call was made."""
        account, *scopes = about
        of = dict(zip(("queue", "topic", "group"), scopes, strict=True))
        for name, value in _LEARNT.findall(answer[:READ_CHARS].decode(errors="replace")):
            self._learnt[account, name, of.get(LEARNT[name], "")].append(value)

    @property
    def focus(self) -> tuple[str, str, str, str]:
        return self.account, self.queue, self.topic, self.group

    def known(self, *names: str) -> str:
        """Return something that an answer named, or a text where none did."""
        found = [each for name in names for each in self._all(name)]
        newest = self.random.random() < 0.5
        return self.random.choice(found[-NEWEST:] if newest else found) if found else "1"

    def newest(self, name: str) -> str:
        """Return what the last answer named, a text where none did."""
        found = self._all(name)
        return found[-1] if found else "1"

    def _all(self, name: str) -> deque[str]:
        of = {"queue": self.queue, "topic": self.topic, "group": self.group}
        return self._learnt[self.account, name, of.get(LEARNT[name], "")]

    def number(self, *names: str) -> int:
        found = self.known(*names)
        return int(found) if found.isdigit() and len(found) < 20 else 1

    # Names.

    def queue_arn(self, queue: str = "") -> str:
        return f"arn:aws:sqs:{DEFAULT_REGION}:{self.account}:{queue or self.queue}"

    def topic_arn(self) -> str:
        return f"arn:aws:sns:{DEFAULT_REGION}:{self.account}:{self.topic}"

    def queue_url(self) -> str:
        return self.random.choice(
            (self.queue, f"http://x/{self.account}/{self.queue}", f"/{self.account}/{self.queue}")
        )

    def subscription(self) -> str:
        found = self.known("SubscriptionArn")
        return found if found.startswith("arn:") else f"{self.topic_arn()}:00000000-0000-0000-0000-000000000000"

    def dead_letters(self) -> str:
        return "dead.fifo" if self.queue.endswith(".fifo") else "dead"

    def inner(self) -> str:
        """Return a name of the queue that holds what a subscription's web server is to get."""
        owner, key = f"{self.account}/~topics", self.subscription().rpartition(":")[2]
        of_arn = f"arn:aws:sqs:{DEFAULT_REGION}:{owner}:{key}"
        return self.random.choice((of_arn, f"http://x/{owner}/{key}", f"{owner}/{key}", key))

    def address(self) -> str:
        """Return a URL, ARN or name of something, right, wrong or of somebody else."""
        wrong = self.random.choice(
            (OTHER_ACCOUNT, "", "1", "~topics", "000000000000/~topics", "000000000000/eu-west-1")
        )
        ways: tuple[Callable[[], str], ...] = (
            self.queue_arn, self.topic_arn, self.queue_url, *(self.subscription, self.inner) * 3,
            lambda: f"arn:aws:sqs:{DEFAULT_REGION}:{wrong}:{self.queue}",
            lambda: f"arn:aws:sns:{DEFAULT_REGION}:{wrong}:{self.topic}",
            lambda: f"http://x/{wrong}/{self.queue}",
            lambda: f"arn:aws:sqs:eu-west-1:{self.account}:{self.queue}",
            lambda: "arn:aws:sqs:::", lambda: "arn:aws:sns:::", lambda: "arn", lambda: "arn:" + ":" * 100,
            lambda: self.queue_arn("missing"), lambda: text(self.random), lambda: "x" * self.random.choice((80, 81)),
        )  # fmt: skip
        return self.random.choice(ways)()

    # Values of members.

    def small(self, *values: int) -> int:
        return self.random.choice(values or (0, 1, 2, 5, 10))

    def message(self) -> str:
        if self.random.random() < LARGE_SHARE:
            return self.random.choice(LARGE)
        documents = {"a": [1, "x", {"b": "10.1.1.1"}], "k": None}, {"default": "d", "sqs": "s", "http": "h"}
        return self.random.choice(("m", "x" * 1_000, *map(json.dumps, documents), "\U0001f600"))

    def message_attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in self.random.sample(("a", "b", "k"), self.small(0, 1, 2)):
            found[name] = self.random.choice((
                {"DataType": "String", "StringValue": "v"},
                {"DataType": "Number", "StringValue": str(self.small())},
                {"DataType": "Binary", "BinaryValue": base64.b64encode(b"\0\xff").decode()},
                {"DataType": "String.Array", "StringValue": '["x", 1, null]'},
            ))  # fmt: skip
        if self.random.random() < 0.3:
            name = self.random.choice(("ElasticqPriority", "ElasticqDeliverAt"))
            value = self.random.choice((*INTEGERS, self.time_ms(), *("1e3", "NaN", " 5", "1.5")))
            found[name] = {"DataType": "Number", "StringValue": str(value)}
        return found

    def time_ms(self) -> int:
        """Return a time near the end of 2026, or one that the random numbers of the year hit."""
        return 1_790_000_000_000 + self.random.randrange(-10_000_000, 10_000_000_000)

    def attempt(self) -> str:
        numbers = "/".join(str(self.random.randrange(3)) for _ in range(3))
        return self.random.choice((f"n{self.small(0, 1, 2)}/{numbers}", "once", "n/999999999999999/0/0"))

    def lease(self) -> str:
        return f"n{self.small(0, 1, 2)}/{self.random.randrange(3)}/{self.random.choice(('', '0', '1'))}"

    def handle(self) -> str:
        return f"lease:{self.lease()}" if self.random.random() < 0.1 else self.known("ReceiptHandle", "receipt")

    def endpoint(self) -> str:
        """Return a queue's ARN or, in half of the cases, a URL of the siege's own web server."""
        way = self.random.choice(("ok", "raw", "fail", "slow", "cut", "ok", "raw"))
        return self.random.choice((self.queue_arn(self.random.choice(list(QUEUES))), f"{self.hook}{way}"))

    # Attributes.

    def queue_attribute(self) -> tuple[str, str]:
        """Return name and value of an attribute, in half of the cases one whose value is a JSON document."""
        names = [name for name in SETTABLE if name in DOCUMENTS] if self.random.random() < 0.5 else SETTABLE
        name = self.random.choice(names)
        return name, self.attribute_value(name)

    def topic_attribute(self) -> tuple[str, str]:
        name = self.random.choice(TOPIC_ATTRIBUTES)
        return name, self.attribute_value(name)

    def subscription_attribute(self) -> tuple[str, str]:
        name = self.random.choice(SUBSCRIPTION_ATTRIBUTES)
        return name, self.attribute_value(name)

    def attribute_value(self, name: str) -> str:
        """Return a sound value of an attribute; part of the documents have something extreme in them."""
        documents = DOCUMENTS.get(name)
        if documents is not None:
            document = self.random.choice(documents(self))
            return write(document if self.random.random() >= self.spoilt_share else spoilt(self.random, document))
        return self.random.choice(ATTRIBUTE_VALUES.get(name, ("true", "false", "0", "1", "30", "60", "2048", "a", "")))


SETTABLE: Final = sorted(NAMES - READ_ONLY)
TOPIC_ATTRIBUTES: Final = (
    "DisplayName", "Policy", "DeliveryPolicy", "SignatureVersion", "TracingConfig", "KmsMasterKeyId",
    "MaximumMessageSize", "ContentBasedDeduplication", "FifoThroughputScope", "FifoTopic",
    "HTTPSuccessFeedbackSampleRate", "SQSFailureFeedbackRoleArn", "ArchivePolicy",
)  # fmt: skip
SUBSCRIPTION_ATTRIBUTES: Final = (
    "FilterPolicy", "FilterPolicy", "FilterPolicyScope", "RawMessageDelivery", "RedrivePolicy", "DeliveryPolicy",
    "SubscriptionRoleArn",
)  # fmt: skip
ATTRIBUTE_VALUES: Final[dict[str, tuple[str, ...]]] = {
    "ReceiveMessageWaitTimeSeconds": ("0", "1"),  # a longer wait would idle the workers
    "ElasticqFairness": ("sqs", "round_robin", "weighted", "adaptive"),
    "ElasticqOrder": ("standard", "priority"),
    "DeduplicationScope": ("queue", "messageGroup"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
    "FifoThroughputScope": ("Topic", "MessageGroup"),
    "FilterPolicyScope": ("MessageBody", "MessageAttributes"),
    "SignatureVersion": ("1", "2"),
    "TracingConfig": ("PassThrough", "Active"),
}


PATTERNS: Final[tuple[Callable[[int], Any], ...]] = (
    lambda number: {"prefix": f"x{number}"},
    lambda number: {"numeric": [">", 10**8 + number, "<", 10**8 + number + 1]},
    lambda number: {"equals-ignore-case": f"x{number}"},
    lambda number: {"anything-but": {"suffix": f"x{number}"}},
)
"""Of a filter with nearly as many patterns as it may have."""


def _delivery(world: World) -> list[Any]:
    retry = {"numRetries": world.small(), "minDelayTarget": 1, "maxDelayTarget": 20, "backoffFunction": "linear"}
    throttle = {"maxReceivesPerSecond": world.small()}
    of_topic = {"http": {"defaultHealthyRetryPolicy": retry, "defaultThrottlePolicy": throttle}}
    return [{"healthyRetryPolicy": retry, "throttlePolicy": throttle}, of_topic]


DOCUMENTS: Final[dict[str, Callable[[World], list[Any]]]] = {
    "Policy": lambda world: [{"Version": "2012-10-17", "Statement": [STATEMENT]}],
    "RedrivePolicy": lambda world: [
        {"deadLetterTargetArn": world.queue_arn(world.dead_letters()), "maxReceiveCount": 2}
    ],
    "RedriveAllowPolicy": lambda world: [
        {"redrivePermission": "allowAll"}, {"redrivePermission": "byQueue", "sourceQueueArns": [world.queue_arn()]},
    ],
    "ElasticqGroupWeights": lambda world: [{"a": world.small(1, 2), "b/c": 3}],
    "FilterPolicy": lambda world: [
        {"a": ["x", {"prefix": "v"}, {"numeric": [">", -1.5, "<", 10**9]}]},
        {"k": [{"exists": world.random.random() < 0.5}]},
        {"a": [{"anything-but": ["x", "y"]}], "b": [None, True, 5]},
        {"$or": [{"a": ["x"]}, {"b": [{"wildcard": "*x*y*"}]}]},
        {"a": {"b": {"c": [{"cidr": "10.0.0.0/8"}]}}},
        {f"k{number}": [f"{each}" for each in range(30)] for number in range(5)},
        *({"a": [pattern(number) for number in range(149)]} for pattern in PATTERNS),
    ],
    "DeliveryPolicy": _delivery,
    "DataProtectionPolicy": lambda world: [{"Name": "p", "Version": "2021-06-01", "Statement": []}],
}  # fmt: skip
"""Members and attributes whose value is JSON in a text: by name, sound ones of a world."""

SOUND: Final[dict[str, Callable[[World], Any]]] = {
    "QueueUrl": World.queue_url,
    "QueueName": lambda w: w.queue,
    "QueueNames": lambda w: w.random.sample(list(QUEUES), 2),
    "QueueNamePrefix": lambda w: w.queue[:2],
    "PartitionsOf": lambda w: "parts.fifo",
    "QueueOwnerAWSAccountId": lambda w: w.account,
    "AWSAccountIds": lambda w: [w.random.choice((w.account, OTHER_ACCOUNT))],
    "AWSAccountId": lambda w: [w.random.choice((w.account, OTHER_ACCOUNT))],
    "Actions": lambda w: [w.random.choice(("SendMessage", "ReceiveMessage", "*"))],
    "ActionName": lambda w: [w.random.choice(("Publish", "Subscribe"))],
    "AttributeNames": lambda w: ["All"],
    "MessageSystemAttributeNames": lambda w: ["All"],
    "MessageAttributeNames": lambda w: [w.random.choice(("All", ".*", "a"))],
    "MessageAttributes": World.message_attributes,
    "MessageSystemAttributes": lambda w: {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988"}},
    "MessageBody": World.message,
    "Message": World.message,
    "content": World.message,
    "MessageStructure": lambda w: "json",
    "MessageGroupId": lambda w: w.random.choice(("a", "b", "a/b/c", "a/b", "/", "x" * 128)),
    "group": lambda w: w.random.choice(("a", "b", "a/b/c", "")),
    "MessageDeduplicationId": lambda w: str(w.random.randrange(500)),
    "ReceiveRequestAttemptId": World.attempt,
    "ReceiptHandle": World.handle,
    "receipt": World.handle,
    "Id": lambda w: str(w.random.randrange(10**6)),
    "MessageIds": lambda w: [w.known("MessageId") for _ in range(w.small(1, 2, 3))],
    "ids": lambda w: [w.known("MessageId") for _ in range(w.small(1, 2, 3))],
    "SourceArn": lambda w: w.queue_arn(w.random.choice(("dead", "dead.fifo"))),
    "DestinationArn": World.queue_arn,
    "TaskHandle": lambda w: w.known("TaskHandle"),
    "NextToken": lambda w: w.known("NextToken"),
    "DelaySeconds": lambda w: w.small(0, 0, 1, 2),
    "WaitTimeSeconds": lambda w: w.small(0, 0, 0, 1),
    "VisibilityTimeout": lambda w: w.small(0, 1, 2, 30),
    "MaxNumberOfMessages": lambda w: w.small(1, 5, 10),
    "ElasticqGroup": lambda w: w.group,
    "ElasticqToken": lambda w: w.number("Token"),
    "ElasticqPartition": lambda w: w.small(0, 1, 2, 3),
    "GroupName": lambda w: w.group,
    "GroupNames": lambda w: [w.group],
    "ConsumerId": lambda w: w.known("ConsumerId"),
    "Released": lambda w: [w.number("Token")],
    "Resource": lambda w: w.random.choice((w.queue, "parts.fifo/1")),
    "SessionTimeoutMs": lambda w: w.small(2_000, 10_000),
    "MaxPerConsumer": lambda w: w.small(1, 3),
    "Weight": lambda w: w.small(0, 1, 2),
    "Sequence": lambda w: w.number("Sequence", "id"),
    "States": lambda w: [w.random.choice(("visible", "inflight", "delayed"))],
    "DeliverAt": World.time_ms,
    "deliver_at": World.time_ms,
    "Limit": lambda w: w.small(1, 10, 1_000),
    "Tags": lambda w: {"k": "v"},
    "tags": lambda w: {"k": "v"},
    "metadata": lambda w: {"why": "v"},
    "Metadata": lambda w: {"why": "v"},
    "TagKeys": lambda w: ["k"],
    "Name": lambda w: w.topic,
    "TopicArn": World.topic_arn,
    "TargetArn": World.topic_arn,
    "ResourceArn": World.topic_arn,
    "SubscriptionArn": World.subscription,
    "ReturnSubscriptionArn": lambda w: "true",
    "AuthenticateOnUnsubscribe": lambda w: "true",
    "Token": lambda w: "a" * 288,
    "DataProtectionPolicy": lambda w: w.attribute_value("DataProtectionPolicy"),
    "name": lambda w: w.queue,
    "to": lambda w: w.queue,
    "lease": World.lease,
    "strategy": lambda w: "round_robin",
    "region": lambda w: "",
    "account": lambda w: w.account,
    "elasticq": lambda w: 1,
    "prefix": lambda w: w.queue[:2],
    "queue": lambda w: w.queue,
    "window_s": lambda w: w.small(60, 600, 3_600),
    "from": lambda w: w.known("Sequence", "id"),
    "id": lambda w: str(w.random.randrange(10**6)),
}
"""Members by name, with what makes a value that is probably right; all others get a small value of their type."""

__all__ = ["DOCUMENTS", "QUEUES", "SOUND", "TEXTS", "TOPICS", "World"]
