"""A model of couriers: numbered streams that carry messages from one shard to another (issue: many masters).

Both shards are replicated logs. A master applies an entry when it appends it; a new master may lack the newest entries
that were not committed. Frames between the shards can be lost, repeated and late for any time. The destination queue
can be deleted and created again. The search covers all orders of these events.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pytest

from tests.system.models.explorer import Explorer, Found

MESSAGES = (1, 2)
NUMBERS_MAX = 5  # of the stream: each refusal sends a message again, under a new number
FLIPS_MAX = 3  # deletions and creations of the destination queue
PENDING_MAX = 2  # entries of a log that are not committed


class Source(NamedTuple):
    """The rows of the source. outgoing: (number, message), not settled. settled: up to this number."""

    queue: tuple[int, ...] = MESSAGES
    outgoing: tuple[tuple[int, int], ...] = ()
    last: int = 0
    settled: int = 0


class Destination(NamedTuple):
    """The rows of the destination. gone: messages that were deleted together with the queue."""

    stored: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()
    up_to: int = 0
    refused: frozenset[int] = frozenset()
    has_queue: bool = True
    flips: int = 0


class Transfer(NamedTuple):
    number: int
    message: int
    settled: int


class Taken(NamedTuple):
    up_to: int
    refused: frozenset[int]


class World(NamedTuple):
    """Committed rows, the rows after each entry that is not committed, and all frames that were ever sent."""

    source: Source = Source()
    source_pending: tuple[Source, ...] = ()
    destination: Destination = Destination()
    destination_pending: tuple[Destination, ...] = ()
    transfers: frozenset[Transfer] = frozenset()
    answers: frozenset[Taken] = frozenset()

    @property
    def sender(self) -> Source:
        """Return the rows as the source's master sees them."""
        return self.source_pending[-1] if self.source_pending else self.source

    @property
    def receiver(self) -> Destination:
        return self.destination_pending[-1] if self.destination_pending else self.destination


def steps(world: World, plant: str = "") -> Iterator[tuple[str, World]]:
    yield from _log_steps(world, plant)
    if len(world.source_pending) < PENDING_MAX:
        for name, after in _source_entries(world, plant):
            yield name, world._replace(source_pending=(*world.source_pending, after))
    if len(world.destination_pending) < PENDING_MAX:
        for name, rows in _destination_entries(world, plant):
            yield name, world._replace(destination_pending=(*world.destination_pending, rows))
    sending = world.sender if plant == "sends_uncommitted_rows" else world.source
    for number, message in sending.outgoing:
        transfer = Transfer(number, message, world.source.settled)
        yield f"send {number}", world._replace(transfers=world.transfers | {transfer})
    answering = world.receiver if plant == "answers_uncommitted_rows" else world.destination
    if answering.up_to:
        yield "answer", world._replace(answers=world.answers | {Taken(answering.up_to, answering.refused)})
    if plant == "refusal_is_not_durable" and not world.receiver.has_queue:
        for transfer in world.transfers:
            if transfer.number == world.receiver.up_to + 1:
                refusal = Taken(transfer.number, frozenset({transfer.number}))
                yield "refuse without an entry", world._replace(answers=world.answers | {refusal})


def _log_steps(world: World, plant: str) -> Iterator[tuple[str, World]]:
    """Yield commits, and masters that are replaced by one without the newest entries."""
    if world.source_pending:
        first, *rest = world.source_pending
        yield "source commits", world._replace(source=first, source_pending=tuple(rest))
        yield "source's master dies", world._replace(source_pending=())
    if world.destination_pending:
        first_rows, *other_rows = world.destination_pending
        yield "destination commits", world._replace(destination=first_rows, destination_pending=tuple(other_rows))
        yield "destination's master dies", world._replace(destination_pending=())
    if plant == "install_forgets_up_to" and world.destination.up_to:
        yield "install", world._replace(destination=world.destination._replace(up_to=0), destination_pending=())


