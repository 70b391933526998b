"""GET /metrics: the figures of this member in the text format of Prometheus.

Each request collects the figures. Ten thousand queues are 90,000 lines, so the page is made in slices, and the loop
serves others in between. All members hold the same queues, but only the master shows their figures. Then a sum over
all members counts each message once.

This module formats the lines of queues, topics and subscriptions itself, because the library of Prometheus takes ten
times as long. That library formats the rest. The first request imports this module: nothing else needs
prometheus_client.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from operator import attrgetter, itemgetter
from typing import Final, TypeVar

from prometheus_client import GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from elasticq import BUILD, __version__
from elasticq.admin.source import AdminSource
from elasticq.admin.subscriptions import SubscriptionCounts
from elasticq.engine.views.figures import QueueFigures
from elasticq.model.histogram import Histogram
from elasticq.node.settings import GroupStatus, NodeStatus
from elasticq.runtime.meter import Messages, Meter, Published

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PREFIX: Final = "elasticq_"
QUEUES_MAX: Final = 10_000
"""The number of queues whose figures are shown. ``elasticq_queues`` counts all."""
LOOKED_AT_A_SLICE: Final = 100
"""The number of queues whose figures one slice collects: about a millisecond's work."""
ROWS_A_SLICE: Final = 250
"""The number of queues, topics or subscriptions whose lines of one family one slice formats."""

Key = tuple[str, str]
"""The owner and name of a queue or topic."""
Counted = TypeVar("Counted")

_MESSAGES: Final[list[tuple[str, str, Callable[[Messages], int]]]] = [
    ("messages_sent", "Messages that clients sent through this member.", attrgetter("sent")),
    ("messages_received", "Messages that this member returned to receives.", attrgetter("received")),
    ("messages_deleted", "Deletions of messages that this member confirmed.", attrgetter("deleted")),
    ("empty_receives", "Receives that this member answered without a message.", attrgetter("empty")),
]
_PUBLISHED: Final[list[tuple[str, str, Callable[[Published], int]]]] = [
    ("topic_published", "Messages that clients published through this member.", attrgetter("published")),
    ("topic_delivered", "Copies of published messages that queues accepted.", attrgetter("delivered")),
    ("topic_filtered", "Copies that filter policies rejected.", attrgetter("filtered")),
    ("topic_failed", "Copies that their queue refused; some became dead letters.", attrgetter("failed")),
]
_PUSHES: Final[list[tuple[str, str, Callable[[tuple[int, int, int]], int]]]] = [
    ("topic_pushes_delivered", "Notifications that web servers accepted from this member.", itemgetter(0)),
    ("topic_pushes_retried", "Posts of notifications that failed and are retried.", itemgetter(1)),
    ("topic_pushes_failed", "Notifications that this member stopped posting after the last retry.", itemgetter(2)),
]
_SUBSCRIBED: Final[list[tuple[str, str, Callable[[SubscriptionCounts], int]]]] = [
    (
        "topic_subscription_delivered",
        "Messages that a subscription's queue or web server accepted, from this member as the master.",
        attrgetter("delivered"),
    ),
    (
        "topic_subscription_retried",
        "Posts to a subscription's web server that failed and are retried.",
        attrgetter("retried"),
    ),
    (
        "topic_subscription_failed",
        "Messages that a subscription's queue or web server did not accept; some became dead letters.",
        attrgetter("failed"),
    ),
]


async def expose(source: AdminSource) -> list[bytes]:
    """Return the page in parts. The loop serves others between two slices."""
    parts = []
    for part in slices(source):
        if part:
            parts.append(part)
        await asyncio.sleep(0)
    return parts


def slices(source: AdminSource) -> Iterator[bytes]:
    """Yield the page in parts. Each step takes a bounded time, and its part may be empty."""
    status = source.status()
    yield generate_latest(_Families(_of_member(status, source)))
    yield generate_latest(_PROCESS)
    yield generate_latest(_Families(_of_requests(source.meter())))
    queues: list[QueueFigures] = []
    labels: dict[Key, str] = {}
    if status.role == "master":
        shown = islice(source.queues(), QUEUES_MAX)
        while part := list(islice(shown, LOOKED_AT_A_SLICE)):
            queues += part
            for each in part:
                labels[each.account, each.name] = _labels("queue", each.account, each.name)
            yield b""
        source.meter().forget(labels.__contains__)
    yield from _of_queues(list(labels.values()), queues, status.time_ms)
    yield from _of_messages(source.meter(), labels, is_master=status.role == "master")
    yield from _of_consumers(source, labels)
    meaning = "Messages that this member, as the master, removed at the end of their retention."
    yield from _of_keys("queue", [("messages_expired", meaning, int)], source.expired())
    yield from _of_keys("topic", _PUBLISHED, _topics(source))
    yield from _of_keys("topic", _PUSHES, source.pushes())
    yield from _of_subscriptions(source)
    yield from _of_groups(source.groups(QUEUES_MAX) if status.role == "master" else [])


