"""What holds for dead letters and moved messages: at one place at a time, after neither too many receives nor too few.

received_too_often  handed out more often than maxReceiveCount says in a queue with a dead-letter queue
moved_early         a dead letter that was received less often than that
moved_twice         one MessageId entered one queue twice: two hand-outs with one receive count, or two
                    SequenceNumbers
copied              seen at a place that it had left: at the next already, or here and there by turns;
                    or in flight at both

That a dead letter is not lost is the rule of all messages; consumers drain dead-letter queues, too.
"""

from itertools import combinations

from elasticq.checks.history import CreateQueue
from elasticq.checks.story import Finding, HandOut, Message, Story

RECEIVED_TOO_OFTEN, MOVED_EARLY = "received_too_often", "moved_early"
MOVED_TWICE, COPIED = "moved_twice", "copied"

Place = tuple[str, str]  # a queue and a MessageId


def check(story: Story) -> list[Finding]:
    if not story.moves and not any(queue.dead_letter_queue for queue in story.queues.values()):
        return []
    sources = {queue.dead_letter_queue: queue for queue in story.queues.values() if queue.dead_letter_queue}
    findings: list[Finding] = []
    for message in story.messages.values():
        lives = message.lives
        for (queue, _), hand_outs in lives.items():
            findings += _received_too_often(story.queues.get(queue), hand_outs)
            findings += _moved_early(sources.get(queue), hand_outs)
            findings += _moved_twice(hand_outs)
        for one, other in combinations(lives.items(), 2):
            findings += _copied(story, message, one, other)
    return findings


def _received_too_often(queue: CreateQueue | None, hand_outs: list[HandOut]) -> list[Finding]:
    if queue is None or not queue.dead_letter_queue:
        return []
    handles = {hand_out.message.receipt_handle for hand_out in hand_outs}
    often = max(len(handles), *(hand_out.message.receive_count for hand_out in hand_outs))
    if often <= queue.receives_max:
        return []
    evidence = f"{hand_outs[-1]} from {queue.queue}, {often} receives of {queue.receives_max}"
    return [Finding(RECEIVED_TOO_OFTEN, evidence, hand_outs[-1].completed_us)]


def _moved_early(source: CreateQueue | None, hand_outs: list[HandOut]) -> list[Finding]:
    return [
        Finding(MOVED_EARLY, f"{hand_out}: receive {hand_out.message.receive_count}", hand_out.completed_us)
        for hand_out in hand_outs
        if source is not None and hand_out.message.is_dead_letter
        if 0 < hand_out.message.receive_count <= source.receives_max
    ]


def _moved_twice(hand_outs: list[HandOut]) -> list[Finding]:
    """A handle that is told twice is one hand-out."""
    findings = []
    told = {hand_out.message.receipt_handle: hand_out for hand_out in hand_outs}
    for one, other in combinations(told.values(), 2):
        same_count = one.message.receive_count == other.message.receive_count > 0
        if same_count or one.message.sequence_number != other.message.sequence_number:
            evidence = f"{one}, then {other}: receive {other.message.receive_count} of both, or two sequence numbers"
            findings.append(Finding(MOVED_TWICE, evidence, other.completed_us))
    return findings


def _copied(
    story: Story, message: Message, one: tuple[Place, list[HandOut]], other: tuple[Place, list[HandOut]]
) -> list[Finding]:
    for (place, first), (next_place, second) in ((one, other), (other, one)):
        left_us = max(hand_out.taken_by.invoke_us for hand_out in first)
        come_us = min(hand_out.completed_us for hand_out in first)
        if _rank(message, place) < _rank(message, next_place):
            come_us = -1  # it was there before, whether anybody saw it or not
        if any(come_us < each.taken_by.invoke_us and each.completed_us < left_us for each in second):
            return [Finding(COPIED, f"{message}: {first[0]}, {second[0]}, then {first[-1]}", left_us)]
    pairs = [(a, b) for a in one[1] for b in other[1] if story.overlap(a, b)]
    return [Finding(COPIED, f"{message}: {a} and {b}", b.completed_us) for a, b in pairs[:1]]


def _rank(message: Message, place: Place) -> int:
    """First it is where it was sent, then a dead letter; then moves give it ids whose order is not known."""
    queue, message_id = place
    if list(message.answered_ids) != [message_id]:
        return 2
    return int(queue != message.queue)
