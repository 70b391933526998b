"""GET /metrics: the text format of Prometheus, version 0.0.4, written by hand as it is a line a figure."""

import os
import re
import time
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from elasticq.node.settings import NodeStatus

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PREFIX: Final = "elasticq_"

_STATM: Final = "/proc/self/statm"
_NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_]")
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class Metric(Struct, frozen=True):
    """``samples``: labels and value; a metric without samples is left out."""

    name: str
    told: str
    samples: list[tuple[dict[str, str], float]]

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.told}"
        yield f"# TYPE {self.name} {'counter' if self.name.endswith('_total') else 'gauge'}"
        for labels, value in self.samples:
            yield f"{self.name}{_braces(labels)} {_number(value)}"


def render(status: NodeStatus, more: dict[str, float]) -> str:
    """All figures of a member; ``more`` are those of its ports and storage, by name without the prefix."""
    own = [*_of_status(status), *_of_members(status), *_of_process()]
    taken = {metric.name for metric in own}
    others = (_other(name, value) for name, value in sorted(more.items()))
    metrics = [*own, *(metric for metric in others if metric.name not in taken)]
    return "".join(f"{line}\n" for metric in metrics if metric.samples for line in metric.lines())


def _of_status(status: NodeStatus) -> Iterator[Metric]:
    yield _plain("is_master", "1 if this member is the master.", status.role == "master")
    yield _plain("ready", "1 if this member can serve writes.", status.ready)
    yield _plain("term", "Newest term seen.", status.term)
    yield _plain("commit_index", "Newest log index known to be committed.", status.commit_index)
    yield _plain("applied_index", "Newest log index that is applied.", status.applied_index)
    yield _plain("last_index", "Newest index in this member's log.", status.last_index)
    yield _plain("stale_ms", "Milliseconds since a master was heard, 0 on the master.", status.stale_ms)
    yield _plain("discarded_acked_total", "Acknowledged entries dropped for a newer master's.", status.discarded)
    yield _plain("queues", "Queues.", status.queues)
    yield _plain("leases", "Leases that are remembered, living or not.", status.leases)
    yield _plain("waiters", "Receives that wait for a message.", status.waiters)
    yield _plain("contents_bytes", "Bytes of message contents in memory.", status.contents_bytes)


def _of_members(status: NodeStatus) -> Iterator[Metric]:
    linked = sum(member.is_linked or member.id == status.member_id for member in status.members)
    yield _plain("members_linked", "Members that this one talks with, itself included.", linked)
    yield _plain("voters", "Voters in the log.", len(status.voters))
    yield _plain("quorum", "Voters that are needed for a write.", len(status.voters) // 2 + 1)
    # Two members may have one name for a while, a dead voter and the one that replaces it: hence the id.
    lags = [
        ({"member": member.name, "id": member.id}, float(member.lag))
        for member in status.members
        if member.lag is not None
    ]
    yield Metric(f"{PREFIX}replication_lag_entries", "Entries behind the commit index.", lags)


def _of_process() -> Iterator[Metric]:
    """Under the names that dashboards know."""
    yield Metric("process_cpu_seconds_total", "User and system CPU time.", [({}, time.process_time())])
    yield Metric("process_resident_memory_bytes", "Resident memory.", [({}, float(n)) for n in _resident_bytes()])


def _resident_bytes() -> list[int]:
    """Nothing where the system does not tell it."""
    try:
        with open(_STATM, encoding="ascii") as file:
            return [int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")]
    except OSError:
        return []


def _other(name: str, value: float) -> Metric:
    clean = PREFIX + _NOT_IN_A_NAME.sub("_", name.removeprefix(PREFIX))
    return Metric(clean, f"{name.removeprefix(PREFIX).replace('_', ' ').strip().capitalize()}.", [({}, value)])


def _plain(name: str, told: str, value: float) -> Metric:
    return Metric(PREFIX + name, told, [({}, value)])


def _braces(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items()) + "}"


def _number(value: float) -> str:
    """Whole numbers without a point: 1e+16 would lose the last digits of an index."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))
