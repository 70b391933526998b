"""How many messages one call may carry: ten anywhere, a thousand by the light client against elasticq."""

from dataclasses import dataclass
from typing import Any

from elasticq.spark.clients import chosen, on_elasticq
from elasticq.spark.options import Connection

AWS_PAGE = 10
LIGHT_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Pages:
    """The size of a page. ``size_max``: messages in one receive, or entries in one batch call."""

    size_max: int
    is_extended: bool

    def receiving(self, size: int) -> dict[str, Any]:
        """Return the member of a receive that asks for ``size`` messages."""
        return {"ElasticqPageSize": size} if self.is_extended else {"MaxNumberOfMessages": size}


def batching(size: int) -> dict[str, Any]:
    """Return the member of a batch call that allows ``size`` entries; none is needed up to AWS's own bound."""
    return {"ElasticqPageSize": size} if size > AWS_PAGE else {}


def pages_for(connection: Connection, wanted: int = 0) -> Pages:
    """Return the page size of client and server, at most ``wanted`` if that is not 0. Raise Unreachable."""
    is_extended = chosen(connection) == "light" and on_elasticq(connection)
    size_max = LIGHT_PAGE if is_extended else AWS_PAGE
    return Pages(min(wanted or size_max, size_max), is_extended)
