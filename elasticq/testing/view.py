"""A test's view of a server: clients, queues, topics, clock and faults, for one account."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol

from elasticq.extras import how_to_install
from elasticq.testing.calls import Caller, CallFailed
from elasticq.testing.clock import Clock

if TYPE_CHECKING:
    from botocore.client import BaseClient

LOOK_S: Final = 0.01
_COUNTS: Final = {
    "visible": "ApproximateNumberOfMessages",
    "in_flight": "ApproximateNumberOfMessagesNotVisible",
    "delayed": "ApproximateNumberOfMessagesDelayed",
}
_boto3_lock: Final = Lock()


class Callers(Protocol):
    """The target of a view's calls: one server, or the living members of a cluster."""

    def callers(self, account: str) -> list[Caller]:
        """Return a sender of requests for ``account`` to each server. Faults use all; other calls use the first one."""

    @property
    def endpoint_url(self) -> str: ...

    @property
    def region(self) -> str: ...


class View:
    """A server as one account sees it. All calls are for ``account``, and do not see queues of other accounts."""

    def __init__(self, source: Callers, account: str) -> None:
        self._source = source
        self._clients: list[BaseClient] = []
        self.account = account
        self.clock = Clock(self.order)

    @property
    def endpoint_url(self) -> str:
        return self._source.endpoint_url

    @property
    def region(self) -> str:
        return self._source.region

    @property
    def credentials(self) -> dict[str, str]:
        """Return the credentials as arguments of boto3.client. The account number is the access key id."""
        return {"aws_access_key_id": self.account, "aws_secret_access_key": "test"}

    @property
    def environment(self) -> dict[str, str]:
        """Return environment variables that direct any program with an AWS SDK to the server."""
        return {
            "AWS_ENDPOINT_URL_SQS": self.endpoint_url,
            "AWS_ENDPOINT_URL_SNS": self.endpoint_url,
            "AWS_ACCESS_KEY_ID": self.account,
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": self.region,
        }

    def client(self, service: str = "sqs", **settings: Any) -> Any:
        """Return a boto3 client of SQS, or of ``"sns"``. It is closed with this view. settings: of boto3.client."""
        arguments = {"endpoint_url": self.endpoint_url, "region_name": self.region, **self.credentials, **settings}
        with _boto3_lock:  # a boto3 session must not be used by several threads at once
            client: BaseClient = _session().client(service, **arguments)
        self._clients.append(client)
        return client

    def queue(self, name: str) -> Queue:
        """Return a Queue of this name, which need not exist yet."""
        return Queue(self, name)

    def queues(self) -> list[str]:
        """Return the names of this account's queues, sorted."""
        return [url.rpartition("/")[2] for url in self.call("ListQueues").get("QueueUrls", [])]

    def topic(self, name: str) -> Topic:
        """Return a Topic of this name, which need not exist yet."""
        return Topic(self, name)

    def topics(self) -> list[str]:
        """Return the names of this account's topics, sorted."""
        names: list[str] = []
        page: dict[str, str] = {}
        while True:
            answer = self.call_sns("list_topics", **page)
            names += [topic["TopicArn"].rpartition(":")[2] for topic in answer["Topics"]]
            if not answer.get("NextToken"):
                return sorted(names)
            page = {"NextToken": answer["NextToken"]}

    def reset(self) -> int:
        """Delete all queues and topics of this account. Return how many queues it had."""
        return int(self.order("POST", "/_elasticq/reset", account=self.account)["deleted"])

    @contextmanager
    def fault(
        self,
        action: str = "*",
        kind: str = "error503",
        *,
        queue: str = "",
        probability: float = 1.0,
        times: int | None = None,
        delay_ms: int = 0,
        seed: int = 0,
    ) -> Iterator[Fault]:
        """Inject a fault for this account while the ``with`` block runs. docs/testing.md lists the kinds."""
        order = {"action": action, "kind": kind, "queue": queue, "probability": probability, "times": times}
        order |= {"delay_ms": delay_ms, "seed": seed, "account": self.account}
        callers = self._source.callers(self.account)
        numbers = [caller.order("POST", "/_elasticq/faults", **order)["id"] for caller in callers]
        fault = Fault(list(zip(callers, numbers, strict=True)))
        try:
            yield fault
        finally:
            fault.end()

    def close(self) -> None:
        """Close the clients and their connections."""
        while self._clients:
            self._clients.pop().close()

    # --- calls, for the classes below ------------------------------------------------

    def call(self, action: str, **members: Any) -> dict[str, Any]:
        return self._source.callers(self.account)[0].sqs(action, **members)

    def call_sns(self, action: str, **members: Any) -> dict[str, Any]:
        return self._source.callers(self.account)[0].sns(action, **members)

    def order(self, method: str, path: str, **members: Any) -> dict[str, Any]:
        return self._source.callers(self.account)[0].order(method, path, **members)


