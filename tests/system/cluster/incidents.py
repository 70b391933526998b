"""The incidents of which an operator's first page must tell the cause: each can be staged on a cluster, and fixed."""

import json
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from html import unescape
from typing import Any, BinaryIO

from elasticq.engine.tally import OFTEN
from tests.push.receiver import Receiver, receiving
from tests.system.cluster.beside import Beside, beside
from tests.system.cluster.cluster import HOST, Cluster, Member, ask, until
from tests.system.durability.server import pause

NAMED_S = 10
"""The time in which the page must name an incident."""
GONE_S = 30
"""The time in which a fixed incident must be gone, in which a member may have to catch up."""
HELD_S = 3_600
SHORT_S = 2


class Incident(ABC):
    """kind: of its finding; words: what the sentences of the finding contain; ``{}`` is replaced by ``subject``."""

    kind: str
    words: tuple[str, ...]
    subject = ""

    @abstractmethod
    def stage(self, cluster: Cluster) -> None:
        """Bring it about."""

    @abstractmethod
    def fix(self, cluster: Cluster) -> None:
        """Do what the operator would do."""

    def shown_by(self, cluster: Cluster) -> list[Member]:
        """Return the processes whose page must show it."""
        return cluster.running()

    def is_named_by(self, member: Member) -> bool:
        """Return whether the first page of ``member`` names it with its cause, and the API does so, too."""
        found = [each for each in attention(member) if self._is_it(each)]
        if not found:
            return False
        text = page(member)
        return all(each["what"] in text and each["cause"] in text and each["since_ms"] > 0 for each in found)

    def _is_it(self, finding: dict[str, Any]) -> bool:
        told = f"{finding['what']} {finding['cause']} {finding.get('command', '')}"
        return finding["kind"] == self.kind and all(word.format(self.subject) in told for word in self.words)


def attention(member: Member) -> list[dict[str, Any]]:
    """Return the findings of a member's API; none if it does not answer."""
    try:
        reply = ask(member.admin_port, "GET", "/api/attention")
    except OSError:
        return []
    return list(reply.body["findings"]) if reply.status == 200 else []


def page(member: Member) -> str:
    """Return the text of a member's first page."""
    return unescape(str(ask(member.admin_port, "GET", "/").body["text"]))


def check_named(cluster: Cluster, incidents: Iterable[Incident]) -> dict[str, float]:
    """Return how many seconds each incident took to be named on all pages. Fail if one takes longer than NAMED_S."""
    began_s, took_s = time.monotonic(), dict[str, float]()
    waiting = {
        (incident, member.name): (incident, member) for incident in incidents for member in incident.shown_by(cluster)
    }

    def all_named() -> bool:
        for key, (incident, member) in list(waiting.items()):
            if incident.is_named_by(member):
                del waiting[key]
                took_s[type(incident).__name__] = time.monotonic() - began_s
        return not waiting

    try:
        until(all_named, "all are named", NAMED_S)
    except AssertionError as error:
        missing = [f"{type(incident).__name__} at {name}" for incident, name in waiting]
        told = {member.name: attention(member) for _, member in waiting.values()}
        raise AssertionError(f"not named within {NAMED_S} s: {missing}; {json.dumps(told, indent=1)}") from error
    return took_s


def check_gone(cluster: Cluster, incidents: Iterable[Incident]) -> None:
    """Wait until no page shows any of the incidents."""
    known = list(incidents)

    def left() -> list[tuple[str, str]]:
        return [
            (type(incident).__name__, member.name)
            for member in cluster.running()
            for incident in known
            if any(map(incident._is_it, attention(member)))
        ]

    until(lambda: not left(), f"all are gone: {known}", GONE_S)


# --- queues ------------------------------------------------------------------------------