def _topics(source: AdminSource) -> dict[Key, Published]:
    """Return the counts of each topic: those of the publish calls, and those of deliveries after the answer."""
    found = dict(source.meter().by_topic())
    for key, counts in source.delivered_in_steps().items():
        found[key] = found.get(key, Published()).plus(counts)
    return found


class _Families(Collector):
    """A collector that returns the given families. ``generate_latest`` needs one."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _process() -> CollectorRegistry:
    """Return the figures of the process and its interpreter, under the names that dashboards expect."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


_PROCESS: Final = _process()

# --- the member -------------------------------------------------------------------


def _of_member(status: NodeStatus, source: AdminSource) -> Iterator[Metric]:
    own = [*_of_status(status), *_of_members(status)]
    yield from own
    taken = {family.name for family in own}
    for name, value in sorted(source.metrics().items()):
        if PREFIX + name.removesuffix("_total") not in taken:
            meaning = f"{name.removesuffix('_total').replace('_', ' ').capitalize()}."
            yield (
                _counter(name.removesuffix("_total"), meaning, value)
                if name.endswith("_total")
                else _gauge(name, meaning, value)
            )
    for name, (meaning, histogram) in source.histograms().items():
        family = HistogramMetricFamily(PREFIX + name, meaning)
        family.add_metric([], _buckets(histogram), histogram.sum)
        yield family


def _of_status(status: NodeStatus) -> Iterator[Metric]:
    build = GaugeMetricFamily(
        f"{PREFIX}build_info", "1 for the running build: compiled modules or pure Python.", labels=["version", "build"]
    )
    build.add_metric([__version__, BUILD.name], 1)
    yield build
    role = GaugeMetricFamily(f"{PREFIX}role", "1 for the role that this member has.", labels=["role"])
    for name in ("master", "follower", "candidate", "proxy"):
        role.add_metric([name], status.role == name)
    yield role
    yield _gauge("is_master", "1 if this member is the master.", status.role == "master")
    yield _gauge("ready", "1 if this member can serve writes.", status.ready)
    yield _gauge("term", "Newest term that this member knows.", status.term)
    yield _gauge("commit_index", "Newest log index known to be committed.", status.commit_index)
    yield _gauge("applied_index", "Newest log index that is applied.", status.applied_index)
    yield _gauge("last_index", "Newest index in this member's log.", status.last_index)
    yield _gauge("stale_seconds", "Time since the last word from a master, 0 on the master.", status.stale_ms / 1_000)
    yield _gauge("set_aside", "Stored rows and attributes that could not be read at the start.", status.set_aside)
    yield _counter("discarded_acked", "Acknowledged entries that entries of a newer master replaced.", status.discarded)
    yield _gauge("queues", "Queues.", status.queues)
    yield _gauge("leases", "Leases that this member remembers, open or ended.", status.leases)
    yield _gauge("waiters", "Receives that wait for a message.", status.waiters)
    yield _gauge("held_calls", "Calls that wait for a master.", status.held_calls)
    yield _gauge("contents_bytes", "Bytes of message contents in memory.", status.contents_bytes)


