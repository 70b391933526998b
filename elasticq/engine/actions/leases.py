"""ReceiveMessage under a lease, and DeleteMessage and ChangeMessageVisibility of whole leases.

A call for a lease that is over gets LeaseExpired. The end of the lease is stored before the answer is sent. So the
lease stays over, even if a failover extends deadlines. If some leases of a batch are over, the call still commits,
renews or releases those that live.
"""

from collections.abc import Callable

from elasticq.engine import turns
from elasticq.engine.actions import delete, receive, visibility
from elasticq.engine.consumer_groups import fence
from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.ordering.contract import ContentsMissing
from elasticq.engine.ordering.lease_groups import LeaseGroups
from elasticq.engine.ordering.leases import (
    ENDED_AT_ONCE_MAX,
    HANDLE_PREFIX,
    Attempt,
    Handle,
    Key,
    Lease,
    read_attempt,
    read_lease_handle,
)
from elasticq.engine.redrive import dead_letters as redrive
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.contents import check_range
from elasticq.model import limits
from elasticq.model.commands import Call, ChangeMessageVisibility, DeleteMessage, ReceiveMessage
from elasticq.model.errors import LeaseExpired, MissingParameter, OverLimit
from elasticq.model.results import EmptyResult, ReceiveMessageResult

_END_TEXTS = {m.LEASE_COMMITTED: "was committed", m.LEASE_GIVEN_BACK: "was released", m.LEASE_EXPIRED: "has expired"}

Change = Callable[[Key, Lease, list[int]], list[m.Mutation]]


def receive_message(state: State, call: Call, command: ReceiveMessage, context: ExecutionContext) -> Outcome:
    """Receive messages, under a lease if the ReceiveRequestAttemptId names one. Raise ContentsMissing."""
    attempt_id = command.receive_request_attempt_id
    attempt = None if attempt_id is None else read_attempt(attempt_id)
    if attempt is None:
        return receive.receive_message(state, call, command, context)
    return _receive(state, call, command, attempt, context, may_seal=False)


def is_leased(call: Call) -> bool:
    """Return whether the call is a receive under a lease. ``seal_or_answer_lease`` must record its empty answer."""
    command = call.command
    return isinstance(command, ReceiveMessage) and read_attempt(command.receive_request_attempt_id) is not None


def seal_or_answer_lease(state: State, call: Call, context: ExecutionContext) -> Outcome:
    """Return the answer to a leased receive that has finished waiting. An answer without messages seals the lease.

    Raise ContentsMissing or an SqsError.
    """
    command = call.command
    assert isinstance(command, ReceiveMessage)
    attempt = read_attempt(command.receive_request_attempt_id)
    assert attempt is not None, "the call is a receive under a lease"
    return _receive(state, call, command, attempt, context, may_seal=True)


# --- receiving ----------------------------------------------------------------------


def _receive(
    state: State, call: Call, command: ReceiveMessage, attempt: Attempt, context: ExecutionContext, *, may_seal: bool
) -> Outcome:
    """Return the answer of a lease to one of its numbered receives.

    may_seal: an answer without messages seals the lease. Otherwise it is not ``leased``: the receive may wait, and
    then ``seal_or_answer_lease`` answers it.
    """
    queue = fence.queue_of(state, call, command.queue_url, command, context)
    asked = receive.Asked(queue, command, context.limits)
    check_range(asked.visibility_s, 1, limits.VISIBILITY_S_MAX, "VisibilityTimeout", "A lease has 1 to 43200 seconds")
    context.tally.fetched[queue.id] = context.now_ms
    key = (queue.id, attempt.name, attempt.batch, attempt.partition)
    lease = state.leases.get(key)
    if lease is None:
        if len(state.leases) >= limits.LEASES_MAX:
            raise OverLimit(f"There are {limits.LEASES_MAX} leases already: commit or release some.")
        lease = Lease(context.now_ms, context.now_ms + asked.visibility_s * 1_000)
    elif not lease.lives(state.grace, context.now_ms):
        return _lease_expired(key, lease), _expiry_recorded(key, lease, context)
    known = lease.calls.get(attempt.call)
    if known is not None and known.sequences:
        return _repeated(state, queue, asked, key, lease, known, context)
    if lease.is_sealed:
        return ReceiveMessageResult(leased=True), []
    return _new_receive(state, queue, asked, key, lease, attempt.call, context, may_seal=may_seal)


