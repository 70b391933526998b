"""Which contents are in memory. No part of the replicated state: members differ, and nobody can tell."""

from typing import Final

from elasticq.engine.state import Queue, State
from elasticq.engine.stored.mutations import MessageStored

OVERHEAD_BYTES: Final = 464  # what a content costs in memory besides its texts, about
ATTRIBUTE_BYTES: Final = 160  # the same of an attribute
GROUP_BYTES: Final = 512  # a group of its own, in its queue's order: nobody knows yet how many will share it


def content_bytes(content: MessageStored) -> int:
    """About how many bytes of memory a content takes.

    Texts count by their size in memory: one character beyond the BMP makes every character of a text take four bytes.
    """
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
    """``content_bytes``, and what the message's group may take in its queue's order."""
    return content_bytes(content) + (0 if content.group_id is None else GROUP_BYTES)


def keep(state: State, queue: Queue, sequence: int, content: MessageStored) -> None:
    """Put the content of the message ``sequence`` into memory that is not there."""
    size_bytes = weight(content)
    queue.contents[sequence] = content
    queue.messages.bytes += size_bytes
    state.contents_bytes += size_bytes


def drop(state: State, queue: Queue, sequence: int) -> None:
    """Take the content out of memory if it is there."""
    content = queue.contents.pop(sequence, None)
    if content is not None:
        size_bytes = weight(content)
        queue.messages.bytes -= size_bytes
        state.contents_bytes -= size_bytes


def admit(state: State, queue_id: int, contents: list[MessageStored]) -> list[int]:
    """Put contents that were read from disk into memory.

    Returns the sequences of those that were not in memory and whose messages still exist.
    """
    queue = state.queues.get(queue_id)
    if queue is None:
        return []
    admitted = []
    for content in contents:
        sequence = content.sequence
        if sequence not in queue.contents and queue.row(sequence) is not None:
            keep(state, queue, sequence, content)
            admitted.append(sequence)
    return admitted


def evict(state: State, queue_id: int, sequence: int) -> None:
    """Take a content out of memory that the rows on disk hold."""
    queue = state.queues.get(queue_id)
    if queue is not None:
        drop(state, queue, sequence)