def _of_members(status: NodeStatus) -> Iterator[Metric]:
    linked = sum(member.is_linked or member.id == status.member_id for member in status.members)
    yield _gauge("members_linked", "Members that this one has a link to, itself included.", linked)
    yield _gauge("voters", "Voters in the log.", len(status.voters))
    yield _gauge("quorum", "Voters that are needed for a write.", len(status.voters) // 2 + 1)
    # A dead voter and the member that replaces it have the same name for a while, so the id is a label, too.
    lag = GaugeMetricFamily(
        f"{PREFIX}replication_lag_entries", "Entries behind the commit index.", labels=["member", "id"]
    )
    behind = GaugeMetricFamily(
        f"{PREFIX}replication_lag_seconds",
        "Age of the oldest committed entry that a member lacks.",
        labels=["member", "id"],
    )
    for member in status.members:
        if member.lag is not None:
            lag.add_metric([member.name, member.id], member.lag)
        if member.lag_ms is not None:
            behind.add_metric([member.name, member.id], member.lag_ms / 1_000)
    yield lag
    yield behind


# --- requests ---------------------------------------------------------------------


def _of_requests(meter: Meter) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        f"{PREFIX}requests", "Requests that were answered, by action and error code.", labels=["action", "code"]
    )
    times = HistogramMetricFamily(
        f"{PREFIX}request_duration_seconds",
        "Time from a request's last byte to its answer, including the wait of long polls, without errors.",
        labels=["action"],
    )
    for action, histogram in meter.read().items():
        if calls := sum(histogram.counts):
            requests.add_metric([action, "OK"], calls)
            times.add_metric([action], _buckets(histogram), histogram.sum)
    for (action, code), calls in sorted(meter.errors.items()):
        requests.add_metric([action, code], calls)
    yield requests
    yield times


# --- queues and topics ------------------------------------------------------------


def _of_queues(labels: Sequence[str], queues: Sequence[QueueFigures], time_ms: int) -> Iterator[bytes]:
    """Yield the families of queues. labels: of the queues, in the same order."""

    def states(label: str, queue: QueueFigures) -> str:
        start = f"{PREFIX}queue_messages{{{label},state="
        return (
            f'{start}"visible"}} {queue.visible}\n'
            f'{start}"in_flight"}} {queue.in_flight}\n'
            f'{start}"delayed"}} {queue.delayed}\n'
        )

    def age_s(queue: QueueFigures) -> float:
        return 0 if queue.oldest_ms is None else max(0, time_ms - queue.oldest_ms) / 1_000

    def messages(queue: QueueFigures) -> int:
        return queue.visible + queue.in_flight + queue.delayed

    yield from _lines(GaugeMetricFamily, "queue_messages", "Messages in a queue.", labels, queues, states)
    meaning = "Age of a queue's oldest message that is not delayed, 0 without one."
    yield from _of_rows([("queue_oldest_message_age_seconds", meaning, age_s)], labels, queues, GaugeMetricFamily)
    meaning = "Messages in a queue to which others send their dead letters."
    dead = [at for at, queue in enumerate(queues) if queue.is_dead_letter_queue]
    of_dead = [labels[at] for at in dead], [queues[at] for at in dead]
    yield from _of_rows([("dead_letters", meaning, messages)], *of_dead, GaugeMetricFamily)


def _of_messages(meter: Meter, labels: Mapping[Key, str], *, is_master: bool) -> Iterator[bytes]:
    """Yield the counts of messages. The master shows queues that exist; other members show all they counted."""
    keys, counts = list(meter.by_queue()), list(meter.by_queue().values())
    found: list[str] = []
    shown: list[Messages] = []
    for at in range(0, len(keys) if is_master else min(len(keys), QUEUES_MAX), ROWS_A_SLICE):
        for key, counted in zip(keys[at : at + ROWS_A_SLICE], counts[at : at + ROWS_A_SLICE], strict=True):
            label = labels.get(key) if is_master else _labels("queue", *key)
            if label is not None:
                found.append(label)
                shown.append(counted)
        yield b""
    yield from _of_rows(_MESSAGES, found, shown)


def _of_consumers(source: AdminSource, labels: Mapping[Key, str]) -> Iterator[bytes]:
    waiting = source.consumers()
    found = [labels.get(key) or _labels("queue", *key) for key in islice(waiting, QUEUES_MAX)]
    yield b""
    meaning = "Receives that wait at a queue."
    yield from _of_rows([("queue_consumers", meaning, int)], found, list(waiting.values()), GaugeMetricFamily)


def _of_keys(
    kind: str, families: Sequence[tuple[str, str, Callable[[Counted], float]]], counts: Mapping[Key, Counted]
) -> Iterator[bytes]:
    """Yield counters by owner and name. kind: the label of the name, such as queue."""
    found, rows = [_labels(kind, *key) for key in islice(counts, QUEUES_MAX)], list(counts.values())
    yield b""
    yield from _of_rows(families, found, rows)


