"""Longest turns of the event loop when the state is at its bounds: a million messages, 100,000 queues and so on.

The server runs in a thread of this process. Each case sends one request or waits for background work. What counts is
the CPU time of the loop's thread between two calls of ``select``, because no other request is served meanwhile. "work"
is the longest such turn of background work within a second after the answer. The goal is 20 ms; only ``--limit`` makes
the program check a bound.
"""

import argparse
import asyncio
import gc
import json
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from elasticq import BUILD
from elasticq.admin.app import make_app
from elasticq.model import commands as c
from elasticq.model import group_commands as g
from elasticq.model import topic_commands as t
from elasticq.model.commands import Call, Command
from elasticq.model.extensions import AdvanceClock, DeleteAllQueues
from elasticq.model.group_results import GroupJoinedResult, GroupViewResult
from elasticq.model.results import Result
from elasticq.server import collector
from elasticq.server.events import EventKeeper
from elasticq.server.life import make_context
from elasticq.server.settings import load
from elasticq.server.view import View
from elasticq.testing.cluster import Cluster
from elasticq.testing.member import EmbeddedMember, LoopThread

ACCOUNT: Final = "000000000000"
GOAL_MS: Final = 20.0
WORK_S: Final = 1.0
BATCH: Final = 1_000
DAY_MS: Final = 86_400_000
JSON: Final = "Content-Type: application/x-amz-json-1.0\r\n"
FORM: Final = "Content-Type: application/x-www-form-urlencoded\r\n"


class Turns:
    """The longest turn of each thread that runs a loop, in CPU time. A turn lasts from one ``select`` to the next."""

    def __init__(self) -> None:
        self.longest_s: dict[int, float] = {}
        self.longest_collection_s = 0.0
        self._began_s: dict[int, float] = {}
        self._collection_began_s = 0.0

    def watch(self) -> None:
        """Time the turns of every loop of asyncio in this process from now on."""
        sys.modules["uvloop"] = None  # type: ignore[assignment]
        plain = selectors.EpollSelector.select

        def timed(selector: selectors.EpollSelector, timeout: float | None = None) -> Any:
            thread, now_s = threading.get_ident(), time.thread_time()
            began_s = self._began_s.get(thread)
            if began_s is not None:
                self.longest_s[thread] = max(self.longest_s.get(thread, 0.0), now_s - began_s)
            found = plain(selector, timeout)
            self._began_s[thread] = time.thread_time()
            return found

        selectors.EpollSelector.select = timed  # type: ignore[method-assign]
        gc.callbacks.append(self._collected)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collection_began_s = time.thread_time()
        else:
            self.longest_collection_s = max(self.longest_collection_s, time.thread_time() - self._collection_began_s)

    def take_ms(self) -> float:
        """Return the longest turn of any loop since the last call."""
        longest_s, self.longest_s = max(self.longest_s.values(), default=0.0), {}
        self.longest_collection_s = 0.0
        return longest_s * 1_000


TURNS = Turns()


class Silent:
    """A ticket of a call whose outcome nobody waits for. ``outcome`` keeps the last one."""

    outcome: Any = None

    def release(self, outcome: Any) -> None:
        self.outcome = outcome