def _new_receive(
    state: State,
    queue: Queue,
    asked: receive.Asked,
    key: Key,
    lease: Lease,
    number: int,
    context: ExecutionContext,
    *,
    may_seal: bool,
) -> Outcome:
    """Return the answer to a new receive of an unsealed lease, and the mutations that record it."""
    room = limits.LEASE_MESSAGES_MAX - lease.messages
    limit = min(asked.limit, room, max(limits.IN_FLIGHT_MAX - queue.order.in_flight(context.now_ms), 0))
    chosen, moved = _choose(state, queue, lease, limit, asked.partition, context) if limit else ([], [])
    over = state.leases.expirations(queue.id, state.grace, context.now_ms)
    if len(over) == ENDED_AT_ONCE_MAX:
        chosen, moved = [], []  # hand out nothing before all expired leases are recorded
    moved += over
    if not chosen and room and not may_seal:
        return ReceiveMessageResult(), moved
    chosen = receive.fitting(queue, asked, chosen)
    received, messages = receive.deliver(state, queue, asked, chosen, lease.deadline_ms, context)
    called = m.LeaseCalled(*key, number, lease.opened_ms, lease.deadline_ms, chosen, received.delivery_numbers)
    taken: list[m.Mutation] = [received, called, *turns.taken(queue, chosen)] if chosen else [called]
    return ReceiveMessageResult(messages, leased=True), [*taken, *moved]


def _choose(
    state: State, queue: Queue, lease: Lease, limit: int, partition: int | None, context: ExecutionContext
) -> tuple[list[int], list[m.Mutation]]:
    """Return the messages to hand out, and the mutations that move dead letters.

    The choice is that of any receive. If it is too small, messages follow that are blocked only by the lease's own
    messages in flight of the same group.
    """
    chosen, dead = redrive.choose(state, queue, limit, context.now_ms, partition)
    if queue.kind.blocks_groups and lease.messages and len(chosen) < limit and not dead:
        groups = lease.groups = lease.groups or LeaseGroups()
        groups.learn(lease.calls)
        sent_after_ms, room = queue.expired_before_ms(context.now_ms), limit - len(chosen)
        found = queue.order.choose_behind(
            groups, context.now_ms, room, sent_after_ms, may_miss=bool(chosen), partition=partition
        )
        living, dead = redrive.told_apart(state, queue, found)
        chosen += living
    return chosen, redrive.move_to_dead_letters(state, queue, dead, context) if dead else []


def _is_held(queue: Queue, sequence: int, delivery_number: int, now_ms: int) -> bool:
    """Return whether the message is in flight under this delivery number."""
    row = queue.rows.get(sequence)
    return row is not None and row.delivery_number == delivery_number and queue.order.is_in_flight(sequence, now_ms)


def _held(queue: Queue, lease: Lease, now_ms: int) -> list[int]:
    """Return the sequences of the messages that the lease still holds."""
    return [
        sequence
        for called in lease.calls.values()
        for sequence, delivery_number in zip(called.sequences, called.delivery_numbers, strict=True)
        if _is_held(queue, sequence, delivery_number, now_ms)
    ]


def _repeated(
    state: State,
    queue: Queue,
    asked: receive.Asked,
    key: Key,
    lease: Lease,
    known: m.LeaseCalled,
    context: ExecutionContext,
) -> Outcome:
    """Repeat the answer of a numbered receive: the same messages with the same handles.

    If the lease no longer holds one of them, the lease ends and the other messages become visible. A message is lost if
    it was deleted or returned by its own handle, purged, or expired. A repeated answer must be identical: otherwise
    the reader could commit messages that it never saw.
    """
    handles = zip(known.sequences, known.delivery_numbers, strict=True)
    if not all(_is_held(queue, sequence, delivery_number, context.now_ms) for sequence, delivery_number in handles):
        ended = [lease.as_set(key, ended_ms=context.now_ms, state=m.LEASE_EXPIRED)]
        return _lease_expired(key, lease), [
            *_made_visible(queue, _held(queue, lease, context.now_ms), context.now_ms),
            *ended,
        ]
    missing = [sequence for sequence in known.sequences if sequence not in queue.contents]
    if missing:
        raise ContentsMissing(missing)
    messages = [receive.message_again(state, queue, sequence, asked) for sequence in known.sequences]
    return ReceiveMessageResult(messages, leased=True), []


def _lease_expired(key: Key, lease: Lease) -> LeaseExpired:
    _, name, batch, partition = key
    return LeaseExpired(f"The lease {name}/{batch}/{partition} {_END_TEXTS.get(lease.state, 'has expired')}.")


def _expiry_recorded(key: Key, lease: Lease, context: ExecutionContext) -> list[m.Mutation]:
    """Return the mutation that records the expiry of a lease; none if its end is already recorded."""
    return [] if lease.ended_ms else [lease.as_set(key, ended_ms=context.now_ms, state=m.LEASE_EXPIRED)]


