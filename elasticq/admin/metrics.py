"""GET /metrics: what this member counts, in the text format of Prometheus, written by its own library.

Everything is collected when the page is asked for. Ten thousand queues are 80,000 lines, so families are
written in parts, and the loop serves others in between. Only the master shows the figures of queues: every member
holds the same, and a sum over all instances must count each message once.
The first request imports this module: nothing else needs prometheus_client.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, islice
from operator import itemgetter
from typing import Final, TypeVar

from prometheus_client import GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.samples import Sample

from elasticq import BUILD, __version__
from elasticq.admin.source import AdminSource
from elasticq.engine.figures import QueueFigures
from elasticq.model.histogram import Histogram
from elasticq.node.settings import GroupStatus, NodeStatus
from elasticq.runtime.meter import Messages, Meter, Published

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PREFIX: Final = "elasticq_"
QUEUES_MAX: Final = 10_000
"""Queues whose figures are shown; ``elasticq_queues`` counts all."""
PART: Final = 100
"""Queues, or lines of one family, that are done before the loop serves others: about a millisecond's work."""

Key = tuple[str, str]
Family = TypeVar("Family", bound=Metric)
Row = TypeVar("Row")
Counted = TypeVar("Counted")
Lines = Iterator[bytes]
"""A family in parts; between two parts the loop serves others."""

_MESSAGES: Final[list[tuple[str, str, Callable[[Messages], int]]]] = [
    ("messages_sent", "Messages that clients sent through this member.", lambda each: each.sent),
    ("messages_received", "Messages that this member gave to receives.", lambda each: each.received),
    ("messages_deleted", "Deletes of messages that this member confirmed.", lambda each: each.deleted),
    ("empty_receives", "Receives that this member answered without a message.", lambda each: each.empty),
]


_PUBLISHED: Final[list[tuple[str, str, Callable[[Published], int]]]] = [
    ("topic_published", "Messages that clients published through this member.", lambda each: each.published),
    ("topic_delivered", "Copies of published messages that queues took.", lambda each: each.delivered),
    ("topic_filtered", "Copies that filter policies held back.", lambda each: each.filtered),
    ("topic_failed", "Copies that their queue could not take; some are dead letters.", lambda each: each.failed),
]
_PUSHES: Final[list[tuple[str, str, Callable[[tuple[int, int, int]], int]]]] = [
    ("topic_pushes_delivered", "Notifications that web servers took from this member.", itemgetter(0)),
    ("topic_pushes_retried", "Posts of notifications that failed and are tried again.", itemgetter(1)),
    ("topic_pushes_failed", "Notifications to web servers that were given up.", itemgetter(2)),
]


async def expose(source: AdminSource) -> bytes:
    """Return the whole page."""
    status = source.status()
    parts = [generate_latest(_Families(_of_member(status, source))), generate_latest(_process())]
    await asyncio.sleep(0)
    parts.append(generate_latest(_Families(_of_requests(source.meter()))))
    queues = await _queues(source) if status.role == "master" else []
    counted = _counted(source.meter(), queues, is_master=status.role == "master")
    waiting = Counter((each.owner, each.queue) for each in source.waiting(QUEUES_MAX))
    topics = list(islice(source.meter().by_topic().items(), QUEUES_MAX))
    pushes = list(islice(source.pushes().items(), QUEUES_MAX))
    of_queues = (*_of_queues(queues, status.time_ms), *_of_consumers(waiting), *_of_counts("queue", _MESSAGES, counted))
    groups = source.groups(QUEUES_MAX) if status.role == "master" else []
    of_queues = (*of_queues, *_of_groups(groups))
    for lines in (*of_queues, *_of_counts("topic", _PUBLISHED, topics), *_of_counts("topic", _PUSHES, pushes)):
        for part in lines:
            parts.append(part)
            await asyncio.sleep(0)
    return b"".join(parts)


class _Families(Collector):
    """A collector of given families: ``generate_latest`` writes what a collector collects."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _process() -> CollectorRegistry:
    """Return the figures of the process and its interpreter, under the names that dashboards know."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


# --- the member -------------------------------------------------------------------


def _of_member(status: NodeStatus, source: AdminSource) -> Iterator[Metric]:
    own = [*_of_status(status), *_of_members(status)]
    yield from own
    taken = {family.name for family in own}
    for name, value in sorted(source.metrics().items()):
        if PREFIX + name.removesuffix("_total") not in taken:
            told = f"{name.removesuffix('_total').replace('_', ' ').capitalize()}."
            yield (
                _counter(name.removesuffix("_total"), told, value)
                if name.endswith("_total")
                else _gauge(name, told, value)
            )
    for name, (told, histogram) in source.histograms().items():
        family = HistogramMetricFamily(PREFIX + name, told)
        family.add_metric([], _buckets(histogram), histogram.sum)
        yield family