class Server:
    """A server with an operators' port. Commands fill it, and requests through its ports are measured."""

    def __init__(self, directory: str | None = None, relaxed: bool = False) -> None:
        storage: dict[str, Any] = {"memory": True}
        if directory is not None:
            storage = {"data_dir": directory, "durability": "none"}
        sections = {
            "http": {"host": "127.0.0.1", "port": 0},
            "storage": storage,
            "admin": {"port": -1},
            "node": {"limits": "relaxed" if relaxed else "strict"},
        }
        self.settings = load(None, {}, sections)
        self.member = EmbeddedMember(self.settings)
        self.thread = LoopThread("server")
        self.thread.run(self._start())
        parts = urlsplit(self.member.url)
        self.address = parts.hostname or "", parts.port or 0

    async def _start(self) -> None:
        await self.member.start()
        view = View(self.settings, "OK", self.member.url, EventKeeper())
        view.open(self.member.member, make_context(self.settings, self.member.runtime, asyncio.get_running_loop()))
        self._runner = web.AppRunner(make_app(view))
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.admin: tuple[str, int] = self._runner.addresses[0]
        collector.tame()

    def stop(self) -> None:
        self.thread.run(self._stop())
        self.thread.stop()

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self.member.kill()

    # --- filling ----------------------------------------------------------------------

    def do(self, command: Command) -> Any:
        """Execute one command and return its result, which may be an error."""
        ticket = Silent()
        call = Call(command, "x", ACCOUNT, self.member.url)
        self.thread.ask(lambda: self.member.runtime.submit(call, ticket))
        until_s = time.monotonic() + 60
        while ticket.outcome is None and time.monotonic() < until_s:
            time.sleep(0.001)
        return ticket.outcome

    def fill(self, commands: Iterator[Command]) -> None:
        """Execute many commands, a few in each turn of the loop. Raise AssertionError if the last one fails."""
        ticket = Silent()

        async def some() -> bool:
            for _ in range(20):
                command = next(commands, None)
                if command is None:
                    return False
                self.member.runtime.submit(Call(command, "x", ACCOUNT, self.member.url), ticket)
                if isinstance(command, c.SendMessageBatch):
                    break
            return True

        while self.thread.run(some()):
            pass
        assert isinstance(ticket.outcome, Result), ticket.outcome

    def settle(self, most_s: float = 60.0) -> None:
        """Wait until no background work is waiting, at most ``most_s``."""
        until_s, calm = time.monotonic() + most_s, 0
        while calm < 20 and time.monotonic() < until_s:
            calm = 0 if self.thread.ask(self._is_busy) else calm + 1
            time.sleep(0.01)

    def _is_busy(self) -> bool:
        node = self.member.runtime.node
        keeping = node.housekeeping
        return keeping.is_sweep_behind or bool(node.state.trash or node.state.publishes or node.state.topics.orphans)

    # --- asking -----------------------------------------------------------------------

    def sqs(self, action: str, **members: Any) -> bytes:
        """Call an action of SQS, or one of our own, by JSON; return the whole answer."""
        return asked(self.address, "POST", "/", f"{JSON}X-Amz-Target: AmazonSQS.{action}\r\n", encoded(members))

    def sns(self, action: str, **members: str) -> bytes:
        """Call an action of SNS by a form; return the whole answer."""
        body = urlencode({"Action": action, "Version": "2010-03-31", **members}).encode()
        return asked(self.address, "POST", "/", FORM, body)

    def peek(self, **members: Any) -> bytes:
        return asked(self.address, "POST", "/_elasticq/peek", JSON, encoded({**members, "Limit": 1_000}))

    def rest(self, method: str, path: str, body: bytes = b"") -> bytes:
        return asked(self.address, method, f"/api/v1{path}", JSON, body)

    def page(self, path: str, method: str = "GET", body: bytes = b"") -> bytes:
        """Send a request to the operators' port; return the whole answer."""
        return asked(self.admin, method, path, "Content-Type: application/json\r\n", body)

    def load(self, **definitions: Any) -> bytes:
        """Import definitions through the operators' port."""
        return self.page("/api/definitions", "PUT", encoded({"elasticq": 1, "queues": [], **definitions}))


def encoded(members: dict[str, Any]) -> bytes:
    return json.dumps(members).encode()


def told(answer: bytes) -> Any:
    """Return the document in the body of an answer."""
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def asked(address: tuple[str, int], method: str, path: str, headers: str, body: bytes) -> bytes:
    """Send one request; return head and body of its answer."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    )
    with socket.create_connection(address, timeout=300) as client:
        client.sendall(head.encode() + body)
        got = b""
        while b"\r\n\r\n" not in got:
            got += received(client)
        front, _, rest = got.partition(b"\r\n\r\n")
        lengths = [line for line in front.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        parts, size, wanted = [rest], len(rest), int(lengths[0].split(b":")[1]) if lengths else 0
        while size < wanted:
            parts.append(received(client))
            size += len(parts[-1])
    return front + b"\r\n\r\n" + b"".join(parts)


def received(client: socket.socket) -> bytes:
    part = client.recv(1 << 20)
    if not part:
        raise ConnectionError("closed")
    return part


class Table:
    """The cases so far, with the longest turns until their answers and of the background work after them."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, str, str]] = []

    def add(self, name: str, work: Callable[..., Any], /, *given: Any, wait_s: float = WORK_S, **members: Any) -> Any:
        """Measure one case: call ``work`` and return what it returns."""
        time.sleep(0.1)
        TURNS.take_ms()
        began_s = time.monotonic()
        answer = work(*given, **members)
        took_s = time.monotonic() - began_s
        time.sleep(0.05)  # the turn that answered ends
        collection_ms = TURNS.longest_collection_s * 1_000
        answer_ms = TURNS.take_ms()
        time.sleep(wait_s)
        work_ms = TURNS.take_ms()
        status = answer.split(b" ", 2)[1].decode() if isinstance(answer, bytes) else type(answer).__name__
        self.rows.append((answer_ms, work_ms, name, status))
        more = f"({took_s:.2f} s, a collection {collection_ms:.0f} ms)"
        print(f"{name:64} {answer_ms:8.1f} {work_ms:8.1f} ms  {status}  {more}", flush=True)
        return answer

    def print_worst(self) -> float:
        """Print all cases, the worst first; return the longest turn."""
        print(f"\n{'case, the worst first':64} {'answer':>8} {'work':>8}  status")
        for answer_ms, work_ms, name, status in sorted(self.rows, key=lambda row: -max(row[:2])):
            print(f"{name:64} {answer_ms:8.1f} {work_ms:8.1f}  {status}")
        return max((max(row[:2]) for row in self.rows), default=0.0)