_GROUPS: Final[list[tuple[str, str, Callable[[GroupStatus], float]]]] = [
    ("group_generation", "Number of rebalances of a consumer group.", attrgetter("generation")),
    ("group_consumers", "Consumers of a group.", attrgetter("consumers")),
    ("group_idle_consumers", "Consumers of a group that hold nothing.", attrgetter("idle")),
    (
        "group_rebalancing_seconds",
        "Time since the start of the rebalance that runs, 0 if none does.",
        lambda each: each.rebalancing_ms / 1e3,
    ),
    ("group_rebalanced_seconds", "Duration of a group's last rebalance.", lambda each: each.rebalanced_ms / 1e3),
]
_MOVES: Final[list[tuple[str, str, Callable[[GroupStatus], float]]]] = [
    ("group_moves", "Resources that a rebalance moved from one consumer to another.", attrgetter("moves")),
]


def _of_groups(groups: Sequence[GroupStatus]) -> Iterator[bytes]:
    def states(label: str, group: GroupStatus) -> str:
        start = f"{PREFIX}group_resources{{{label},state="
        return f'{start}"held"}} {group.held}\n{start}"revoking"}} {group.revoking}\n{start}"free"}} {group.free}\n'

    labels = [_labels("group", each.account, each.group) for each in groups]
    yield from _of_rows(_GROUPS, labels, groups, GaugeMetricFamily)
    yield from _of_rows(_MOVES, labels, groups)
    meaning = "Queues or partitions of a group, by whether a consumer holds them."
    yield from _lines(GaugeMetricFamily, "group_resources", meaning, labels, groups, states)


def _of_subscriptions(source: AdminSource) -> Iterator[bytes]:
    found: list[str] = []
    shown: list[SubscriptionCounts] = []
    subscriptions = islice(source.subscriptions(), QUEUES_MAX)
    while part := list(islice(subscriptions, LOOKED_AT_A_SLICE)):
        shown += part
        for each in part:
            queue = f',queue="{_escaped(each.queue)}"' if each.queue else ""
            own = f',protocol="{each.protocol}"{queue},subscription="{_escaped(each.key)}"'
            found.append(_labels("topic", *each.topic) + own)
        yield b""
    yield from _of_rows(_SUBSCRIBED, found, shown)
    meaning = "Notifications that wait for a subscription's web server."
    waiting = [("topic_subscription_waiting", meaning, attrgetter("waiting"))]
    yield from _of_rows(waiting, found, shown, GaugeMetricFamily)


def _of_rows(
    families: Sequence[tuple[str, str, Callable[[Counted], float]]],
    labels: Sequence[str],
    rows: Sequence[Counted],
    kind: Callable[[str, str], Metric] = CounterMetricFamily,
) -> Iterator[bytes]:
    """Yield families of one kind, counters or gauges. families: name, help text, and the function for a row's value."""
    suffix = "_total" if kind is CounterMetricFamily else ""
    for name, meaning, read in families:
        start = f"{PREFIX}{name}{suffix}{{"

        def line(label: str, counted: Counted, start: str = start, read: Callable[[Counted], float] = read) -> str:
            return f"{start}{label}}} {read(counted)}\n"

        yield from _lines(kind, name, meaning, labels, rows, line)


def _lines(
    kind: Callable[[str, str], Metric],
    name: str,
    meaning: str,
    labels: Sequence[str],
    rows: Sequence[Counted],
    line: Callable[[str, Counted], str],
) -> Iterator[bytes]:
    """Yield the heading of a family, and its lines in slices. Yield nothing without rows."""
    if labels:
        yield generate_latest(_Families([kind(PREFIX + name, meaning)]))
    for at in range(0, len(labels), ROWS_A_SLICE):
        yield "".join(map(line, labels[at : at + ROWS_A_SLICE], rows[at : at + ROWS_A_SLICE])).encode()


def _labels(kind: str, account: str, name: str) -> str:
    """Return the labels that each line of a queue or topic has, escaped."""
    return f'account="{_escaped(account)}",{kind}="{_escaped(name)}"'


def _escaped(text: str) -> str:
    """Return a label's value, escaped for the format. Owners and names of existing queues need no escapes."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return text
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


# --- one family each --------------------------------------------------------------


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, meaning, value)


def _counter(name: str, meaning: str, value: float) -> Metric:
    return CounterMetricFamily(PREFIX + name, meaning, value)


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Return cumulative counts: each bucket includes all below it."""
    totals = accumulate(histogram.counts)
    return list(zip((*map(str, histogram.bounds), "+Inf"), totals, strict=True))
