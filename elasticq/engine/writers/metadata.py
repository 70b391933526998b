"""The effects of mutations on the metadata of returned messages."""

from typing import Final

from elasticq.engine.stored.metadata_rows import METADATA, MetadataForgotten, MetadataKept
from elasticq.engine.stored.tables import Drop, Put, RowChange
from elasticq.engine.writers.contract import Declare


def _kept_rows(mutation: MetadataKept) -> list[RowChange]:
    return [Put(METADATA, (mutation.queue_id, mutation.sequence), mutation)]


def _forgotten_rows(mutation: MetadataForgotten) -> list[RowChange]:
    return [Drop(METADATA, (mutation.queue_id, sequence)) for sequence in mutation.sequences]


ROWS: Final[dict[type, Declare]] = {MetadataKept: _kept_rows, MetadataForgotten: _forgotten_rows}