PAGES: Final = ("/", "/topics", "/groups.html", "/metrics", "/cluster", "/queues/0/none", "/topics/0/none")


@contextmanager
def running(directory: str | None = None, *, relaxed: bool = False) -> Iterator[Server]:
    """Run a server whose pages have loaded their imports; yield it."""
    server = Server(directory, relaxed)
    try:
        server.do(c.CreateQueue("warm"))
        for path in (*PAGES, f"/queues/{ACCOUNT}/warm"):
            server.page(path)
        server.rest("GET", "/queues")
        server.do(c.DeleteQueue("warm"))
        yield server
    finally:
        server.stop()


# --- states -----------------------------------------------------------------------------

KINDS: Final[dict[str, dict[str, str]]] = {
    "standard": {},
    "fifo": {"FifoQueue": "true", "ContentBasedDeduplication": "true"},
    "priority": {"ElasticqOrder": "priority"},
    "lanes": {"FifoQueue": "true", "ContentBasedDeduplication": "true", "ElasticqPartitions": "16"},
}


def backlog(queue: str, count: int, groups: int = 0, prefix: str = "m") -> Iterator[Command]:
    """Yield the sends of ``count`` short messages, in batches that need relaxed limits."""
    for first in range(0, count, BATCH):
        places = range(first, min(first + BATCH, count))
        yield c.SendMessageBatch(
            queue,
            [
                c.SendMessageBatchEntry(
                    str(at), f"{prefix}{at}", message_group_id=f"g{at % groups}" if groups else None
                )
                for at in places
            ],
        )


def arn_of(queue: str) -> str:
    return f"arn:aws:sqs:us-east-1:{ACCOUNT}:{queue}"


def dead_letters_to(queue: str, receives: int = 1) -> str:
    return json.dumps({"deadLetterTargetArn": arn_of(queue), "maxReceiveCount": receives})


def deep_queues(table: Table, scale: float) -> None:
    """Measure calls that view, empty or delete queues of a million messages, of every kind."""
    for kind, attributes in KINDS.items():
        with running(relaxed=True) as server:
            deep_queue(table, server, kind, attributes, int(1_000_000 * scale))


def deep_queue(table: Table, server: Server, kind: str, attributes: dict[str, str], count: int) -> None:
    is_fifo = "FifoQueue" in attributes
    suffix, groups = (".fifo", 1_000) if is_fifo else ("", 0)
    name, label, url = f"deep{suffix}", f"{kind}, {count:,} messages", {"QueueUrl": f"/{ACCOUNT}/deep{suffix}"}
    made = c.CreateQueue(name, {**attributes, "MessageRetentionPeriod": "1209600", "VisibilityTimeout": "43200"})
    server.do(made)
    server.fill(backlog(name, count, groups))
    table.add(f"{label}: GetQueueAttributes", server.sqs, "GetQueueAttributes", **url, AttributeNames=["All"])
    table.add(f"{label}: SetQueueAttributes", server.sqs, "SetQueueAttributes", **url, Attributes={"DelaySeconds": "1"})
    server.sqs("SetQueueAttributes", **url, Attributes={"DelaySeconds": "0"})
    table.add(f"{label}: ReceiveMessage of 100", server.sqs, "ReceiveMessage", **url, MaxNumberOfMessages=100)
    for state in ("visible", "inflight", "delayed"):
        table.add(f"{label}: peek, {state}", server.peek, **url, States=[state])
    table.add(f"{label}: peek of no group", server.peek, **url, MessageGroupId="none")
    ids = [f"00000000-0000-4000-8000-{at:012}" for at in range(1_000)]
    table.add(f"{label}: 1,000 unknown ids", server.sqs, "ElasticqChangePriority", **url, Priority=3, MessageIds=ids)
    table.add(f"{label}: operators' page", server.page, f"/queues/{ACCOUNT}/{name}")
    table.add(f"{label}: operators' page of groups", server.page, f"/queues/{ACCOUNT}/{name}/order")
    server.do(c.CreateQueue(f"other{suffix}", attributes))
    server.do(c.SetQueueAttributes(f"other{suffix}", {"RedrivePolicy": dead_letters_to(name)}))
    task = {"SourceArn": arn_of(name), "DestinationArn": arn_of(f"other{suffix}")}
    started = table.add(f"{label}: StartMessageMoveTask", server.sqs, "StartMessageMoveTask", **task, wait_s=3)
    table.add(f"{label}: ListMessageMoveTasks", server.sqs, "ListMessageMoveTasks", SourceArn=arn_of(name))
    table.add(f"{label}: CancelMessageMoveTask", server.sqs, "CancelMessageMoveTask", **told(started))
    table.add(f"{label}: PurgeQueue", server.sqs, "PurgeQueue", **url, wait_s=5)
    server.settle()
    server.fill(backlog(name, count, groups, "n"))
    table.add(f"{label}: DeleteQueue", server.sqs, "DeleteQueue", **url, wait_s=5)
    server.settle()
    server.do(AdvanceClock(61_000))
    server.do(made)
    server.fill(backlog(name, count, groups, "o"))
    table.add(f"{label}: AdvanceClock until all have expired", server.do, AdvanceClock(15 * DAY_MS), wait_s=0)
    table.add(
        f"{label}: GetQueueAttributes, all expired", server.sqs, "GetQueueAttributes", **url, AttributeNames=["All"]
    )
    table.add(f"{label}: ReceiveMessage, all expired", server.sqs, "ReceiveMessage", **url, wait_s=5)