class OfQueue(Incident):
    """An incident of one queue. ``handle``: of the message that its fix deletes."""

    def __init__(self, name: str, **attributes: str) -> None:
        self.subject = name
        self._attributes = attributes
        self._handle = ""

    def make(self, cluster: Cluster, *bodies: str, **more: str) -> Member:
        member = cluster[cluster.names()[-1]]
        member.call("CreateQueue", QueueName=self.subject, Attributes=self._attributes)
        for body in bodies:
            member.call("SendMessage", QueueUrl=self.subject, MessageBody=body, **more)
        return member

    def receive(self, member: Member, visibility_s: int, queue: str = "") -> dict[str, Any]:
        [message] = member.call("ReceiveMessage", QueueUrl=queue or self.subject, VisibilityTimeout=visibility_s)[
            "Messages"
        ]
        self._handle = message["ReceiptHandle"]
        return dict(message)

    def fix(self, cluster: Cluster) -> None:
        cluster.running()[0].call("DeleteMessage", QueueUrl=self.subject, ReceiptHandle=self._handle)


class NoConsumer(OfQueue):
    kind, words = "nobody_fetches", ("{}", "No consumer waits")

    def __init__(self) -> None:
        super().__init__("lonely")

    def stage(self, cluster: Cluster) -> None:
        self.make(cluster, "1", "2")

    def fix(self, cluster: Cluster) -> None:
        """Start a consumer: it empties the queue."""
        for _ in range(2):
            self.receive(cluster.running()[0], 30)
            super().fix(cluster)


class Poison(OfQueue):
    kind, words = "poison_message", ("{}", f"received {OFTEN} times", "no dead-letter queue")

    def __init__(self) -> None:
        super().__init__("poisoned")

    def stage(self, cluster: Cluster) -> None:
        member = self.make(cluster, "poison")
        for _ in range(OFTEN):
            self.receive(member, 0)


class BlockedGroup(OfQueue):
    kind, words = "blocked_group", ("{}", "group customer-7", "2 messages", "not deleted")

    def __init__(self) -> None:
        super().__init__(
            "blocked.fifo", FifoQueue="true", ContentBasedDeduplication="true", VisibilityTimeout=str(SHORT_S)
        )

    def stage(self, cluster: Cluster) -> None:
        member = self.make(cluster, "1", "2", "3", MessageGroupId="customer-7")
        self.receive(member, HELD_S)


class StuckInFlight(OfQueue):
    kind, words = "stuck_in_flight", ("{}", "1 message", "not deleted")

    def __init__(self) -> None:
        super().__init__("stuck", VisibilityTimeout=str(SHORT_S))

    def stage(self, cluster: Cluster) -> None:
        self.receive(self.make(cluster, "1"), HELD_S)


class DeadLetters(OfQueue):
    kind, words = "dead_letters", ("failed-dead", "more arrive", "Consumers of failed", "redrive")

    def __init__(self) -> None:
        target = "arn:aws:sqs:us-east-1:000000000000:failed-dead"
        policy = json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": "1"})
        super().__init__("failed", RedrivePolicy=policy)

    def stage(self, cluster: Cluster) -> None:
        cluster.running()[0].call("CreateQueue", QueueName="failed-dead")
        member = self.make(cluster, "1")
        self.receive(member, 0)
        assert not member.call("ReceiveMessage", QueueUrl=self.subject).get("Messages"), "it is a dead letter"

    def fix(self, cluster: Cluster) -> None:
        self.receive(cluster.running()[0], 30, "failed-dead")
        cluster.running()[0].call("DeleteMessage", QueueUrl="failed-dead", ReceiptHandle=self._handle)


class Purge(OfQueue):
    """Its fix lets the time pass in which a purge is shown, on the members' own clocks."""

    kind, words = "queue_purged", ("{}", "purged by", "127.0.0.1")
    SHOWN_MS = 600_000

    def __init__(self) -> None:
        super().__init__("precious")

    def stage(self, cluster: Cluster) -> None:
        self.make(cluster, "1", "2").call("PurgeQueue", QueueUrl=self.subject)

    def fix(self, cluster: Cluster) -> None:
        for name in cluster.names():
            cluster.turn(name, wall_ahead_ms=self.SHOWN_MS)


