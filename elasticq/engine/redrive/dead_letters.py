"""Dead letters: the check of a RedrivePolicy, the choice of dead letters, and their move to the dead-letter queue."""

from msgspec.structs import replace

from elasticq.engine.context import ExecutionContext
from elasticq.engine.ordering.kinds import Kind
from elasticq.engine.priorities import kept
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.contents import stored_bytes
from elasticq.engine.stored.delivery_rows import UNTOUCHED
from elasticq.engine.stored.identity import next_sequence
from elasticq.engine.stored.redrive_policies import ALLOW_POLICY, POLICY, read_allow_policy, read_policy, refuse
from elasticq.model.limits import BURIED_BYTES_MAX, MUTATION_ROWS_MAX
from elasticq.model.names import arn_region, parse_queue_arn, queue_arn


def check_target(
    state: State, owner: str, name: str, kind: Kind, given: dict[str, str], context: ExecutionContext
) -> None:
    """Raise InvalidParameterValue unless a RedrivePolicy names a valid dead-letter queue.

    It must exist, have the account, region and type of the source, and allow this source.
    given: checked attributes that are being set on the source; without a RedrivePolicy nothing is checked.
    owner, name, kind: of the source queue.
    """
    value = given.get(POLICY)
    if not value:
        return
    policy = read_policy(value, owner)
    if policy.target[0] != owner:
        refuse(POLICY, value, "Dead letter target owner should be same as the source.")
    target = state.names.get(policy.target) if context.is_in_region(policy.region, owner) else None
    if target is None:
        refuse(POLICY, value, "Dead letter target does not exist.")
    if not target.kind.exchanges_with(kind):
        refuse(POLICY, value, "Dead-letter queue must be same type of queue as the source.")
    if not _allows(target, (owner, name), context):
        refuse(POLICY, value, "The dead letter target's RedriveAllowPolicy does not allow this source queue.")


def _allows(target: Queue, source: tuple[str, str], context: ExecutionContext) -> bool:
    value = target.attributes.get(ALLOW_POLICY)
    if not value:
        return True
    permission, sources = read_allow_policy(value)
    return permission == "allowAll" or any(
        parse_queue_arn(each, source[0]) == source and context.is_in_region(arn_region(each), source[0])
        for each in sources
    )


def dead_letter_queue(state: State, queue: Queue) -> Queue | None:
    """Return the dead-letter queue of ``queue``; None if it has none or it was deleted. Then dead letters stay."""
    return state.names.get(queue.redrive.target) if queue.redrive is not None else None


# --- dead letters ----------------------------------------------------------------------


def choose(
    state: State, queue: Queue, limit: int, now_ms: int, partition: int | None = None
) -> tuple[list[int], list[int]]:
    """Return up to ``limit`` messages to hand out, and the dead letters that are due before or between them.

    A message that was received maxReceiveCount times becomes a dead letter instead of being delivered again.
    partition: choose only from this partition; None: from the whole queue.
    Raise ContentsMissing if the content of the next message is on disk only.
    """
    expired_before_ms = queue.expired_before_ms(now_ms)
    chosen = _chosen(queue, partition, now_ms, limit, expired_before_ms)
    policy = queue.redrive
    if policy is None or not chosen or dead_letter_queue(state, queue) is None:
        return chosen, []
    asked = limit
    while True:
        living, dead = _divided(queue, chosen, limit, policy.receives)
        if not dead or len(chosen) < asked or len(living) == limit or asked >= MUTATION_ROWS_MAX:
            return _limited_to_entry(queue, living, dead)
        asked = min(limit + 2 * len(dead), MUTATION_ROWS_MAX)
        chosen = _chosen(queue, partition, now_ms, asked, expired_before_ms)


def _chosen(queue: Queue, partition: int | None, now_ms: int, limit: int, expired_before_ms: int) -> list[int]:
    if partition is None:
        return queue.order.choose(now_ms, limit, expired_before_ms)
    return queue.order.choose_in(partition, now_ms, limit, expired_before_ms)


def told_apart(state: State, queue: Queue, chosen: list[int]) -> tuple[list[int], list[int]]:
    """Divide ``chosen`` into the messages to hand out and the dead letters, as many as fit into one entry."""
    policy = queue.redrive
    if policy is None or dead_letter_queue(state, queue) is None:
        return chosen, []
    return _limited_to_entry(queue, *_divided(queue, chosen, len(chosen), policy.receives))


def _limited_to_entry(queue: Queue, living: list[int], dead: list[int]) -> tuple[list[int], list[int]]:
    """Return ``living`` and ``dead`` if all dead letters fit into one entry.

    Otherwise return no living messages, and only the dead letters that fit: the others must be moved first.
    """
    room_bytes = BURIED_BYTES_MAX
    for at, sequence in enumerate(dead):
        room_bytes -= stored_bytes(queue.contents[sequence])
        if room_bytes < 0 and at:
            return [], dead[:at]
    return living, dead


def _divided(queue: Queue, chosen: list[int], limit: int, receives: int) -> tuple[list[int], list[int]]:
    """Return the first ``limit`` messages that are not dead letters, and the dead letters that come before them."""
    living: list[int] = []
    dead: list[int] = []
    for sequence in chosen:
        if len(living) == limit:
            break
        is_dead = queue.rows.get(sequence, UNTOUCHED).receive_count >= receives
        (dead if is_dead else living).append(sequence)
    return living, dead


def move_to_dead_letters(state: State, queue: Queue, dead: list[int], context: ExecutionContext) -> list[m.Mutation]:
    """Return the mutations that move dead letters to the dead-letter queue. Their contents must be in memory."""
    target = dead_letter_queue(state, queue)
    assert target is not None, "only a queue with a dead-letter queue has dead letters"
    arn = queue_arn(context.region, queue.account, queue.name)
    found: list[m.Mutation] = []
    sequence = next_sequence(target.last_sequence, context.term)
    for at, each in enumerate(dead):
        stored = _as_dead_letter(state, queue, target, each, sequence + at, arn, context)
        found += [stored, *kept(queue, each, target, stored)]
    found += [m.MessagesRemoved(queue.id, part) for part in m.chunks(dead)]
    return found


def _as_dead_letter(
    state: State, queue: Queue, target: Queue, sequence: int, new_sequence: int, arn: str, context: ExecutionContext
) -> m.MessageStored:
    """Return the message as it is stored in the dead-letter queue.

    It keeps MessageId, body, attributes and trace header, and its receive count continues. If the target's kind
    ``renews_dead_letters``, its age counts from the move, else from the first send. If the target's kind
    ``deduplicates_all``, its MessageId becomes its deduplication id. Source of both rules: AWS's developer guide.
    """
    content = queue.contents[sequence]
    origin = content.origin or (queue.id, sequence)
    before = content.dead_letter.receive_count if content.dead_letter is not None else 0
    return replace(
        content,
        queue_id=target.id,
        sequence=new_sequence,
        sent_ms=context.now_ms if target.kind.renews_dead_letters else content.sent_ms,
        visible_at_ms=0,
        origin=origin,
        dead_letter=m.DeadLetter(arn, before + queue.rows.get(sequence, UNTOUCHED).receive_count),
        deduplication_id=state.identity.message_id(*origin) if target.kind.deduplicates_all else None,
    )