def waiting_messages(table: Table, scale: float) -> None:
    """Measure messages in flight, delayed messages and dead letters that all become due at once."""
    for kind, attributes in KINDS.items():
        with running(relaxed=True) as server:
            due_at_once(table, server, kind, attributes, int(100_000 * scale))


def due_at_once(table: Table, server: Server, kind: str, attributes: dict[str, str], count: int) -> None:
    suffix, groups = (".fifo", 10_000) if "FifoQueue" in attributes else ("", 0)
    label, flight, late, dead = f"{kind}, {count:,}", f"flight{suffix}", f"late{suffix}", f"dead{suffix}"
    server.do(c.CreateQueue(flight, {**attributes, "VisibilityTimeout": "3600"}))
    server.fill(backlog(flight, count, groups))
    server.fill(c.ReceiveMessage(queue_url=flight, max_number_of_messages=100) for _ in range(count // 100))
    receive = {"QueueUrl": f"/{ACCOUNT}/{flight}", "MaxNumberOfMessages": 100}
    table.add(f"{label} in flight: AdvanceClock until all are back", server.do, AdvanceClock(3_601_000), wait_s=0)
    counts = {"QueueUrl": f"/{ACCOUNT}/{flight}", "AttributeNames": ["All"]}
    table.add(f"{label} in flight: GetQueueAttributes then", server.sqs, "GetQueueAttributes", **counts, wait_s=0)
    table.add(f"{label} in flight: ReceiveMessage then", server.sqs, "ReceiveMessage", **receive, wait_s=3)
    if "ElasticqPartitions" not in attributes:
        server.do(c.CreateQueue(dead, attributes))
        server.do(c.SetQueueAttributes(flight, {"RedrivePolicy": dead_letters_to(dead)}))
        table.add(f"{label} dead letters: ReceiveMessage", server.sqs, "ReceiveMessage", **receive)
    server.do(c.CreateQueue(late, {**attributes, "DelaySeconds": "900"}))
    server.fill(backlog(late, count, groups, "late"))
    receive = {"QueueUrl": f"/{ACCOUNT}/{late}", "MaxNumberOfMessages": 100}
    table.add(f"{label} delayed: AdvanceClock until all are due", server.do, AdvanceClock(901_000), wait_s=0)
    table.add(f"{label} delayed: ReceiveMessage then", server.sqs, "ReceiveMessage", **receive, wait_s=3)


def many_groups(table: Table, scale: float) -> None:
    """Measure queues of 100,000 message groups, and attributes whose change affects all groups."""
    count = int(100_000 * scale)
    with running(relaxed=True) as server:
        for name, attributes, changes in (
            ("fifo.fifo", KINDS["fifo"], {"DelaySeconds": "5"}),
            ("fair", {}, {"ElasticqFairness": "round_robin"}),
        ):
            server.do(c.CreateQueue(name, attributes))
            server.fill(backlog(name, count, count))
            url = {"QueueUrl": f"/{ACCOUNT}/{name}"}
            label = f"{name}, {count:,} message groups"
            table.add(f"{label}: ReceiveMessage", server.sqs, "ReceiveMessage", **url, MaxNumberOfMessages=100)
            table.add(
                f"{label}: SetQueueAttributes {changes}", server.sqs, "SetQueueAttributes", **url, Attributes=changes
            )
            table.add(f"{label}: ReceiveMessage then", server.sqs, "ReceiveMessage", **url, MaxNumberOfMessages=100)
            table.add(f"{label}: operators' page of groups", server.page, f"/queues/{ACCOUNT}/{name}/order")


def many_queues(table: Table, scale: float) -> None:
    """Measure the largest number of queues, all with one dead-letter queue."""
    count = int(100_000 * scale)
    with running() as server:
        server.do(c.CreateQueue("dead"))
        policy = dead_letters_to("dead", 5)
        server.fill(c.CreateQueue(f"q{at:06}", {"RedrivePolicy": policy}) for at in range(count - 10))
        label, first, dead = f"{count:,} queues", f"/{ACCOUNT}/q000001", f"/{ACCOUNT}/dead"
        table.add(f"{label}: CreateQueue", server.sqs, "CreateQueue", QueueName="one-more")
        table.add(f"{label}: ListQueues", server.sqs, "ListQueues")
        table.add(f"{label}: ListQueues of no prefix", server.sqs, "ListQueues", QueueNamePrefix="zzz")
        table.add(f"{label}: ListDeadLetterSourceQueues", server.sqs, "ListDeadLetterSourceQueues", QueueUrl=dead)
        given = {"RedrivePolicy": dead_letters_to("dead", 6)}
        table.add(f"{label}: SetQueueAttributes", server.sqs, "SetQueueAttributes", QueueUrl=first, Attributes=given)
        tags = {f"k{at}": "v" * 256 for at in range(50)}
        table.add(f"{label}: TagQueue", server.sqs, "TagQueue", QueueUrl=f"/{ACCOUNT}/one-more", Tags=tags)
        table.add(f"{label}: DeleteQueue", server.sqs, "DeleteQueue", QueueUrl=dead)
        for path in ("/metrics", "/", "/?filter=zzz", "/api/queues", "/cluster", "/api/definitions"):
            table.add(f"{label}: operators' port, {path}", server.page, path)
        table.add(f"{label}: REST, GET /queues", server.rest, "GET", "/queues")
        table.add(f"{label}: an idle second", time.sleep, 1)
        some = [{"name": f"q{at:06}", "tags": {"a": "b"}} for at in range(int(20_000 * scale))]
        table.add(f"{label}: import of {len(some):,}", server.load, queues=some)
        table.add(f"{label}: DeleteAllQueues", server.do, DeleteAllQueues())
        while getattr(server.do(DeleteAllQueues()), "is_more", False):
            pass
        table.add(f"{label} deleted: AdvanceClock by a minute", server.do, AdvanceClock(61_000), wait_s=5)


def many_subscriptions(table: Table, scale: float) -> None:
    """Measure a topic with the largest number of subscriptions."""
    count, arn = int(100_000 * scale), f"arn:aws:sns:us-east-1:{ACCOUNT}:t"
    function = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:f"
    with running() as server:
        server.do(t.CreateTopic("t"))
        server.fill(
            t.Subscribe(arn, "lambda", f"{function}{at}", {"FilterPolicy": encoded(each).decode()})
            for at in range(count // 2)
            for each in ({"a": [{"prefix": f"x{at}"}], "b": ["y"]},)
        )
        server.fill(t.Subscribe(arn, "sqs", arn_of(f"q{at}")) for at in range(count // 2 - 10))
        label, topic = f"{count:,} subscriptions", {"TopicArn": arn}
        table.add(f"{label}: Subscribe", server.sns, "Subscribe", **topic, Protocol="sqs", Endpoint=arn_of("q"))
        table.add(f"{label}: Subscribe by e-mail", server.sns, "Subscribe", **topic, Protocol="email", Endpoint="a@b")
        table.add(f"{label}: Publish", server.sns, "Publish", **topic, Message="x", wait_s=5)
        table.add(f"{label}: Publish, attribute", server.sns, "Publish", **topic, Message="x", **ATTRIBUTE, wait_s=5)
        for action in ("ListSubscriptionsByTopic", "GetTopicAttributes"):
            table.add(f"{label}: {action}", server.sns, action, **topic)
        for action in ("ListSubscriptions", "ListTopics"):
            table.add(f"{label}: {action}", server.sns, action)
        name = {"AttributeName": "DisplayName", "AttributeValue": "x"}
        table.add(f"{label}: SetTopicAttributes", server.sns, "SetTopicAttributes", **topic, **name)
        for path in ("/metrics", "/topics", f"/topics/{ACCOUNT}/t", "/api/definitions"):
            table.add(f"{label}: operators' port, {path}", server.page, path)
        some = [{"protocol": "email", "endpoint": f"a{at}@b"} for at in range(5)]
        table.add(f"{label}: import of 5 more", server.load, topics=[{"name": "t", "subscriptions": some}])
        table.add(f"{label}: DeleteTopic", server.sns, "DeleteTopic", **topic, wait_s=10)
        server.settle()
        some = [{"protocol": "email", "endpoint": f"a{at}@b"} for at in range(int(20_000 * scale))]
        new = [{"name": "new", "subscriptions": some}]
        table.add(f"import of {len(some):,} subscriptions", server.load, topics=new)
        table.add("pending subscriptions lapse", server.do, AdvanceClock(4 * DAY_MS), wait_s=5)


ATTRIBUTE: Final = {
    "MessageAttributes.entry.1.Name": "a",
    "MessageAttributes.entry.1.Value.DataType": "String",
    "MessageAttributes.entry.1.Value.StringValue": "y",
}


def listed(unit: str, count: int) -> str:
    """Return a body with an array of so many values. ``%x`` in a value becomes its number, ``%d`` a multiple of it."""
    return '{"a":[' + ",".join(unit.replace("%x", f"{at:x}").replace("%d", str(at * 7)) for at in range(count)) + "]}"


def patterns(operator: str, argument: Any = "x%d") -> dict[str, Any]:
    return {"a": [{operator: argument.replace("%d", str(at))} for at in range(150)]}


def ranges(*numbers: int) -> dict[str, Any]:
    return {"a": [{"numeric": [">", at, "<", at + 1]} for at in range(*numbers)]}


FILTERS: Final[tuple[tuple[str, Any, str], ...]] = (
    ("150 ranges, one number", ranges(10**8, 10**8 + 150), listed("1", 500_000)),
    ("150 ranges, numbers", ranges(10**8, 10**8 + 300, 2), listed("%d", 140_000)),
    ("150 prefixes", patterns("prefix"), listed('"%x"', 110_000)),
    ("150 suffixes", patterns("suffix"), listed('"%x"', 110_000)),
    ("150 equals-ignore-case", patterns("equals-ignore-case"), listed('"%x"', 110_000)),
    ("150 anything-but of a prefix", {"a": [{"anything-but": {"prefix": ""}}] * 150}, listed('"%x"', 110_000)),
    (
        "150 networks",
        patterns("cidr", "10.%d.0.0/24"),
        '{"a":[' + ",".join(f'"1.1.{at // 250}.{at % 250}"' for at in range(75_000)) + "]}",
    ),
    (
        "wildcards, one text",
        {"a": [{"wildcard": f"*{'a' * 40}{at}{'a' * 40}*"} for at in range(10)]},
        json.dumps({"a": "a" * 1_000_000}),
    ),
    (
        "wildcards, texts",
        {"a": [{"wildcard": f"*{'a' * 40}{at}*"} for at in range(10)]},
        json.dumps({"a": [f"{at}{'a' * 90}" for at in range(10_000)]}),
    ),
    (
        "equals-ignore-case, one text",
        patterns("equals-ignore-case"),
        json.dumps({"a": "\u00e9" * 480_000}, ensure_ascii=False),
    ),
    ("two keys below 86,000 elements", {"a": {"b": ["1"], "c": ["2"]}}, listed('{"b":"1"},{"c":"2"}', 43_000)),
    (
        "37 alternatives of two keys",
        {"a": {"$or": [{"b": [at], "c": [at]} for at in range(37)]}},
        json.dumps({"a": [{"b": at % 37, "c": (at + 1) % 37} for at in range(50_000)]}),
    ),
    (
        "70 keys below 90,000 elements",
        {"a": {"$or": [{f"k{at}": ["x"]} for at in range(70)]}},
        listed('{"k%x":1}', 80_000),
    ),
    ("empty lists", {"a": ["x"]}, listed("[]", 340_000)),
    ("floats", {"a": ["x"]}, listed("1.7976931348623157e308", 40_000)),
    ("names that nobody asks for", {"a": ["x"]}, "{" + ",".join(f'"{at:x}":1' for at in range(95_000)) + "}"),
)


def filters(table: Table, scale: float) -> None:
    """Measure publishes whose matching is as much work as messages and filter policies allow."""
    topic = {"TopicArn": f"arn:aws:sns:us-east-1:{ACCOUNT}:t"}
    for count in (1, 20):
        for name, policy, body in FILTERS:
            with running() as server:
                server.do(t.CreateTopic("t", {"MaximumMessageSize": "1048576"}))
                attributes = {"FilterPolicyScope": "MessageBody", "FilterPolicy": json.dumps(policy)}
                for at in range(count):
                    server.do(t.Subscribe(topic["TopicArn"], "sqs", arn_of(f"q{at}"), attributes))
                table.add(
                    f"{count} filter(s), {len(body):,}: {name}",
                    server.sns,
                    "Publish",
                    **topic,
                    Message=body,
                    wait_s=0.1,
                )
    with running() as server:
        server.do(t.CreateTopic("t"))
        count, policy = int(5_000 * scale), {"FilterPolicy": json.dumps(patterns("prefix"))}
        server.fill(t.Subscribe(topic["TopicArn"], "sqs", arn_of(f"q{at}"), policy) for at in range(count))
        label = f"{count:,} filters of 150 prefixes"
        table.add(f"{label}, one attribute", server.sns, "Publish", **topic, Message="x", **ATTRIBUTE)
        entries = {
            f"PublishBatchRequestEntries.member.{at}.{key}": value
            for at in range(1, 11)
            for key, value in (("Id", str(at)), ("Message", "x"), *ATTRIBUTE.items())
        }
        table.add(f"{label}, a batch of ten", server.sns, "PublishBatch", **topic, **entries)


def full_groups(table: Table, scale: float) -> None:
    """Measure a consumer group of the largest size, and the largest number of groups."""
    consumers, queues = int(1_000 * scale), int(10_000 * scale)
    group = {"GroupName": "g"}
    with running() as server:
        server.fill(c.CreateQueue(f"q{at:05}") for at in range(queues))
        label, given = f"{queues:,} queues", {"QueueNamePrefix": "q", "SessionTimeoutMs": 600_000}
        table.add(f"{label}: SetGroup", server.sqs, "ElasticqSetGroup", **group, **given, wait_s=2)
        first = told(table.add(f"{label}: the first JoinGroup", server.sqs, "ElasticqJoinGroup", **group, wait_s=3))
        leaving = {**group, "ConsumerId": first["ConsumerId"]}
        table.add(f"{label}: LeaveGroup with all of them", server.sqs, "ElasticqLeaveGroup", **leaving, wait_s=3)
        table.add(f"{label}: JoinGroup", server.sqs, "ElasticqJoinGroup", **group, wait_s=3)
        table.add(f"{label}: the session of who has all ends", server.do, AdvanceClock(600_001), wait_s=3)
        for name in ("first", "second"):
            view = told(table.add(f"{label}: the {name} JoinGroup", server.sqs, "ElasticqJoinGroup", **group, wait_s=3))
            beat = {**group, "ConsumerId": view["ConsumerId"]}
            table.add(f"{label}: Heartbeat of the {name}", server.sqs, "ElasticqHeartbeat", **beat)
        beat["ConsumerId"] = told(server.sqs("ElasticqDescribeGroups"))["Groups"][0]["Consumers"][0]["ConsumerId"]
        tokens = [each["Token"] for each in told(server.sqs("ElasticqHeartbeat", **beat)).get("Revoking", [])][:1_000]
        released = {**beat, "Released": tokens}
        table.add(f"{label}: Heartbeat, {len(tokens)} released", server.sqs, "ElasticqHeartbeat", **released, wait_s=2)
        ids = grown(server, consumers - 3)
        label, beat = f"{consumers:,} consumers, {queues:,} queues", {**group, "ConsumerId": ids[0]}
        joined = told(table.add(f"{label}: JoinGroup", server.sqs, "ElasticqJoinGroup", **group, wait_s=2))
        moved, leaving = {**group, "ConsumerId": ids[1]}, {**group, "ConsumerId": joined["ConsumerId"]}
        table.add(f"{label}: Heartbeat", server.sqs, "ElasticqHeartbeat", **beat)
        table.add(f"{label}: DrainConsumer", server.sqs, "ElasticqDrainConsumer", **beat, wait_s=2)
        table.add(f"{label}: MoveResource", server.sqs, "ElasticqMoveResource", **moved, Resource="q00001", wait_s=2)
        table.add(f"{label}: LeaveGroup", server.sqs, "ElasticqLeaveGroup", **leaving, wait_s=2)
        table.add(f"{label}: DescribeGroups", server.sqs, "ElasticqDescribeGroups", GroupNames=["g"])
        table.add(f"{label}: operators' page", server.page, "/groups.html")
        table.add(f"{label}: CreateQueue", server.sqs, "CreateQueue", QueueName="q0", wait_s=2)
        table.add(f"{label}: DeleteQueue", server.sqs, "DeleteQueue", QueueUrl=f"/{ACCOUNT}/q0", wait_s=2)
        for prefix in ("q000", "q"):
            change = {**group, "QueueNamePrefix": prefix}
            table.add(f"{label}: SetGroup to {prefix}", server.sqs, "ElasticqSetGroup", **change, wait_s=5)
        table.add(f"{label}: all sessions end", server.do, AdvanceClock(600_001), wait_s=5)
        grown(server, consumers)
        time.sleep(2)
        table.add(f"{label}: DeleteGroup", server.sqs, "ElasticqDeleteGroup", **group, wait_s=2)
        groups = int(1_000 * scale)
        server.fill(g.ElasticqSetGroup(f"g{at}", queue_name_prefix="q") for at in range(groups))
        time.sleep(5)
        label = f"{groups:,} groups of {queues:,} queues each"
        table.add(f"{label}: CreateQueue", server.sqs, "CreateQueue", QueueName="q0", wait_s=2)
        table.add(f"{label}: DescribeGroups", server.sqs, "ElasticqDescribeGroups")
        table.add(f"{label}: DeleteQueue", server.sqs, "DeleteQueue", QueueUrl=f"/{ACCOUNT}/q0", wait_s=2)


def grown(server: Server, count: int) -> list[str]:
    """Let ``count`` consumers join group g and release the resources that the group revokes; return their ids."""
    ids: list[str] = []
    for _ in range(count):
        joined = server.do(g.ElasticqJoinGroup("g"))
        assert isinstance(joined, GroupJoinedResult), joined
        ids.append(joined.consumer_id)
    is_busy = True
    while is_busy:
        is_busy = False
        for each in ids:
            view = server.do(g.ElasticqHeartbeat("g", each))
            if isinstance(view, GroupViewResult) and view.revoking:
                is_busy = True
                server.do(g.ElasticqHeartbeat("g", each, [held.token for held in view.revoking][:1_000]))
    return ids


def batches(table: Table, scale: float) -> None:
    """Measure the largest batches and receives of strict and relaxed limits, with large and with small messages."""
    for relaxed, size, count in ((False, 26_000, 10), (False, 100, 10), (True, 1_000, 1_000), (True, 2, 1_000)):
        with running(relaxed=relaxed) as server:
            server.do(c.CreateQueue("q", {"VisibilityTimeout": "0"}))
            entries = [{"Id": str(at), "MessageBody": "x" * size} for at in range(count)]
            label, url = f"{'relaxed' if relaxed else 'strict'}, {count:,} of {size:,} bytes", {"QueueUrl": "q"}
            table.add(f"{label}: SendMessageBatch", server.sqs, "SendMessageBatch", **url, Entries=entries)
            limit = min(count, 100)
            answer = told(
                table.add(f"{label}: ReceiveMessage", server.sqs, "ReceiveMessage", **url, MaxNumberOfMessages=limit)
            )
            given = [
                {"Id": str(at), "ReceiptHandle": each["ReceiptHandle"]} for at, each in enumerate(answer["Messages"])
            ]
            table.add(f"{label}: DeleteMessageBatch", server.sqs, "DeleteMessageBatch", **url, Entries=given)
    with running() as server:
        server.do(c.CreateQueue("q"))
        server.fill(
            c.SendMessageBatch("q", [c.SendMessageBatchEntry(str(at), "x" * 100) for at in range(10)])
            for _ in range(int(4_000 * scale))
        )
        lease = b'{"lease":"a/1/","action":"commit"}'
        table.add("a lease: commit of none", server.rest, "POST", "/queues/q/leases", lease)


def clusters(table: Table, scale: float) -> None:
    """Measure three members in one loop: entries that followers apply, and a member that joins.

    A turn of the loop is the work of all of them.
    """
    count = int(200_000 * scale)
    with Cluster(3, settings={"node": {"limits": "relaxed"}}) as cluster:
        queue = cluster.queue("q").create()
        for first in range(0, count, BATCH):
            entries = [{"Id": str(at), "MessageBody": f"m{at}"} for at in range(first, first + BATCH)]
            cluster.call("SendMessageBatch", QueueUrl=queue.url, Entries=entries)
        for at in range(int(2_000 * scale)):
            cluster.queue(f"r{at}").create()
        label = f"cluster, {count:,} messages"
        table.add(f"{label}: an idle second", time.sleep, 1)
        table.add(f"{label}: SetGroup", cluster.call, "ElasticqSetGroup", GroupName="g", QueueNamePrefix="r", wait_s=2)
        for _ in range(2):
            table.add(f"{label}: JoinGroup", cluster.call, "ElasticqJoinGroup", GroupName="g", wait_s=2)
        name = next(each for each in cluster.names if each != cluster.master)
        cluster.kill(name)
        table.add(f"{label}: a member starts again", cluster.start, name, wait_s=5)
        table.add(f"{label}: the master dies", cluster.kill_master, wait_s=5)
        table.add(f"{label}: PurgeQueue", cluster.call, "PurgeQueue", QueueUrl=f"/{ACCOUNT}/q", wait_s=3)


def on_disk(table: Table, scale: float) -> None:
    """Measure a server with a data directory and a deep queue whose contents are on disk."""
    count = int(1_000_000 * scale)
    with TemporaryDirectory() as directory, running(directory, relaxed=True) as server:
        server.do(c.CreateQueue("deep"))
        label, url = f"on disk, {count:,} messages", {"QueueUrl": f"/{ACCOUNT}/deep"}
        table.add(f"{label}: 1,000 messages a request", server.fill, backlog("deep", count), wait_s=5)
        table.add(f"{label}: ReceiveMessage", server.sqs, "ReceiveMessage", **url, MaxNumberOfMessages=100)
        table.add(f"{label}: peek", server.peek, **url)
        table.add(f"{label}: PurgeQueue", server.sqs, "PurgeQueue", **url, wait_s=5)


STATES: Final[dict[str, Callable[[Table, float], None]]] = {
    "batches": batches,
    "filters": filters,
    "groups": full_groups,
    "waiting": waiting_messages,
    "message-groups": many_groups,
    "deep": deep_queues,
    "queues": many_queues,
    "subscriptions": many_subscriptions,
    "clusters": clusters,
    "disk": on_disk,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("states", nargs="*", help=f"states to measure: {', '.join(STATES)} (all)")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="factor of the numbers of messages, queues and so on (1)"
    )
    parser.add_argument(
        "--limit", type=float, default=float("inf"), metavar="MS", help="exit with 1 if a turn is longer"
    )


def main(options: argparse.Namespace) -> int:
    TURNS.watch()
    print(f"build: {BUILD}")
    table = Table()
    for name in options.states or STATES:
        STATES[name](table, options.scale)
    return int(table.print_worst() > options.limit)
