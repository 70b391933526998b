"""The rows of metadata that clients added to messages by REST when they returned them.

They have a table of their own, because few messages have such metadata.
"""

from typing import Final

from msgspec import Struct

from elasticq.engine.stored.tables import Table
from elasticq.model.ranges import Number


class MetadataKept(Struct, array_like=True, tag=141, frozen=True, gc=False):
    """The full added metadata of a message, without the metadata it was sent with."""

    queue_id: Number
    sequence: Number
    metadata: dict[str, str]


class MetadataForgotten(Struct, array_like=True, tag=142, frozen=True, gc=False):
    """The deletion of the metadata of these messages, which are deleted."""

    queue_id: Number
    sequences: list[Number]


MetadataMutation = MetadataKept | MetadataForgotten

METADATA: Final = Table("metadata", ("queue_id", "sequence"), MetadataKept, is_plain=True)
