"""Calls that wait for a master, at the member that accepted them or at a master that is being replaced.

Such a call was not executed yet, or it has an invocation id. A master that finds this id in its history repeats the
answer. An SDK retries for only about 0.1 s by default, so the member must wait for it.
Source: BlazingMQ's retransmission buffers and GUID history.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import islice
from typing import Final

from msgspec.structs import replace

from elasticq.engine.actions.receive import wait_s
from elasticq.engine.state import State
from elasticq.engine.stored.contents import message_bytes
from elasticq.model import topic_commands as t
from elasticq.model.actions import READ_ONLY
from elasticq.model.commands import (
    Call,
    ChangeMessageVisibilityBatch,
    DeleteMessageBatch,
    ReceiveMessage,
    SendMessage,
    SendMessageBatch,
)
from elasticq.model.errors import SqsError
from elasticq.model.group_commands import ElasticqHeartbeat
from elasticq.model.limits import WAIT_S_MAX
from elasticq.node.outputs import HeldCall, Ticket

WAITING_CALLS_MAX: Final = 10_000
# well below the unsent bytes that a link may have, because all calls leave at once
WAITING_BYTES_MAX: Final = 48 * 1_048_576
CALL_BYTES: Final = 1_024  # size of a call without its entries
ENTRY_BYTES: Final = 256  # size of an entry of a batch without its message
ANSWER_MS: Final = 10_000  # how long a master may take to answer, in addition to the call's own wait
HELD_MS_MAX: Final = 55_000  # of a receive including its own wait, because SDKs wait 60 s for an answer


class WaitingCalls:
    """The waiting calls, in the order in which they came. All times are ms of the boot clock.

    state: gives the default wait time of a queue; None at a proxy, which knows no queues.
    wait_s_max: how long a receive may wait for messages.
    hold_ms: how long a call waits for a master, in addition to the wait that it asked for. With 0 only calls that had
        no effect wait, and only for ``read_wait_ms``, as reads always do.
    """

    def __init__(self, state: State | None, hold_ms: int, read_wait_ms: int, wait_s_max: int = WAIT_S_MAX) -> None:
        self.hold_ms = hold_ms
        self._wait_s_max = wait_s_max
        self._state = state
        self._read_wait_ms = read_wait_ms
        self._number = 0
        self._bytes = 0
        self._waiting: dict[int, HeldCall] = {}
        self._by_ticket: dict[Ticket, int] = {}
        self._deadlines: list[tuple[int, int]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def from_now(self, call: Call, ticket: Ticket, now_ms: int) -> HeldCall:
        """Return a call that came now, with the time until which it may wait."""
        return self.after_wait(call, ticket, now_ms + self._wait_ms(call))

    def call_now(self, held: HeldCall, now_ms: int) -> Call:
        """Return the call to be executed now. A receive or heartbeat gets only the rest of its wait time."""
        command, wait_ms = held.call.command, self._wait_ms(held.call)
        if not isinstance(command, (ReceiveMessage, ElasticqHeartbeat)) or not wait_ms:
            return held.call
        if self._state is None and command.wait_time_seconds is None:
            return held.call  # the proxy does not know the queue's default wait time
        left_s = -(-self.left_ms(held, now_ms) // 1_000)
        if left_s * 1_000 >= wait_ms:
            return held.call
        return replace(held.call, command=replace(command, wait_time_seconds=left_s))

    def after_wait(self, call: Call, ticket: Ticket, wait_until_ms: int) -> HeldCall:
        """Return a call whose own wait, for messages or for a change, ends at ``wait_until_ms``."""
        return HeldCall(call, ticket, wait_until_ms + self._patience_ms(call))

    def left_ms(self, held: HeldCall, now_ms: int) -> int:
        """Return how much of the call's own wait, for messages or for a change, is left."""
        return max(held.until_ms - self._patience_ms(held.call) - now_ms, 0)

    def _patience_ms(self, call: Call) -> int:
        """Return how long the call waits for a master, in addition to its own wait.

        The client of a relaxed receive of more than HELD_MS_MAX waits longer for its answer than SDKs do.
        """
        return min(self.hold_ms or ANSWER_MS, max(HELD_MS_MAX - self._wait_ms(call), ANSWER_MS))

    def _wait_ms(self, call: Call) -> int:
        """Return how long the call may wait for messages, or for a change in its consumer group.

        At a proxy, a receive that relies on its queue's wait time gets the longest possible one. A call whose queue
        is unknown here does not wait.
        """
        command = call.command
        if isinstance(command, ElasticqHeartbeat):
            return 1_000 * min(max(command.wait_time_seconds or 0, 0), WAIT_S_MAX)
        if not isinstance(command, ReceiveMessage):
            return 0
        if self._state is None:
            asked_s = WAIT_S_MAX if command.wait_time_seconds is None else command.wait_time_seconds
        else:
            try:
                asked_s = wait_s(self._state, call, command)
            except SqsError:
                asked_s = 0  # this member does not know the queue
        return 1_000 * min(max(asked_s, 0), self._wait_s_max)  # the value is validated when the call is executed

    def may_go_on(self, held: HeldCall, now_ms: int) -> bool:
        """Return whether a call that may have had its effect is executed again, instead of being answered as unknown.

        That is safe for a call with an invocation id, and for a call that changes nothing.
        """
        is_safe = bool(held.call.invocation) or is_read(held.call)
        return is_safe and self.hold_ms > 0 and now_ms < held.until_ms

    def hold(self, held: HeldCall, now_ms: int, *, is_bounded: bool = True) -> bool:
        """Let the call wait until its time is over. Return False if the time is over already.

        With ``is_bounded`` also return False if too many calls wait.
        """
        until_ms = held.until_ms
        if not self.hold_ms or is_read(held.call):
            until_ms = min(until_ms, now_ms + self._read_wait_ms)
        call_bytes = size_bytes(held.call)
        is_full = len(self._waiting) >= WAITING_CALLS_MAX or self._bytes + call_bytes > WAITING_BYTES_MAX
        if (is_full and is_bounded) or until_ms <= now_ms:
            return False
        self._number += 1
        self._bytes += call_bytes
        self._waiting[self._number] = held
        self._by_ticket[held.ticket] = self._number
        heappush(self._deadlines, (until_ms, self._number))
        return True

    def take_some(self, limit: int) -> list[HeldCall]:
        """Remove and return up to ``limit`` calls, those first that came first."""
        return [self._remove(number) for number in list(islice(self._waiting, limit))]

    def take_all(self) -> list[HeldCall]:
        """Remove and return all calls."""
        taken = list(self._waiting.values())
        self._waiting.clear()
        self._by_ticket.clear()
        self._deadlines.clear()
        self._bytes = 0
        return taken

    def take(self, is_taken: Callable[[HeldCall], bool]) -> list[HeldCall]:
        """Remove and return the calls for which ``is_taken`` returns true."""
        found = [number for number, held in self._waiting.items() if is_taken(held)]
        return [self._remove(number) for number in found]

    def pop_expired(self, now_ms: int) -> HeldCall | None:
        """Remove and return the call with the earliest deadline; None if no deadline has passed by ``now_ms``."""
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is None or deadline_ms > now_ms:
            return None
        return self._remove(heappop(self._deadlines)[1])

    def cancel(self, ticket: Ticket) -> None:
        """Remove the call of a client that disconnected. An unknown ticket changes nothing."""
        number = self._by_ticket.get(ticket)
        if number is not None:
            self._remove(number)

    def _remove(self, number: int) -> HeldCall:
        held = self._waiting.pop(number)
        self._bytes -= size_bytes(held.call)
        del self._by_ticket[held.ticket]
        return held

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline; None if no call waits."""
        while self._deadlines and self._deadlines[0][1] not in self._waiting:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None


def is_read(call: Call) -> bool:
    """Return whether the call changes nothing, not even the visibility of a message."""
    return type(call.command).__name__ in READ_ONLY


def may_wait(call: Call) -> bool:
    """Return whether the master may let the call wait: for a message, or for a change in a consumer group."""
    return type(call.command) in (ReceiveMessage, ElasticqHeartbeat)


def size_bytes(call: Call) -> int:
    """Return about how many bytes the call takes in memory and in a frame."""
    command = call.command
    if isinstance(command, SendMessage):
        return CALL_BYTES + message_bytes(command.message_body or "", command.message_attributes)
    if isinstance(command, SendMessageBatch):
        sizes = (message_bytes(entry.message_body or "", entry.message_attributes) for entry in command.entries)
        return CALL_BYTES + ENTRY_BYTES * len(command.entries) + sum(sizes)
    if isinstance(command, t.Publish):
        return CALL_BYTES + message_bytes(command.message or "", command.message_attributes)
    if isinstance(command, t.PublishBatch):
        entries = command.publish_batch_request_entries
        sizes = (message_bytes(entry.message or "", entry.message_attributes) for entry in entries)
        return CALL_BYTES + ENTRY_BYTES * len(entries) + sum(sizes)
    if isinstance(command, (t.CreateTopic, t.Subscribe)):
        return CALL_BYTES + sum(len(value) for value in command.attributes.values())
    if isinstance(command, (t.SetTopicAttributes, t.SetSubscriptionAttributes)):
        return CALL_BYTES + len(command.attribute_value or "")
    if isinstance(command, (DeleteMessageBatch, ChangeMessageVisibilityBatch)):
        return CALL_BYTES + ENTRY_BYTES * len(command.entries)
    return CALL_BYTES
