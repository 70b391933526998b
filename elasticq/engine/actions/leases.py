"""ReceiveMessage under a lease, and DeleteMessage and ChangeMessageVisibility of whole leases.

LeaseExpired is answered where a lease is over, and what that answer rests on is written down first: whoever
was told so is told so for ever, whatever a failover does to deadlines. Of a batch in which some leases are over
and some live, the living ones are committed, renewed or given back all the same.
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

_WORDS = {m.LEASE_COMMITTED: "was committed", m.LEASE_GIVEN_BACK: "was given back", m.LEASE_EXPIRED: "has expired"}

Change = Callable[[Key, Lease, list[int]], list[m.Mutation]]


def receive_message(state: State, call: Call, command: ReceiveMessage, context: ExecutionContext) -> Outcome:
    """Raises ContentsMissing."""
    attempt = read_attempt(command.receive_request_attempt_id)
    if attempt is None:
        return receive.receive_message(state, call, command, context)
    return _receive(state, call, command, attempt, context, may_seal=False)


def is_leased(call: Call) -> bool:
    """Whether the call is a receive under a lease, whose empty answer must be recorded: see ``last_look``."""
    command = call.command
    return isinstance(command, ReceiveMessage) and read_attempt(command.receive_request_attempt_id) is not None


def seal_or_answer_lease(state: State, call: Call, context: ExecutionContext) -> Outcome:
    """What a leased receive that waits no longer is answered; without messages it seals the lease.

    Raises ContentsMissing and SqsError.
    """
    command = call.command
    assert isinstance(command, ReceiveMessage)
    attempt = read_attempt(command.receive_request_attempt_id)
    assert attempt is not None, "only leases are sealed"
    return _receive(state, call, command, attempt, context, may_seal=True)


# --- receiving ----------------------------------------------------------------------


def _receive(
    state: State, call: Call, command: ReceiveMessage, attempt: Attempt, context: ExecutionContext, *, may_seal: bool
) -> Outcome:
    """An empty result that is not ``leased`` may wait, and then has its ``last_look``."""
    queue = fence.queue_of(state, call, command.queue_url, command, context)
    asked = receive.Asked(queue, command, context.limits)
    check_range(asked.visibility_s, 1, limits.VISIBILITY_S_MAX, "VisibilityTimeout", "A lease has 1 to 43200 seconds")
    key = (queue.id, attempt.name, attempt.batch, attempt.partition)
    lease = state.leases.get(key)
    if lease is None:
        if len(state.leases) >= limits.LEASES_MAX:
            raise OverLimit(f"There are {limits.LEASES_MAX} leases already: commit some, or give them back.")
        lease = Lease(context.now_ms, context.now_ms + asked.visibility_s * 1_000)
    elif not lease.lives(state.grace, context.now_ms):
        return _is_over(key, lease), _end_written(key, lease, context)
    known = lease.calls.get(attempt.call)
    if known is not None and known.sequences:
        return _again(state, queue, asked, key, lease, known, context)
    if lease.is_sealed:
        return ReceiveMessageResult(leased=True), []
    return _next(state, queue, asked, key, lease, attempt.call, context, may_seal=may_seal)


def _next(
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
    """The outcome of a call that a lease, which is not sealed, has not answered before."""
    room = limits.LEASE_MESSAGES_MAX - lease.messages
    limit = min(asked.limit, room, max(limits.IN_FLIGHT_MAX - queue.order.in_flight(context.now_ms), 0))
    chosen, moved = _choose(state, queue, lease, limit, asked.partition, context) if limit else ([], [])
    over = state.leases.expirations(queue.id, state.grace, context.now_ms)
    if len(over) == ENDED_AT_ONCE_MAX:
        chosen, moved = [], []  # nothing is handed out before all are over
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
    """As for any receive, then behind the lease's own messages in groups that nobody else has messages of."""
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
    """Whether the message is in flight and the lease's delivery of it is the newest one."""
    row = queue.rows.get(sequence)
    return row is not None and row.delivery_number == delivery_number and queue.order.is_in_flight(sequence, now_ms)


def _held(queue: Queue, lease: Lease, now_ms: int) -> list[int]:
    return [
        sequence
        for called in lease.calls.values()
        for sequence, delivery_number in zip(called.sequences, called.delivery_numbers, strict=True)
        if _is_held(queue, sequence, delivery_number, now_ms)
    ]


