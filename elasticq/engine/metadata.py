"""Metadata that a consumer gives a message back with: kept, shown with the message, and forgotten after it."""

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
"""The system attribute under which it is shown, as JSON, where it is asked for by this name."""
LOOKED_AT_A_STEP: Final = 1_000
_encode: Final = msgspec.json.Encoder().encode


def kept(
    state: State, queue: Queue, sequence: int, metadata: dict[str, str], context: ExecutionContext
) -> list[MetadataKept]:
    """The mutation that keeps ``metadata`` beside what was kept before; none where that changes nothing.

    Raises InvalidParameterValue for what no message's attributes may be, and OverLimit.
    """
    key = (queue.id, sequence)
    before = state.metadata.get(key)
    if before is None and len(state.metadata) >= limits.METADATA_KEPT_MAX:
        raise OverLimit(f"{limits.METADATA_KEPT_MAX} messages were given back with metadata, and no more may be.")
    whole = metadata if before is None else before.metadata | metadata
    if before is not None and whole == before.metadata:
        return []
    attributes = {name: MessageAttributeValue("String", value) for name, value in whole.items()}
    check_attributes(attributes, context.limits)
    if message_bytes("", attributes) > limits.METADATA_BYTES_MAX:
        raise InvalidParameterValue(f"The metadata must be shorter than {limits.METADATA_BYTES_MAX} bytes together.")
    return [MetadataKept(queue.id, sequence, whole)]


def shown(state: State, queue: Queue, sequence: int) -> dict[str, str]:
    """The attribute ``KEPT``, where the message has one."""
    found = state.metadata.get((queue.id, sequence)) if state.metadata else None
    return {} if found is None else {KEPT: _encode(found.metadata).decode()}


class Forgetter:
    """Goes round the kept metadata, LOOKED_AT_A_STEP at a time, and finds that of messages that are gone."""

    __slots__ = ("_at",)

    def __init__(self) -> None:
        self._at = 0

    def step(self, state: State) -> list[MetadataForgotten]:
        if self._at >= len(state.metadata):
            self._at = 0
        gone: dict[int, list[int]] = {}
        for queue_id, sequence in islice(state.metadata, self._at, self._at + LOOKED_AT_A_STEP):
            queue = state.queues.get(queue_id)
            if queue is None or queue.row(sequence) is None:
                gone.setdefault(queue_id, []).append(sequence)
        self._at += LOOKED_AT_A_STEP
        return [MetadataForgotten(queue_id, sequences) for queue_id, sequences in gone.items()]
