"""The number of messages of a call: at most ten, or a thousand by the light client on elasticq."""

from dataclasses import dataclass
from typing import Any

from elasticq.spark.clients import chosen, on_elasticq
from elasticq.spark.options import Connection

AWS_PAGE = 10
LIGHT_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Pages:
    """The limit of a call.

    size_max: most messages of a receive, or entries of a batch call. is_extended: whether it is elasticq's limit.
    """

    size_max: int
    is_extended: bool

    def receiving(self, size: int) -> dict[str, Any]:
        """Return the member of a receive that requests ``size`` messages."""
        return {"ElasticqPageSize": size} if self.is_extended else {"MaxNumberOfMessages": size}


def batching(size: int) -> dict[str, Any]:
    """Return the member of a batch call that allows ``size`` entries; {} up to the limit of AWS."""
    return {"ElasticqPageSize": size} if size > AWS_PAGE else {}


def pages_for(connection: Connection, wanted: int = 0) -> Pages:
    """Return the limit of a connection's client and server. Raise Unreachable.

    wanted: a smaller limit; 0: none.
    """
    is_extended = chosen(connection) == "light" and on_elasticq(connection)
    size_max = LIGHT_PAGE if is_extended else AWS_PAGE
    return Pages(min(wanted or size_max, size_max), is_extended)