def _of_status(status: NodeStatus) -> Iterator[Metric]:
    build = GaugeMetricFamily(
        f"{PREFIX}build_info", "1 for what runs: compiled modules or pure Python.", labels=["version", "build"]
    )
    build.add_metric([__version__, BUILD.name], 1)
    yield build
    role = GaugeMetricFamily(f"{PREFIX}role", "1 for the role that this member has.", labels=["role"])
    for name in ("master", "follower", "candidate", "proxy"):
        role.add_metric([name], status.role == name)
    yield role
    yield _gauge("is_master", "1 if this member is the master.", status.role == "master")
    yield _gauge("ready", "1 if this member can serve writes.", status.ready)
    yield _gauge("term", "Newest term seen.", status.term)
    yield _gauge("commit_index", "Newest log index known to be committed.", status.commit_index)
    yield _gauge("applied_index", "Newest log index that is applied.", status.applied_index)
    yield _gauge("last_index", "Newest index in this member's log.", status.last_index)
    yield _gauge("stale_seconds", "Time since a master was heard, 0 on the master.", status.stale_ms / 1_000)
    yield _counter("discarded_acked", "Acknowledged entries dropped for a newer master's.", status.discarded)
    yield _gauge("queues", "Queues.", status.queues)
    yield _gauge("leases", "Leases that are remembered, living or not.", status.leases)
    yield _gauge("waiters", "Receives that wait for a message.", status.waiters)
    yield _gauge("held_calls", "Calls that wait for a master.", status.held_calls)
    yield _gauge("contents_bytes", "Message contents in memory.", status.contents_bytes)