def _again(
    state: State,
    queue: Queue,
    asked: receive.Asked,
    key: Key,
    lease: Lease,
    known: m.LeaseCalled,
    context: ExecutionContext,
) -> Outcome:
    """The same messages under the same handles. If one is not held any more, none is: the lease is over.

    (Somebody deleted it by its own handle, purged it or gave it back; it outlived its retention.) An answer
    that is only like the first one would let its reader commit what it never saw.
    """
    handles = zip(known.sequences, known.delivery_numbers, strict=True)
    if not all(_is_held(queue, sequence, delivery_number, context.now_ms) for sequence, delivery_number in handles):
        ended = [lease.as_set(key, ended_ms=context.now_ms, state=m.LEASE_EXPIRED)]
        return _is_over(key, lease), [*_shown(queue, _held(queue, lease, context.now_ms), context.now_ms), *ended]
    missing = [sequence for sequence in known.sequences if sequence not in queue.contents]
    if missing:
        raise ContentsMissing(missing)
    messages = [receive.message_again(state, queue, sequence, asked) for sequence in known.sequences]
    return ReceiveMessageResult(messages, leased=True), []


def _is_over(key: Key, lease: Lease) -> LeaseExpired:
    _, name, batch, partition = key
    return LeaseExpired(f"The lease {name}/{batch}/{partition} {_WORDS.get(lease.state, 'has expired')}.")


def _end_written(key: Key, lease: Lease, context: ExecutionContext) -> list[m.Mutation]:
    """The mutation that records the expiry of a lease; none if its end is recorded already."""
    return [] if lease.ended_ms else [lease.as_set(key, ended_ms=context.now_ms, state=m.LEASE_EXPIRED)]


def _shown(queue: Queue, sequences: list[int], now_ms: int) -> list[m.Mutation]:
    return [m.VisibilityChanged(queue.id, part, [now_ms] * len(part)) for part in m.chunks(sequences)]


# --- whole leases -------------------------------------------------------------------


def delete_message(state: State, call: Call, command: DeleteMessage, context: ExecutionContext) -> Outcome:
    """With a lease's handle: everything that it still holds goes, and it is committed; again is a success, too."""
    handle = read_lease_handle(command.receipt_handle)
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
    """With a lease's handle: everything that it holds has that deadline from now on; with 0 it is given back.

    A reader that was away for long asks so whether its lease still lives: one that was forgotten is over, too. And
    it gives back what it will not read, opened or not, so that no receive of its that is still on its way opens it.
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
        return _of_none(state, (queue.id, handle.name, handle.batch, handle.partition), context, is_renewal=seconds > 0)
    until_ms = context.now_ms + seconds * 1_000

    def renew(key: Key, lease: Lease, held: list[int]) -> list[m.Mutation]:
        changed = [m.VisibilityChanged(queue.id, part, [until_ms] * len(part)) for part in m.chunks(held)]
        return [*changed, lease.as_set(key, deadline_ms=until_ms)]

    def give_back(key: Key, lease: Lease, held: list[int]) -> list[m.Mutation]:
        ended = lease.as_set(key, ended_ms=context.now_ms, state=m.LEASE_GIVEN_BACK)
        return [*_shown(queue, held, context.now_ms), ended]

    return _change(state, queue, handle, renew if seconds else give_back, context)


def _of_none(state: State, key: Key, context: ExecutionContext, *, is_renewal: bool) -> Outcome:
    """The outcome of a ChangeMessageVisibility with the handle of a lease that does not exist, or no longer."""
    lease = Lease(context.now_ms, context.now_ms)
    if is_renewal:
        return _is_over(key, lease), []
    if len(state.leases) >= limits.LEASES_MAX:
        raise OverLimit(f"There are {limits.LEASES_MAX} leases already: commit some, or give them back.")
    return EmptyResult(), [lease.as_set(key, ended_ms=context.now_ms, state=m.LEASE_GIVEN_BACK)]


def _change(
    state: State, queue: Queue, handle: Handle, change: Change, context: ExecutionContext, is_done: str = ""
) -> Outcome:
    """Change every living lease of the handle. ``is_done``: the state in which a lease needs no change."""
    mutations: list[m.Mutation] = []
    over: list[tuple[Key, Lease]] = []
    for partition, lease in state.leases.of_batch(queue.id, handle):
        key = (queue.id, handle.name, handle.batch, partition)
        if lease.lives(state.grace, context.now_ms):
            mutations += change(key, lease, _held(queue, lease, context.now_ms))
        elif lease.state != is_done:
            mutations += _end_written(key, lease, context)
            over.append((key, lease))
    return _is_over(*over[0]) if over else EmptyResult(), mutations
