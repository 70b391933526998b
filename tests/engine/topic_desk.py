"""A desk with topics: creates, subscribes, publishes, delivers what waits."""

import json
from typing import Any

from elasticq.engine.topics import deliveries
from elasticq.engine.writers.contract import Undo
from elasticq.model import topic_commands as t
from elasticq.model.commands import MessageAttributeValue
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION, queue_arn, topic_arn
from elasticq.model.topic_results import PublishBatchResult, PublishResult, SubscribeResult, TopicArnResult
from tests.engine.desk import Desk


def arn(name: str = "news") -> str:
    return topic_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, name)


def arn_of_queue(name: str) -> str:
    return queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, name)


def attribute(value: str | bytes, kind: str = "") -> MessageAttributeValue:
    if isinstance(value, bytes):
        return MessageAttributeValue(kind or "Binary", binary_value=value)
    return MessageAttributeValue(kind or "String", string_value=value)


class TopicDesk(Desk):
    def topic(self, name: str = "news", **attributes: str) -> str:
        """Creates a topic; returns its ARN."""
        given = {"FifoTopic": "true"} if name.endswith(".fifo") else {}
        result = self.do(t.CreateTopic(name=name, attributes=given | attributes))
        assert isinstance(result, TopicArnResult)
        return result.topic_arn

    def fifo(self, name: str) -> str:
        return self.create(name, FifoQueue="true")

    def subscribe(
        self, queue: str = "jobs", topic: str = "news", *, protocol: str = "sqs", endpoint: str = "", **attributes: Any
    ) -> str:
        """Subscribes a queue, or an endpoint; returns the subscription's ARN. Attributes that are no texts are JSON."""
        given = {name: value if isinstance(value, str) else json.dumps(value) for name, value in attributes.items()}
        command = t.Subscribe(arn(topic), protocol, endpoint or arn_of_queue(queue), given, "true")
        result = self.do(command)
        assert isinstance(result, SubscribeResult)
        return result.subscription_arn

    def publish(
        self,
        message: str = "hello",
        *,
        topic: str = "news",
        undo: Undo | None = None,
        invocation: bytes = b"",
        **more: Any,
    ) -> PublishResult:
        result = self.do(t.Publish(topic_arn=arn(topic), message=message, **more), undo=undo, invocation=invocation)
        assert isinstance(result, PublishResult)
        return result

    def publish_batch(self, *entries: t.PublishBatchRequestEntry, topic: str = "news") -> PublishBatchResult:
        result = self.do(t.PublishBatch(arn(topic), list(entries)))
        assert isinstance(result, PublishBatchResult)
        return result

    def bodies(self, queue: str = "jobs") -> list[str]:
        """What a queue holds, in the order of its sequences."""
        contents = self.queue(queue).contents
        return [contents[sequence].body for sequence in sorted(contents)]

    def messages(self, queue: str = "jobs") -> list[str]:
        """The messages in the envelopes that a queue holds."""
        return [json.loads(body)["Message"] for body in self.bodies(queue)]

    def step(self, undo: Undo | None = None) -> deliveries.Step:
        step = deliveries.step(self.state, self.context)
        self.write(step.mutations, undo)
        return step

    def deliver(self) -> int:
        """Delivers all that waits; returns the number of steps."""
        steps = 0
        while deliveries.step(self.state, self.context).mutations:
            self.step()
            steps += 1
        return steps

    def attributes(self, topic: str = "news") -> dict[str, str]:
        found: dict[str, str] = self.do(t.GetTopicAttributes(arn(topic))).attributes  # type: ignore[attr-defined]
        return found

    def attributes_of(self, subscription: str) -> dict[str, str]:
        result = self.do(t.GetSubscriptionAttributes(subscription))
        found: dict[str, str] = result.attributes  # type: ignore[attr-defined]
        return found
