"""Peek: a page of messages by sequence, without receiving them. It changes nothing and never waits for messages."""

from collections.abc import Callable
from itertools import islice
from typing import Final

from elasticq.engine import metadata
from elasticq.engine.actions.receive import SYSTEM_ATTRIBUTES, system_attributes
from elasticq.engine.context import ExecutionContext, Outcome, named_queue
from elasticq.engine.ordering.contract import AHEAD_MAX, ContentsMissing
from elasticq.engine.state import Queue, State
from elasticq.engine.stored.contents import check_range, stored_bytes
from elasticq.engine.stored.delivery_rows import Row
from elasticq.engine.stored.mutations import MessageStored
from elasticq.model import limits
from elasticq.model.commands import Call
from elasticq.model.errors import InvalidParameterValue, QueueDoesNotExist, quoted
from elasticq.model.extensions import Peek
from elasticq.model.names import is_inner
from elasticq.model.results import PeekedMessage, PeekResult

WALK_MAX: Final = 10_000  # sequences that one call looks at, including those of deleted messages
LIMIT_DEFAULT: Final = 100
STATES: Final = ("visible", "inflight", "delayed")
_ALL: Final = frozenset(SYSTEM_ATTRIBUTES)


def peek(state: State, call: Call, command: Peek, context: ExecutionContext) -> Outcome:
    """Return a page of messages from a sequence on.

    Raise ContentsMissing if the content of the first message is on disk only. A later message whose content is on disk
    only ends the page. So each call makes progress, even with little memory.
    Raise QueueDoesNotExist for an inner queue, because it may contain the token that confirms its subscription.
    """
    queue = named_queue(state, call, command.queue_url)
    if is_inner(queue.account):
        raise QueueDoesNotExist
    limit = _limit(command)
    is_wanted = _filter(queue, command, context)
    result = PeekResult(last_sequence=queue.last_sequence)
    size_bytes = walked = 0
    for sequence in queue.issued.between(max(command.from_sequence or 0, 0), queue.last_sequence):
        if walked == WALK_MAX or len(result.messages) == limit:
            result.next_sequence = sequence
            break
        walked += 1
        row = queue.row(sequence)
        if row is None or not is_wanted(sequence, None):
            continue
        content = queue.contents.get(sequence)
        if content is None:
            if walked == 1:
                raise ContentsMissing(cold_from(queue, sequence))
            result.next_sequence = sequence
            break
        if is_wanted(sequence, content):
            size_bytes += stored_bytes(content)
            if result.messages and size_bytes > limits.ANSWER_BYTES_MAX:
                result.next_sequence = sequence
                break
            result.messages.append(_peeked(state, queue, content, row, context.now_ms))
    return result, []


def _limit(command: Peek) -> int:
    if command.limit is None:
        return LIMIT_DEFAULT
    return check_range(command.limit, 1, limits.PAGE_SIZE_MAX, "Limit", f"Must be between 1 and {limits.PAGE_SIZE_MAX}")


def _filter(queue: Queue, command: Peek, context: ExecutionContext) -> Callable[[int, MessageStored | None], bool]:
    """Return a function that decides whether the page includes a message.

    Without the content it checks group and state; with the content it checks the time of the send. Call it with both.
    Raise InvalidParameterValue for an unknown state.
    """
    group, states = command.message_group_id, frozenset(command.states or STATES)
    unknown = sorted(states.difference(STATES))
    if unknown:
        raise InvalidParameterValue(
            f"Value {quoted(unknown[0])} for parameter States is invalid. Reason: Must be of {', '.join(STATES)}."
        )
    is_any_state = len(states) == len(STATES)
    from_ms, until_ms = command.sent_from_ms, command.sent_until_ms
    expired_before_ms = queue.expired_before_ms(context.now_ms)

    def is_wanted(sequence: int, content: MessageStored | None) -> bool:
        if content is None:
            if group is not None and queue.order.group_name(sequence) != group:
                return False
            return is_any_state or delivery_state(queue, sequence, context.now_ms) in states
        sent_ms = content.sent_ms
        if sent_ms <= expired_before_ms or (from_ms is not None and sent_ms < from_ms):
            return False
        return until_ms is None or sent_ms < until_ms

    return is_wanted


def delivery_state(queue: Queue, sequence: int, now_ms: int) -> str:
    """Return the state (one of STATES) of an existing message. One that waits for another of its group is visible."""
    if queue.order.is_in_flight(sequence, now_ms):
        return "inflight"
    return "delayed" if queue.order.is_delayed(sequence, now_ms) else "visible"


def cold_from(queue: Queue, first: int) -> list[int]:
    """Return the next messages from ``first`` on whose contents are on disk only, at most AHEAD_MAX."""
    ahead = islice(queue.issued.between(first, queue.last_sequence), WALK_MAX)
    cold = (each for each in ahead if each not in queue.contents and queue.row(each) is not None)
    return list(islice(cold, AHEAD_MAX))


def _peeked(state: State, queue: Queue, content: MessageStored, row: Row, now_ms: int) -> PeekedMessage:
    origin_queue, origin_sequence = content.origin or (queue.id, content.sequence)
    peeked = PeekedMessage(
        state.identity.message_id(origin_queue, origin_sequence),
        content.body,
        content.sequence,
        delivery_state(queue, content.sequence, now_ms),
        system_attributes(queue, content, row.receive_count, row.first_received_ms, _ALL)
        | metadata.shown(state, queue, content.sequence),
        content.attributes,
    )
    if queue.kind.has_priorities:
        peeked.priority = queue.order.priority(content.sequence)
    if queue.partitions and content.group_id is not None:
        peeked.partition = queue.order.partition_of(content.group_id)
    if peeked.state == "delayed" and row.visible_at_ms:
        peeked.deliver_at_ms = row.visible_at_ms
    return peeked
