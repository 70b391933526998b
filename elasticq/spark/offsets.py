"""The offsets in Spark's log: the name of the stream, the number of a batch, and its division into shares.

An offset holds all that a replay needs. A query that starts again with other options therefore reads the same batch in
the same way. ``initialOffset`` adds a random part to the name, so a new checkpoint never reuses the ids of an old one.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

VERSION: Final = 1
NAME_CHARACTERS: Final = 60  # of the 80 of a lease's name; the random part needs the others
Json = dict[str, Any]


@dataclass(frozen=True)
class Share:
    """The part of a batch that one task reads: up to ``messages`` messages of one queue.

    bytes_max: the approximate limit for their bodies, in bytes; 0: no limit.
    """

    name: str
    batch: int
    partition: int
    mode: str
    queue_url: str
    messages: int
    bytes_max: int

    @property
    def queue_name(self) -> str:
        return self.queue_url.rpartition("/")[2]


@dataclass(frozen=True)
class Part:
    """The part of a batch that comes from one queue. partitions: its number of tasks."""

    queue_url: str
    partitions: int
    messages: int


@dataclass(frozen=True)
class Offset:
    """The end of a batch.

    planned_ms: when it was planned, by the driver's clock. lease_ms: how long a lease lasts without renewals.
    """

    name: str
    batch: int
    mode: str = ""
    planned_ms: int = 0
    lease_ms: int = 0
    bytes_max: int = 0
    parts: tuple[Part, ...] = ()

    def shares(self) -> list[Share]:
        """Return a share for each task. The messages of a part are divided evenly; the first shares get the rest."""
        count = sum(part.partitions for part in self.parts)
        shares: list[Share] = []
        for part in self.parts:
            least, more = divmod(part.messages, part.partitions)
            for index in range(part.partitions):
                shares.append(
                    Share(
                        self.name,
                        self.batch,
                        len(shares),
                        self.mode,
                        part.queue_url,
                        least + (index < more),
                        -(-self.bytes_max // count),
                    )
                )
        return shares

    def to_json(self) -> Json:
        return {
            "version": VERSION,
            "name": self.name,
            "batch": self.batch,
            "mode": self.mode,
            "plannedMs": self.planned_ms,
            "leaseMs": self.lease_ms,
            "bytes": self.bytes_max,
            "queues": {
                part.queue_url: {"partitions": part.partitions, "messages": part.messages} for part in self.parts
            },
        }


def from_json(offset: Json) -> Offset:
    """Parse an offset. Raise ValueError if another source or a newer version wrote it."""
    if offset.get("version") != VERSION:
        raise ValueError(f"the checkpoint holds an offset that is not of this version of format sqs: {offset}")
    parts = (Part(url, part["partitions"], part["messages"]) for url, part in offset["queues"].items())
    return Offset(
        offset["name"],
        offset["batch"],
        offset["mode"],
        offset["plannedMs"],
        offset["leaseMs"],
        offset["bytes"],
        tuple(parts),
    )


def stream_name(wanted: str, random_part: str) -> str:
    """Return a name for leases and files: the wanted name, without unsafe characters, and the random part."""
    word = re.sub(r"[^A-Za-z0-9_.-]+", "-", wanted)[:NAME_CHARACTERS].strip("-.") or "sqs"
    return f"{word}-{random_part}"