def _source_entries(world: World, plant: str) -> Iterator[tuple[str, Source]]:
    rows = world.sender
    if rows.queue and rows.last < NUMBERS_MAX:
        message, *rest = rows.queue
        number = rows.settled + 1 if plant == "numbers_are_reused" else rows.last + 1
        outgoing = (*rows.outgoing, (number, message))
        yield f"move {message}", rows._replace(queue=tuple(rest), outgoing=outgoing, last=rows.last + 1)
    if plant == "settles_before_taken" and rows.outgoing:
        number = rows.outgoing[0][0]
        yield "settle", rows._replace(outgoing=rows.outgoing[1:], settled=number)
    for taken in world.answers:
        settled = [(number, message) for number, message in rows.outgoing if number <= taken.up_to]
        if settled:
            returned = tuple(message for number, message in settled if number in taken.refused)
            yield (
                f"settle {taken.up_to}",
                rows._replace(
                    queue=returned + rows.queue,
                    outgoing=rows.outgoing[len(settled) :],
                    settled=max(rows.settled, taken.up_to),
                ),
            )


def _destination_entries(world: World, plant: str) -> Iterator[tuple[str, Destination]]:
    rows = world.receiver
    for transfer in world.transfers:
        is_next = transfer.number == rows.up_to + 1
        if is_next or (plant == "gaps_are_accepted" and transfer.number > rows.up_to):
            yield f"take {transfer.number}", _taken(rows, transfer, plant)
    if rows.flips < FLIPS_MAX:
        gone = rows.gone + rows.stored if rows.has_queue else rows.gone
        flipped = Destination((), gone, rows.up_to, rows.refused, not rows.has_queue, rows.flips + 1)
        yield "delete or create", flipped


def _taken(rows: Destination, transfer: Transfer, plant: str) -> Destination:
    known_by_source = rows.up_to if plant == "refusals_are_forgotten_early" else transfer.settled
    refused = frozenset(number for number in rows.refused if number > known_by_source)
    if rows.has_queue:
        return rows._replace(stored=(*rows.stored, transfer.message), up_to=transfer.number, refused=refused)
    if plant == "refusal_is_not_durable":
        return rows
    return rows._replace(up_to=transfer.number, refused=refused | {transfer.number})


def check(world: World) -> str:
    """Return which promise is broken for the durable rows, empty if none is."""
    source, destination = world.source, world.destination
    arrived = destination.stored + destination.gone
    if len(set(arrived)) < len(arrived):
        return "a message was stored twice"
    on_the_way = [message for _, message in source.outgoing]
    for message in MESSAGES:
        if message in source.queue and message in arrived:
            return "a message is in both queues"
        if message not in source.queue and message not in on_the_way and message not in arrived:
            return "a message is lost"
    return ""


def is_settled(world: World) -> bool:
    return not (world.source.outgoing or world.source_pending or world.destination_pending)


def searched(plant: str = "") -> Found:
    return Explorer(World(), partial(steps, plant=plant), states_max=1_000_000).find(check, is_settled)


PLANTS = {
    "sends_uncommitted_rows": "a message is in both queues",
    "answers_uncommitted_rows": "a message is lost",
    "settles_before_taken": "a message is lost",
    "refusal_is_not_durable": "a message is in both queues",
    "install_forgets_up_to": "a message was stored twice",
    "numbers_are_reused": "a message is lost",
    "gaps_are_accepted": "a message is lost",
    "refusals_are_forgotten_early": "a message is lost",
}


def test_no_message_is_lost_doubled_or_stuck() -> None:
    found = searched()
    assert (found.fault, found.trail) == ("", ())
    assert found.states > 10_000, "the search covers many orders of events"


@pytest.mark.parametrize(("plant", "fault"), PLANTS.items())
def test_planted_faults_are_found(plant: str, fault: str) -> None:
    assert searched(plant).fault == fault