def _made_visible(queue: Queue, sequences: list[int], now_ms: int) -> list[m.Mutation]:
    """Return the mutations that make these messages visible."""
    return [m.VisibilityChanged(queue.id, part, [now_ms] * len(part)) for part in m.chunks(sequences)]


# --- whole leases -------------------------------------------------------------------


def delete_message(state: State, call: Call, command: DeleteMessage, context: ExecutionContext) -> Outcome:
    """Delete a message; with the handle of a lease or batch, commit it: delete all messages that it still holds.

    A lease that is already committed is a success.
    """
    text = command.receipt_handle
    handle = read_lease_handle(text) if text and text.startswith(HANDLE_PREFIX) else None
    if handle is None:
        return delete.delete_message(state, call, command, context)
    queue = fence.queue_of(state, call, command.queue_url, command, context)

    def commit(key: Key, lease: Lease, held: list[int]) -> list[m.Mutation]:
        removed = [m.MessagesRemoved(queue.id, part) for part in m.chunks(held)]
        return [*removed, lease.as_set(key, ended_ms=context.now_ms, state=m.LEASE_COMMITTED)]

    return _change(state, queue, handle, commit, context, is_done=m.LEASE_COMMITTED)


def change_message_visibility(
    state: State, call: Call, command: ChangeMessageVisibility, context: ExecutionContext
) -> Outcome:
    """Change the visibility of a message, or with the handle of a lease or batch, of all messages that it holds.

    A timeout above 0 renews the lease; 0 releases it. A reader uses a renewal to find out whether its lease still
    lives: an unknown lease counts as expired. A reader may release a lease that does not exist yet. Then a receive of
    this lease that arrives later gets LeaseExpired and cannot open it.
    """
    handle = read_lease_handle(command.receipt_handle)
    if handle is None:
        return visibility.change_message_visibility(state, call, command, context)
    queue = fence.queue_of(state, call, command.queue_url, command, context)
    seconds = command.visibility_timeout
    if seconds is None:
        raise MissingParameter("The request must contain the parameter VisibilityTimeout.")
    check_range(seconds, 0, limits.VISIBILITY_S_MAX, "VisibilityTimeout", "Must be between 0 and 43200, if provided")
    if handle.partition is not None and not state.leases.of_batch(queue.id, handle):
        return _change_missing(
            state, (queue.id, handle.name, handle.batch, handle.partition), context, is_renewal=seconds > 0
        )
    until_ms = context.now_ms + seconds * 1_000

    def renew(key: Key, lease: Lease, held: list[int]) -> list[m.Mutation]:
        changed = [m.VisibilityChanged(queue.id, part, [until_ms] * len(part)) for part in m.chunks(held)]
        return [*changed, lease.as_set(key, deadline_ms=until_ms)]

    def release_lease(key: Key, lease: Lease, held: list[int]) -> list[m.Mutation]:
        ended = lease.as_set(key, ended_ms=context.now_ms, state=m.LEASE_GIVEN_BACK)
        return [*_made_visible(queue, held, context.now_ms), ended]

    return _change(state, queue, handle, renew if seconds else release_lease, context)


def _change_missing(state: State, key: Key, context: ExecutionContext, *, is_renewal: bool) -> Outcome:
    """Return the outcome of ChangeMessageVisibility for a lease that does not exist."""
    lease = Lease(context.now_ms, context.now_ms)
    if is_renewal:
        return _lease_expired(key, lease), []
    if len(state.leases) >= limits.LEASES_MAX:
        raise OverLimit(f"There are {limits.LEASES_MAX} leases already: commit or release some.")
    return EmptyResult(), [lease.as_set(key, ended_ms=context.now_ms, state=m.LEASE_GIVEN_BACK)]


def _change(
    state: State, queue: Queue, handle: Handle, change: Change, context: ExecutionContext, is_done: str = ""
) -> Outcome:
    """Change every living lease that the handle names.

    Return LeaseExpired for the first lease that is over. is_done: the state of ended leases that count as a success.
    """
    mutations: list[m.Mutation] = []
    over: list[tuple[Key, Lease]] = []
    for partition, lease in state.leases.of_batch(queue.id, handle):
        key = (queue.id, handle.name, handle.batch, partition)
        if lease.lives(state.grace, context.now_ms):
            mutations += change(key, lease, _held(queue, lease, context.now_ms))
        elif lease.state != is_done:
            mutations += _expiry_recorded(key, lease, context)
            over.append((key, lease))
    return _lease_expired(*over[0]) if over else EmptyResult(), mutations