class FailingSubscription(Incident):
    kind, words = "subscription_fails", ("topic news", "answered 500")

    def __init__(self, stack: ExitStack) -> None:
        self._receiver: Receiver = stack.enter_context(receiving())

    def stage(self, cluster: Cluster) -> None:
        sns = cluster.running()[0].boto3("sns")
        arn = sns.create_topic(Name="news")["TopicArn"]
        sns.subscribe(TopicArn=arn, Protocol="http", Endpoint=self._receiver.url)
        [asked] = self._receiver.wait_for(1)
        token = asked.envelope["Token"]
        sns.confirm_subscription(TopicArn=arn, Token=token)
        self._receiver.status = 500
        sns.publish(TopicArn=arn, Message="x")

    def fix(self, cluster: Cluster) -> None:
        self._receiver.status = 200


# --- members -----------------------------------------------------------------------------


class OfMember(Incident):
    """An incident of the first follower at its begin."""

    def choose(self, cluster: Cluster) -> Member:
        self.subject = cluster.followers()[0]
        return cluster[self.subject]


class MemberDead(OfMember):
    kind, words = "member_down", ("{} is down", "Nothing listens", "stops all writes")

    def stage(self, cluster: Cluster) -> None:
        self.choose(cluster).kill9()

    def fix(self, cluster: Cluster) -> None:
        cluster.restart(self.subject)
        cluster.wait_ready()


class MemberCutOff(OfMember):
    """Its own page shows it, too."""

    kind, words = "member_cut_off", ("{} is cut off",)

    def stage(self, cluster: Cluster) -> None:
        cluster.isolate(self.choose(cluster).name)

    def fix(self, cluster: Cluster) -> None:
        cluster.heal()
        cluster.wait_ready()


class MemberBehind(OfMember):
    kind, words = "member_behind", ("{} is", "behind the master", "committed entries")
    BYTES_PER_S, BODY_BYTES, SENDS = 60_000, 60_000, 15

    def stage(self, cluster: Cluster) -> None:
        behind = self.choose(cluster)
        master = cluster.master()
        cluster[master].call("CreateQueue", QueueName="large")
        cluster.network.set(master, behind.name, bytes_per_s=self.BYTES_PER_S)
        for number in range(self.SENDS):
            cluster[master].call("SendMessage", QueueUrl="large", MessageBody=str(number) * self.BODY_BYTES)

    def is_named_by(self, member: Member) -> bool:
        """The member itself cannot know. It sees that the master does not answer over the slow link."""
        kinds = {each["kind"] for each in attention(member)}
        return super().is_named_by(member) or (member.name == self.subject and "member_cut_off" in kinds)

    def fix(self, cluster: Cluster) -> None:
        cluster.heal()
        cluster[cluster.master()].call("DeleteQueue", QueueUrl="large")


class ClockOff(OfMember):
    kind, words = "clock_off", ("{} is 3,600 s ahead of the others",)

    def stage(self, cluster: Cluster) -> None:
        cluster.turn(self.choose(cluster).name, wall_ahead_ms=HELD_S * 1_000)

    def fix(self, cluster: Cluster) -> None:
        cluster.turn(self.subject, wall_ahead_ms=0)


class Restarted(OfMember):
    """An incident of a member that runs ``module`` instead of elasticq."""

    module: str

    def stage(self, cluster: Cluster) -> None:
        self._run(cluster, self.choose(cluster), self.module)

    def fix(self, cluster: Cluster) -> None:
        self._run(cluster, cluster[self.subject], "elasticq")

    def _run(self, cluster: Cluster, member: Member, module: str) -> None:
        member.module = module
        cluster.restart(member.name)
        cluster.wait_ready()


