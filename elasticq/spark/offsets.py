"""What stands in Spark's offset log: the name of the stream, the number of a batch, and how it is divided.

All that a replay needs is in it, so that a query that starts again with other
options reads the same batch in the same way. The name has a random part from
``initialOffset``: a new checkpoint can never meet the ids of an old one.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

VERSION: Final = 1
NAME_CHARACTERS: Final = 60  # of the 80 that the name of a lease may have; the rest is the random part
Json = dict[str, Any]


@dataclass(frozen=True)
class Share:
    """What one task reads: up to ``messages`` messages (and about ``bytes_max`` bytes, 0: no bound) of one queue."""

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
    """What a batch takes from one queue."""

    queue_url: str
    partitions: int
    messages: int


@dataclass(frozen=True)
class Offset:
    """The end of a batch. planned_ms: planning time by the driver's clock; lease_ms: life of an unrenewed lease."""

    name: str
    batch: int
    mode: str = ""
    planned_ms: int = 0
    lease_ms: int = 0
    bytes_max: int = 0
    parts: tuple[Part, ...] = ()

    def shares(self) -> list[Share]:
        """Return a share for each task; the first ones of a part get one message more if it does not divide evenly."""
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
    """Parse an offset. Raise ValueError if it is of another source or of a newer version."""
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
    """Return a name for leases and files: what people call the query, and a part that makes it unique."""
    word = re.sub(r"[^A-Za-z0-9_.-]+", "-", wanted)[:NAME_CHARACTERS].strip("-.") or "sqs"
    return f"{word}-{random_part}"
