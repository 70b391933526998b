"""Metadata of messages that were given back with it, by REST: a small table of its own, as few messages have any."""

from typing import Final

from msgspec import Struct

from elasticq.engine.stored.tables import Table
from elasticq.model.ranges import Number


class MetadataKept(Struct, array_like=True, tag=141, frozen=True, gc=False):
    """The metadata of a message, whole, as it is from now on; what it was sent with is not in it."""

    queue_id: Number
    sequence: Number
    metadata: dict[str, str]


class MetadataForgotten(Struct, array_like=True, tag=142, frozen=True, gc=False):
    """These messages are gone."""

    queue_id: Number
    sequences: list[Number]


MetadataMutation = MetadataKept | MetadataForgotten

METADATA: Final = Table("metadata", ("queue_id", "sequence"), MetadataKept, since=1, is_plain=True)
