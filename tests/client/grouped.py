"""A server with a group of queues, for the tests of consumers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from elasticq.client import Sqs
from elasticq.testing import ElasticQ
from tests.system.cluster.cluster import until

GROUP = "workers"


class Workplace:
    """A server whose group shares out queues named work-0, work-1, ..."""

    def __init__(self, server: ElasticQ, queues: int) -> None:
        self.server = server
        self.sqs = Sqs(server.endpoint_url, server.region, (server.account, "x"))
        self.names = [f"work-{number}" for number in range(queues)]
        for name in self.names:
            self.sqs.create_queue(QueueName=name)
        self.sqs.set_group(GroupName=GROUP, QueueNamePrefix="work-")

    def group(self) -> dict[str, Any]:
        """What the server tells of the group."""
        return dict(self.sqs.describe_groups(GroupNames=[GROUP])["Groups"][0])

    def states(self) -> set[str]:
        """The states of all resources."""
        return {each["State"] for each in self.group()["Resources"]}

    def send(self, *bodies: str, queue: str = "work-0") -> None:
        """One message after another."""
        for body in bodies:
            self.sqs.send_message(QueueUrl=queue, MessageBody=body)

    def visible(self, queue: str = "work-0") -> list[str]:
        """The bodies of messages that can be received."""
        return [each["Body"] for each in self.sqs.peek(QueueUrl=queue, States=["visible"])["Messages"]]


@contextmanager
def workplace(queues: int) -> Iterator[Workplace]:
    """A workplace on a server of its own."""
    with ElasticQ() as server:
        made = Workplace(server, queues)
        yield made
        made.sqs.close()


def holds(group: Any, *names: str) -> Callable[[], bool]:
    """Whether a consumer holds just these."""
    return lambda: set(group.held) == set(names)


def until_holds(group: Any, *names: str) -> None:
    """Wait for that."""
    until(holds(group, *names), f"{names} are held")
