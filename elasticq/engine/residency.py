"""Which contents are in memory. No part of the replicated state: members differ, and nobody can tell."""

from typing import Final

from elasticq.engine.mutations import MessageStored
from elasticq.engine.state import Queue, State

OVERHEAD_BYTES: Final = 512  # what a content costs in memory besides its body, about


def weight(content: MessageStored) -> int:
    """Bytes of memory, about."""
    size_bytes = len(content.body) + OVERHEAD_BYTES
    if content.attributes:
        for name, value in content.attributes.items():
            size_bytes += len(name) + len(value.string_value or "") + len(value.binary_value or b"") + OVERHEAD_BYTES
    return size_bytes


def keep(state: State, queue: Queue, content: MessageStored) -> None:
    """The content, which was not there, is in memory from now on."""
    size_bytes = weight(content)
    queue.contents[content.sequence] = content
    queue.messages.bytes += size_bytes
    state.contents_bytes += size_bytes


def drop(state: State, queue: Queue, sequence: int) -> None:
    """The content, if it is in memory, is not any more."""
    content = queue.contents.pop(sequence, None)
    if content is not None:
        size_bytes = weight(content)
        queue.messages.bytes -= size_bytes
        state.contents_bytes -= size_bytes


def admit(state: State, queue_id: int, contents: list[MessageStored]) -> list[int]:
    """Contents that came from disk are in memory now; the sequences of those that were not there and still exist."""
    queue = state.queues.get(queue_id)
    if queue is None:
        return []
    admitted = []
    for content in contents:
        sequence = content.sequence
        if sequence not in queue.contents and queue.row(sequence) is not None:
            keep(state, queue, content)
            admitted.append(sequence)
    return admitted


def evict(state: State, queue_id: int, sequence: int) -> None:
    """The rows on disk hold the content: memory need not."""
    queue = state.queues.get(queue_id)
    if queue is not None:
        drop(state, queue, sequence)