class Queue:
    """One queue, for checks and preparations of tests. No method receives a message."""

    def __init__(self, view: View, name: str) -> None:
        self._view = view
        self.name = name

    @property
    def url(self) -> str:
        return f"{self._view.endpoint_url}/{self._view.account}/{self.name}"

    @property
    def arn(self) -> str:
        return f"arn:aws:sqs:{self._view.region}:{self._view.account}:{self.name}"

    def create(self, **attributes: Any) -> Queue:
        """Create the queue with attributes under AWS's names (VisibilityTimeout=5). Return the queue.

        A name that ends in .fifo makes it a FIFO queue. A policy may be a dict
        (RedrivePolicy={"deadLetterTargetArn": dead.arn, "maxReceiveCount": 3}).
        """
        if self.name.endswith(".fifo"):
            attributes.setdefault("FifoQueue", "true")
        self._view.call("CreateQueue", QueueName=self.name, Attributes=_texts(attributes))
        return self

    def send(self, body: str, **members: Any) -> str:
        """Send a message. Return its MessageId. members: others of SendMessage."""
        return str(self._view.call("SendMessage", QueueUrl=self.url, MessageBody=body, **members)["MessageId"])

    def attributes(self) -> dict[str, str]:
        return dict(self._view.call("GetQueueAttributes", QueueUrl=self.url, AttributeNames=["All"])["Attributes"])

    def counts(self) -> dict[str, int]:
        """Return how many messages are visible, in_flight and delayed, under these names."""
        attributes = self.attributes()
        return {name: int(attributes[count]) for name, count in _COUNTS.items()}

    def visible(self) -> int:
        return self.counts()["visible"]

    def in_flight(self) -> int:
        """Return the number of messages that were received and are still invisible."""
        return self.counts()["in_flight"]

    def delayed(self) -> int:
        return self.counts()["delayed"]

    def peek(self, limit: int = 100, **filters: Any) -> list[dict[str, Any]]:
        """Return messages in any state, in the order of their sequence. They are not changed.

        filters: FromSequence, MessageGroupId, SentFromMs, SentUntilMs, States.
        """
        return list(self._view.order("POST", "/_elasticq/peek", QueueUrl=self.url, Limit=limit, **filters)["Messages"])

    def wait_until_empty(self, timeout_s: float = 10.0) -> None:
        """Wait until all messages are deleted. Raise TimeoutError, with the counts of the rest, after the timeout."""
        until_s = time.monotonic() + timeout_s
        while any((counts := self.counts()).values()):
            if time.monotonic() >= until_s:
                raise TimeoutError(f"{self.name} is not empty after {timeout_s} s: {counts}")
            time.sleep(LOOK_S)

    def purge(self) -> None:
        self._view.call("PurgeQueue", QueueUrl=self.url)

    def delete(self) -> None:
        self._view.call("DeleteQueue", QueueUrl=self.url)


class Topic:
    """One topic, for checks and preparations of tests."""

    def __init__(self, view: View, name: str) -> None:
        self._view = view
        self.name = name

    @property
    def arn(self) -> str:
        return f"arn:aws:sns:{self._view.region}:{self._view.account}:{self.name}"

    def create(self, **attributes: Any) -> Topic:
        """Create the topic with attributes under AWS's names. Return the topic.

        A name that ends in .fifo makes it a FIFO topic. A policy may be a dict.
        """
        if self.name.endswith(".fifo"):
            attributes.setdefault("FifoTopic", "true")
        self._view.call_sns("create_topic", Name=self.name, Attributes=_texts(attributes))
        return self

    def subscribe(self, endpoint: Queue | str, *, raw: bool = False, **attributes: Any) -> str:
        """Subscribe a queue, or an http or https URL, and return the subscription's ARN.

        raw: RawMessageDelivery; attributes: others under AWS's names. A policy may be a dict
        (FilterPolicy={"kind": ["order"]}).
        """
        protocol, address = ("sqs", endpoint.arn) if isinstance(endpoint, Queue) else _protocol(endpoint)
        if raw:
            attributes["RawMessageDelivery"] = "true"
        answer = self._view.call_sns(
            "subscribe",
            TopicArn=self.arn,
            Protocol=protocol,
            Endpoint=address,
            Attributes=_texts(attributes),
            ReturnSubscriptionArn=True,
        )
        return str(answer["SubscriptionArn"])

    def publish(self, message: str, **members: Any) -> str:
        """Publish a message. Return its MessageId. members: others of Publish."""
        return str(self._view.call_sns("publish", TopicArn=self.arn, Message=message, **members)["MessageId"])

    def attributes(self) -> dict[str, str]:
        return dict(self._view.call_sns("get_topic_attributes", TopicArn=self.arn)["Attributes"])

    def subscriptions(self) -> list[dict[str, str]]:
        """Return the first 100 subscriptions, as ListSubscriptionsByTopic returns them."""
        return list(self._view.call_sns("list_subscriptions_by_topic", TopicArn=self.arn)["Subscriptions"])

    def delete(self) -> None:
        self._view.call_sns("delete_topic", TopicArn=self.arn)


def _texts(attributes: dict[str, Any]) -> dict[str, str]:
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in attributes.items()}


def _protocol(endpoint: str) -> tuple[str, str]:
    """Return protocol and endpoint. The protocol is the scheme of a URL, or the service of an ARN."""
    return (endpoint.split(":")[2] if endpoint.startswith("arn:") else endpoint.partition(":")[0]), endpoint


class Fault:
    """A fault that is active at every member."""

    def __init__(self, placed: list[tuple[Caller, int]]) -> None:
        self._placed = placed
        self._struck = 0

    @property
    def struck(self) -> int:
        """Return how often the fault affected a call. It can be read after its end, too."""
        now = 0
        for caller, number in self._placed:
            rows = caller.order("GET", "/_elasticq/faults")["faults"]
            now += sum(row["struck"] for row in rows if row["id"] == number)
        return self._struck + now

    def end(self) -> None:
        placed, self._placed = self._placed, []
        for caller, number in placed:
            try:
                rows = caller.order("DELETE", "/_elasticq/faults", id=number)["faults"]
            except (OSError, CallFailed):
                continue  # the member has stopped, and its faults with it
            self._struck += sum(row["struck"] for row in rows)


@cache
def _session() -> Any:
    """Return the boto3 session of the process. It caches the model of SQS, which is slow to load."""
    try:
        import boto3
    except ImportError as error:
        raise ImportError(f"clients need boto3: {how_to_install('test')}") from error
    return boto3.session.Session()
