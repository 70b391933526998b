"""Backpressure on sends: they are refused while storage is full, and wait while too many contents are not on disk yet.

No bound is checked while ``is_watching`` is False. It becomes True where a
bound may have been passed, and False again when a check finds room.
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
from elasticq.node.outputs import Reply, Ticket

RELEASED_AT_ONCE: Final = 100
"""Others get their turn after so many messages."""


class SendBackpressure:
    """``full_reason`` says why the disk takes no more messages; it is None while there is space."""

    __slots__ = ("_bytes_max", "_content_cache", "_held", "_replies", "_state", "full_reason", "is_watching")

    def __init__(self, state: State, content_cache: ContentCache, replies: list[Reply], memory_bytes_max: int) -> None:
        """``memory_bytes_max`` bounds the message contents that are kept in memory only; 0 means no bound."""
        self._state = state
        self._content_cache = content_cache
        self._replies = replies
        self._bytes_max: float = memory_bytes_max or inf
        self._held: deque[tuple[Call, Ticket]] = deque()  # sends that wait for the rows on disk
        self.full_reason: str | None = None
        self.is_watching = False

    def hold(self, call: Call, ticket: Ticket) -> bool:
        """Refuse a send or let it wait; returns False if the call is no send or has room, and may be executed."""
        if not isinstance(call.command, (SendMessage, SendMessageBatch, Publish, PublishBatch)):
            return False
        reason = self.full_reason or self._memory_full_reason()
        if reason:
            self._replies.append(Reply(ticket, ServiceUnavailable(reason), 0))
            return True
        self.is_watching = self._content_cache.is_full
        if self.is_watching:
            self._held.append((call, ticket))
        return self.is_watching

    def _memory_full_reason(self) -> str:
        """Why a send is refused; empty if memory has room."""
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
        """Check again, as rows on disk moved on, or the disk became full or free; ``released`` gives sends to retry."""
        self.is_watching = self.full_reason is not None or self._content_cache.is_full

    @property
    def may_release(self) -> bool:
        """Whether a send waits that need not wait any longer."""
        return bool(self._held) and (self.full_reason is not None or not self._content_cache.is_full)

    def released(self) -> Iterator[tuple[Call, Ticket]]:
        """Remove and yield the sends that need not wait any longer, the oldest first, of RELEASED_AT_ONCE messages."""
        left = RELEASED_AT_ONCE
        while left > 0 and self.may_release:
            call, ticket = self._held.popleft()
            left -= len(call.command.entries) if isinstance(call.command, SendMessageBatch) else 1
            yield call, ticket

    def give_up(self) -> list[tuple[Call, Ticket]]:
        """Remove and return all sends that wait here."""
        held = list(self._held)
        self._held.clear()
        return held
