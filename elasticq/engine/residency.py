"""The set of message contents in memory: local to a member and never visible to clients."""

from typing import Final

from elasticq.engine.state import Queue, State
from elasticq.engine.stored.mutations import MessageStored

OVERHEAD_BYTES: Final = 464  # of a content in memory, without its texts; an estimate
ATTRIBUTE_BYTES: Final = 160  # the same for one attribute
GROUP_BYTES: Final = 512  # of a group in the queue's order; counted per message, as if each had its own group


def content_bytes(content: MessageStored) -> int:
    """Return about how many bytes of memory a content takes.

    Texts count by their size in memory: one character outside the BMP makes each character of a text take four bytes.
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
    """Return ``content_bytes`` plus the memory that the message's group may take in its queue's order."""
    return content_bytes(content) + (0 if content.group_id is None else GROUP_BYTES)


def keep(state: State, queue: Queue, sequence: int, content: MessageStored) -> None:
    """Put the content of the message ``sequence`` into memory. It must not be there yet."""
    size_bytes = weight(content)
    queue.contents[sequence] = content
    queue.messages.bytes += size_bytes
    state.contents_bytes += size_bytes


def drop(state: State, queue: Queue, sequence: int) -> None:
    """Remove the content of the message ``sequence`` from memory if it is there."""
    content = queue.contents.pop(sequence, None)
    if content is not None:
        size_bytes = weight(content)
        queue.messages.bytes -= size_bytes
        state.contents_bytes -= size_bytes


def admit(state: State, queue_id: int, contents: list[MessageStored]) -> list[int]:
    """Put contents that were read from disk into memory; return the sequences of those that were added.

    Contents already in memory, and those of messages that are gone, are skipped.
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
    """Remove a content from memory. The rows on disk must hold it."""
    queue = state.queues.get(queue_id)
    if queue is not None:
        drop(state, queue, sequence)
