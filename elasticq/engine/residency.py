"""Which contents are in memory. No part of the replicated state: members differ, and nobody can tell."""

from typing import Final

from elasticq.engine.mutations import MessageStored
from elasticq.engine.state import Queue, State

OVERHEAD_BYTES: Final = 464  # what a content costs in memory besides its texts, about
ATTRIBUTE_BYTES: Final = 160  # the same of an attribute
GROUP_BYTES: Final = 512  # a group of its own, in its queue's order: nobody knows yet how many will share it


def content_bytes(content: MessageStored) -> int:
    """Bytes of memory, about. Of texts their size as they are kept: one odd character makes each of them four bytes."""
    size_bytes = content.body.__sizeof__() + OVERHEAD_BYTES
    if content.attributes:
        for name, value in content.attributes.items():
            size_bytes += name.__sizeof__() + ATTRIBUTE_BYTES
            for text in (value.data_type, value.string_value, value.binary_value):
                if text:
                    size_bytes += text.__sizeof__()
    if content.trace_header is not None:
        size_bytes += content.trace_header.__sizeof__()
    if content.deduplication_id is not None:
        size_bytes += content.deduplication_id.__sizeof__()
    return size_bytes


def weight(content: MessageStored) -> int:
    """With what stands beside it in its queue's order."""
    return content_bytes(content) + (0 if content.group_id is None else GROUP_BYTES)


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
