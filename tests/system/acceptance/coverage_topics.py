"""What docs/coverage.md tells of SNS: a call for each action that is answered."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

ACCOUNT = "000000000000"


@dataclass
class TopicWorld:
    """A topic with a queue and a phone subscribed; ``sns``: a client of boto3."""

    sns: Any

    def __post_init__(self) -> None:
        self.name = f"coverage-{uuid4().hex}"
        self.topic = self.sns.create_topic(Name=self.name)["TopicArn"]
        self.queue = f"arn:aws:sqs:us-east-1:{ACCOUNT}:{self.name}"
        self.subscription = self.subscribe("sms", "+15550100")

    def subscribe(self, protocol: str, endpoint: str) -> str:
        answer = self.sns.subscribe(
            TopicArn=self.topic, Protocol=protocol, Endpoint=endpoint, ReturnSubscriptionArn=True
        )
        return str(answer["SubscriptionArn"])


def _entries() -> list[dict[str, str]]:
    return [{"Id": "a", "Message": "m"}]


ANSWERED: dict[str, Callable[[TopicWorld], dict[str, Any]]] = {
    "AddPermission": lambda w: {
        "TopicArn": w.topic, "Label": "l", "AWSAccountId": ["111122223333"], "ActionName": ["Publish"]
    },
    "CheckIfPhoneNumberIsOptedOut": lambda w: {"phoneNumber": "+15550100"},
    "CreateTopic": lambda w: {"Name": f"{w.name}-2", "Attributes": {"DisplayName": "d"}, "Tags": []},
    "DeleteTopic": lambda w: {"TopicArn": w.topic},
    "GetDataProtectionPolicy": lambda w: {"ResourceArn": w.topic},
    "GetSMSAttributes": lambda w: {},
    "GetSMSSandboxAccountStatus": lambda w: {},
    "GetSubscriptionAttributes": lambda w: {"SubscriptionArn": w.subscription},
    "GetTopicAttributes": lambda w: {"TopicArn": w.topic},
    "ListEndpointsByPlatformApplication": lambda w: {"PlatformApplicationArn": "arn"},
    "ListOriginationNumbers": lambda w: {},
    "ListPhoneNumbersOptedOut": lambda w: {},
    "ListPlatformApplications": lambda w: {},
    "ListSMSSandboxPhoneNumbers": lambda w: {},
    "ListSubscriptions": lambda w: {},
    "ListSubscriptionsByTopic": lambda w: {"TopicArn": w.topic},
    "ListTagsForResource": lambda w: {"ResourceArn": w.topic},
    "ListTopics": lambda w: {},
    "Publish": lambda w: {"TopicArn": w.topic, "Message": "m", "Subject": "s"},
    "PublishBatch": lambda w: {"TopicArn": w.topic, "PublishBatchRequestEntries": _entries()},
    "PutDataProtectionPolicy": lambda w: {"ResourceArn": w.topic, "DataProtectionPolicy": "{}"},
    "RemovePermission": lambda w: {"TopicArn": w.topic, "Label": "l"},
    "SetSubscriptionAttributes": lambda w: {
        "SubscriptionArn": w.subscription, "AttributeName": "FilterPolicy", "AttributeValue": '{"a": ["b"]}'
    },
    "SetTopicAttributes": lambda w: {"TopicArn": w.topic, "AttributeName": "DisplayName", "AttributeValue": "d"},
    "Subscribe": lambda w: {"TopicArn": w.topic, "Protocol": "sqs", "Endpoint": w.queue},
    "TagResource": lambda w: {"ResourceArn": w.topic, "Tags": [{"Key": "a", "Value": "b"}]},
    "Unsubscribe": lambda w: {"SubscriptionArn": w.subscription},
    "UntagResource": lambda w: {"ResourceArn": w.topic, "TagKeys": ["a"]},
}  # fmt: skip
BY_TOKEN = "ConfirmSubscription"
"""Answered too, but the token is known to the endpoint alone; tests/http/test_topics.py confirms."""
DIFFERENCES = (
    'In envelopes for queues, `Signature` is `VW5zaWduZWQ=` ("Unsigned") unless `push.sign_queues` is true '
    "([why](topics.md#signatures)).",
    "email, email-json, sms, lambda and firehose are never delivered; their confirmation waits in the server.",
    "application is refused, because no endpoint of mobile push can be created.",
    "The error about a filter policy ends with its reason; AWS appends the policy and a position in it.",
    "ArchivePolicy, ReplayPolicy and ReplayStatus are refused.",
    "An unconfirmed subscription ends after exactly three days.",
    "Rates are not limited.",
)