def _of_members(status: NodeStatus) -> Iterator[Metric]:
    linked = sum(member.is_linked or member.id == status.member_id for member in status.members)
    yield _gauge("members_linked", "Members that this one talks with, itself included.", linked)
    yield _gauge("voters", "Voters in the log.", len(status.voters))
    yield _gauge("quorum", "Voters that are needed for a write.", len(status.voters) // 2 + 1)
    # Two members may have one name for a while, a dead voter and the one that replaces it: hence the id.
    lag = GaugeMetricFamily(
        f"{PREFIX}replication_lag_entries", "Entries behind the commit index.", labels=["member", "id"]
    )
    for member in status.members:
        if member.lag is not None:
            lag.add_metric([member.name, member.id], member.lag)
    yield lag


# --- requests ---------------------------------------------------------------------


def _of_requests(meter: Meter) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        f"{PREFIX}requests", "Requests that were answered, by action and error code.", labels=["action", "code"]
    )
    times = HistogramMetricFamily(
        f"{PREFIX}request_duration_seconds",
        "From a request's last byte to its answer, without errors; a long poll's wait is part of it.",
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


# --- queues -----------------------------------------------------------------------


async def _queues(source: AdminSource) -> list[QueueFigures]:
    """Return the figures of queues, taken in parts, each part at its own moment."""
    found: list[QueueFigures] = []
    queues = islice(source.queues(), QUEUES_MAX)
    while part := list(islice(queues, PART)):
        found += part
        await asyncio.sleep(0)
    return found


def _counted(meter: Meter, queues: Sequence[QueueFigures], *, is_master: bool) -> list[tuple[Key, Messages]]:
    """Return what was counted of queues that exist; a follower does not know which do, and shows all."""
    if is_master:
        existing = {(queue.account, queue.name) for queue in queues}
        meter.forget(existing.__contains__)
        return [(key, found) for key, found in meter.by_queue().items() if key in existing]
    return list(islice(meter.by_queue().items(), QUEUES_MAX))


def _of_queues(queues: Sequence[QueueFigures], time_ms: int) -> Iterator[Lines]:
    def add_states(family: GaugeMetricFamily, queue: QueueFigures) -> None:
        family.add_metric([queue.name, queue.account, "visible"], queue.visible)
        family.add_metric([queue.name, queue.account, "in_flight"], queue.in_flight)
        family.add_metric([queue.name, queue.account, "delayed"], queue.delayed)

    def add_age(family: GaugeMetricFamily, queue: QueueFigures) -> None:
        age_ms = 0 if queue.oldest_ms is None else max(0, time_ms - queue.oldest_ms)
        family.add_metric([queue.name, queue.account], age_ms / 1_000)

    labels = ["queue", "account"]
    name, told = f"{PREFIX}queue_messages", "Messages in a queue."
    yield _lines(lambda: GaugeMetricFamily(name, told, labels=[*labels, "state"]), queues, add_states)
    oldest, about = f"{PREFIX}queue_oldest_message_age_seconds", "Age of a queue's oldest message, 0 in an empty one."
    yield _lines(lambda: GaugeMetricFamily(oldest, about, labels=labels), queues, add_age)
    dead = [queue for queue in queues if queue.is_dead_letter_queue]

    def add_dead(family: GaugeMetricFamily, queue: QueueFigures) -> None:
        family.add_metric([queue.name, queue.account], queue.visible + queue.in_flight + queue.delayed)

    letters, meaning = f"{PREFIX}dead_letters", "Messages in a queue to which others send their dead letters."
    yield _lines(lambda: GaugeMetricFamily(letters, meaning, labels=labels), dead, add_dead)


def _of_consumers(waiting: Counter[Key]) -> Iterator[Lines]:
    def add(family: GaugeMetricFamily, row: tuple[Key, int]) -> None:
        (account, queue), count = row
        family.add_metric([queue, account], count)

    name, told = f"{PREFIX}queue_consumers", "Receives that wait at a queue."
    yield _lines(lambda: GaugeMetricFamily(name, told, labels=["queue", "account"]), list(waiting.items()), add)


_GROUPS: Final[list[tuple[str, str, Callable[[GroupStatus], float]]]] = [
    ("group_generation", "How often what a consumer group has was shared out anew.", lambda each: each.generation),
    ("group_consumers", "Consumers of a group.", lambda each: each.consumers),
    ("group_idle_consumers", "Consumers of a group that hold nothing.", lambda each: each.idle),
    (
        "group_rebalancing_seconds",
        "How long a sharing out runs, 0 at rest.",
        lambda each: each.rebalancing_ms / 1e3,
    ),
    ("group_rebalanced_seconds", "How long a group's last sharing out took.", lambda each: each.rebalanced_ms / 1e3),
]


def _of_groups(groups: Sequence[GroupStatus]) -> Iterator[Lines]:
    labels = ["group", "account"]
    for name, told, read in _GROUPS:

        def add(family: GaugeMetricFamily, group: GroupStatus, read: Callable[[GroupStatus], float] = read) -> None:
            family.add_metric([group.group, group.account], read(group))

        yield _lines(partial(GaugeMetricFamily, PREFIX + name, told, labels=labels), groups, add)

    def add_states(family: GaugeMetricFamily, group: GroupStatus) -> None:
        family.add_metric([group.group, group.account, "held"], group.held)
        family.add_metric([group.group, group.account, "revoking"], group.revoking)
        family.add_metric([group.group, group.account, "free"], group.free)

    def add_moves(family: CounterMetricFamily, group: GroupStatus) -> None:
        family.add_metric([group.group, group.account], group.moves)

    resources, about = f"{PREFIX}group_resources", "Queues or partitions of a group, by whether somebody has them."
    yield _lines(lambda: GaugeMetricFamily(resources, about, labels=[*labels, "state"]), groups, add_states)
    moves, meaning = f"{PREFIX}group_moves", "Resources that were taken from a consumer so that another one gets them."
    yield _lines(lambda: CounterMetricFamily(moves, meaning, labels=labels), groups, add_moves)


def _of_counts(
    label: str,
    families: Sequence[tuple[str, str, Callable[[Counted], int]]],
    rows: Sequence[tuple[Key, Counted]],
) -> Iterator[Lines]:
    """Yield a counter for each of the families; label: what the names in the rows' keys are of."""
    for name, told, read in families:

        def add(family: CounterMetricFamily, row: tuple[Key, Counted], read: Callable[[Counted], int] = read) -> None:
            (account, named), counted = row
            family.add_metric([named, account], read(counted))

        yield _lines(partial(CounterMetricFamily, PREFIX + name, told, labels=[label, "account"]), rows, add)


def _lines(make: Callable[[], Family], rows: Sequence[Row], add: Callable[[Family, Row], None]) -> Lines:
    """Yield the lines of a family in parts, after its heading.

    They are written here, as generate_latest takes three times as long: names of queues and accounts need no escapes.
    """
    if rows:
        yield generate_latest(_Families([make()]))
    for at in range(0, len(rows), PART):
        family = make()
        for row in rows[at : at + PART]:
            add(family, row)
        yield "".join([_line(sample) for sample in family.samples]).encode()


def _line(sample: Sample) -> str:
    labels = ",".join([f'{name}="{value}"' for name, value in sorted(sample.labels.items())])
    return f"{sample.name}{{{labels}}} {float(sample.value)!r}\n"


# --- one family each --------------------------------------------------------------


def _gauge(name: str, told: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, told, value)


def _counter(name: str, told: str, value: float) -> Metric:
    return CounterMetricFamily(PREFIX + name, told, value)


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Return cumulative counts: each bucket includes all below it."""
    totals = accumulate(histogram.counts)
    return list(zip((*map(str, histogram.bounds), "+Inf"), totals, strict=True))