class DiskFills(Restarted):
    kind, words = "disk_fills", ("The disk of {} fills", "left for messages")
    module = "tests.system.cluster.small_disk"


class HalfUpgraded(Restarted):
    kind, words = "upgrade_half_done", ("different versions", "{} 99.0.0")
    module = "tests.system.cluster.other_version"


class IncompatibleBuild(Restarted):
    """It gets no link, so it is not among those that must show it; its own /ready tells why."""

    kind, words = "link_refused", ("{}", "different builds", "run the same build on all members")
    module = "tests.system.cluster.other_build"

    def _run(self, cluster: Cluster, member: Member, module: str) -> None:
        member.module = module
        cluster.restart(member.name)
        if module == "elasticq":
            cluster.wait_ready()

    def is_named_by(self, member: Member) -> bool:
        if member.name == self.subject:
            return "same build" in str(ask(member.admin_port, "GET", "/ready").body["text"])
        return super().is_named_by(member)


class ProxyWithoutMaster(Incident):
    """Two of three members end, so nobody is master. The proxy's page and that of the third member tell it."""

    kind, words = "proxy_without_master", ("{} cannot pass calls on", "master")

    def __init__(self, stack: ExitStack, cluster: Cluster) -> None:
        self._proxy: Beside = stack.enter_context(beside(cluster))
        self.subject = self._proxy.name
        until(self._proxy.is_ready, "the proxy is ready")

    def shown_by(self, cluster: Cluster) -> list[Member]:
        return [self._proxy]

    def stage(self, cluster: Cluster) -> None:
        for name in cluster.names()[1:]:
            cluster.kill9(name)

    def fix(self, cluster: Cluster) -> None:
        for name in cluster.names()[1:]:
            cluster.restart(name)
        cluster.wait_ready()
        until(lambda: not attention_of(self._proxy, self.kind), "the proxy has a master again", GONE_S)


def attention_of(member: Member, kind: str) -> list[dict[str, Any]]:
    return [each for each in attention(member) if each["kind"] == kind]


# --- clients -----------------------------------------------------------------------------


class Flood(Incident):
    """A client at 127.0.0.2 sends as fast as it can to one member, which another client uses now and then."""

    kind, words = "client_floods", ("127.0.0.2", "{}", "requests a second")

    BURST = 16

    def __init__(self) -> None:
        self._is_over = threading.Event()
        self._threads: list[threading.Thread] = []

    def stage(self, cluster: Cluster) -> None:
        self.subject = cluster.names()[0]
        port = cluster[self.subject].port
        cluster[self.subject].call("CreateQueue", QueueName="flooded")
        for address, between_s in (("127.0.0.2", 0.0), ("127.0.0.1", 0.5)):
            thread = threading.Thread(target=self._send, args=(port, address, between_s))
            thread.start()
            self._threads.append(thread)

    def _send(self, port: int, address: str, between_s: float) -> None:
        """Send requests, BURST at once, until the incident is over."""
        body = b'{"QueueName": "flooded"}'
        head = f"POST / HTTP/1.1\r\nHost: {HOST}\r\nX-Amz-Target: AmazonSQS.GetQueueUrl\r\n"
        head += f"Content-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n\r\n"
        count = 1 if between_s else self.BURST
        with socket.create_connection((HOST, port), 30, source_address=(address, 0)) as connection:
            answers = connection.makefile("rb")
            while not self._is_over.is_set():
                connection.sendall((head.encode() + body) * count)
                for _ in range(count):
                    _read_answer(answers)
                pause(between_s)

    def fix(self, cluster: Cluster) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()


def _read_answer(answers: BinaryIO) -> None:
    """Read one answer with its body."""
    length = 0
    while line := answers.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    assert answers.read(length), "an answer has a body"


QUEUES: tuple[Callable[[], OfQueue], ...] = (NoConsumer, Poison, BlockedGroup, StuckInFlight, DeadLetters)
