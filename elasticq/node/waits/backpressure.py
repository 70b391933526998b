"""Backpressure on sends: the master refuses sends while storage is full, and delays them while the disk is behind.

A send waits while too many message contents exist in memory only and are not yet in the rows on disk.

The executor checks no bound while ``is_watching`` is False. It becomes True when a bound may have been passed. It
becomes False when a check finds space.
"""

from collections import deque
from collections.abc import Iterator
from math import inf
from typing import Final

from elasticq.engine.state import State
from elasticq.model.commands import Call, SendMessage, SendMessageBatch
from elasticq.model.errors import ServiceUnavailable
from elasticq.model.topic_commands import Publish, PublishBatch
from elasticq.node.content_cache import ContentCache
from elasticq.node.outputs import Ticket
from elasticq.node.reply import Reply
from elasticq.node.waits.waiting_calls import size_bytes

RELEASED_AT_ONCE: Final = 100
"""The number of messages after which ``released`` pauses, so that other calls can run."""
HELD_MAX: Final = 10_000
HELD_BYTES_MAX: Final = 64 * 1_048_576
TOO_MANY: Final = "Too many sends wait until the disk has their messages; try again later."


class SendBackpressure:
    """The sends that wait for space, and the rules for new ones.

    ``full_reason`` is the reason why the disk takes no more messages. It is None while the disk has space.
    """

    def __init__(self, state: State, content_cache: ContentCache, replies: list[Reply], memory_bytes_max: int) -> None:
        """Create it without waiting sends.

        ``memory_bytes_max`` bounds the message contents of a memory-only member. 0 means no bound.
        """
        self._state = state
        self._content_cache = content_cache
        self._replies = replies
        self._bytes_max: float = memory_bytes_max or inf
        self.held: deque[tuple[Call, Ticket]] = deque()  # sends that wait until the rows on disk hold more contents
        self._held_bytes = 0
        self.full_reason: str | None = None
        self.is_watching = False

    def hold(self, call: Call, ticket: Ticket) -> bool:
        """Refuse a send or let it wait. Return False if the call may be executed now.

        That is so if the call is no send, or if there is space for it. Refuse it, too, if HELD_MAX sends or
        HELD_BYTES_MAX wait.
        """
        if not isinstance(call.command, (SendMessage, SendMessageBatch, Publish, PublishBatch)):
            return False
        reason = self.full_reason or self._memory_full_reason()
        if reason:
            self._replies.append(Reply(ticket, ServiceUnavailable(reason), 0))
            return True
        self.is_watching = self._content_cache.is_full
        if self.is_watching:
            held_bytes = self._held_bytes + size_bytes(call)
            if len(self.held) >= HELD_MAX or held_bytes > HELD_BYTES_MAX:
                self._replies.append(Reply(ticket, ServiceUnavailable(TOO_MANY), 0))
            else:
                self._held_bytes = held_bytes
                self.held.append((call, ticket))
        return self.is_watching

    def _memory_full_reason(self) -> str:
        """Return why a send is refused, or an empty text if memory has space."""
        if self._state.contents_bytes <= self._bytes_max:
            return ""
        return "Memory for messages is full (storage.memory_max_mb)."

    def contents_came(self) -> None:
        if self._state.contents_bytes > self._bytes_max:
            self.is_watching = True

    def contents_pinned(self) -> None:
        if self._content_cache.is_full:
            self.is_watching = True

    def look(self) -> None:
        """Check the bounds again. Call this when the rows on disk advanced, or when the disk became full or free.

        The caller then retries the sends that ``released`` yields.
        """
        self.is_watching = self.full_reason is not None or self._content_cache.is_full

    @property
    def may_release(self) -> bool:
        """Return whether a waiting send can go on: to be executed, or to be refused because the disk is full."""
        return bool(self.held) and (self.full_reason is not None or not self._content_cache.is_full)

    def released(self) -> Iterator[tuple[Call, Ticket]]:
        """Remove and yield sends that need not wait any longer, the oldest first.

        Stop after RELEASED_AT_ONCE messages.
        """
        left = RELEASED_AT_ONCE
        while left > 0 and self.may_release:
            call, ticket = self.held.popleft()
            self._held_bytes -= size_bytes(call)
            left -= len(call.command.entries) if isinstance(call.command, SendMessageBatch) else 1
            yield call, ticket

    def give_up(self) -> list[tuple[Call, Ticket]]:
        """Remove and return all waiting sends."""
        held = list(self.held)
        self.held.clear()
        self._held_bytes = 0
        return held
