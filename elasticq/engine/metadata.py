"""Metadata that a consumer attaches when it returns a message. Later receives can read it until the message is gone."""

from itertools import islice
from typing import Final

import msgspec

from elasticq.engine.context import ExecutionContext
from elasticq.engine.state import Queue, State
from elasticq.engine.stored.contents import check_attributes, message_bytes
from elasticq.engine.stored.metadata_rows import MetadataForgotten, MetadataKept
from elasticq.model import limits
from elasticq.model.commands import MessageAttributeValue
from elasticq.model.errors import InvalidParameterValue, OverLimit

KEPT: Final = "ElasticqMetadata"
"""The system attribute that contains the metadata as JSON. A receive gets it only if it requests it by name."""
LOOKED_AT_A_STEP: Final = 1_000
_encode: Final = msgspec.json.Encoder().encode


def kept(
    state: State, queue: Queue, sequence: int, metadata: dict[str, str], context: ExecutionContext
) -> list[MetadataKept]:
    """Return the mutation that merges ``metadata`` into the metadata of a message; none if that changes nothing.

    Raise InvalidParameterValue if it breaks the rules of message attributes or is too long. Raise OverLimit if too
    many messages have metadata.
    """
    key = (queue.id, sequence)
    before = state.metadata.get(key)
    if before is None and len(state.metadata) >= limits.METADATA_KEPT_MAX:
        raise OverLimit(f"{limits.METADATA_KEPT_MAX} messages have metadata, which is the maximum.")
    whole = metadata if before is None else before.metadata | metadata
    if before is not None and whole == before.metadata:
        return []
    attributes = {name: MessageAttributeValue("String", value) for name, value in whole.items()}
    check_attributes(attributes, context.limits)
    if message_bytes("", attributes) > limits.METADATA_BYTES_MAX:
        raise InvalidParameterValue(f"The metadata must not exceed {limits.METADATA_BYTES_MAX} bytes in total.")
    return [MetadataKept(queue.id, sequence, whole)]


def shown(state: State, queue: Queue, sequence: int) -> dict[str, str]:
    """Return the system attribute ``KEPT`` of a message; empty if the message has no metadata."""
    found = state.metadata.get((queue.id, sequence)) if state.metadata else None
    return {} if found is None else {KEPT: _encode(found.metadata).decode()}


class Forgetter:
    """A cyclic scan of all metadata that finds metadata of messages that are gone."""

    def __init__(self) -> None:
        self._at = 0

    def step(self, state: State) -> list[MetadataForgotten]:
        """Look at the next LOOKED_AT_A_STEP messages; return the mutations that forget metadata of those gone."""
        if self._at >= len(state.metadata):
            self._at = 0
        gone: dict[int, list[int]] = {}
        for queue_id, sequence in islice(state.metadata, self._at, self._at + LOOKED_AT_A_STEP):
            queue = state.queues.get(queue_id)
            if queue is None or queue.row(sequence) is None:
                gone.setdefault(queue_id, []).append(sequence)
        self._at += LOOKED_AT_A_STEP
        return [MetadataForgotten(queue_id, sequences) for queue_id, sequences in gone.items()]
