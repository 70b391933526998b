"""The rows of the kinds of queue: how they are told apart, and that all of them make queues that work."""

import pytest

from elasticq.engine.actions.queue_attributes import checked
from elasticq.engine.apply import apply
from elasticq.engine.ordering.kinds import FIFO, KINDS, MARKERS, STANDARD, Kind, kind_named, kind_of
from elasticq.engine.state import State
from elasticq.engine.views.digest import state_digest
from elasticq.engine.views.dump import dump
from elasticq.model import commands as c
from elasticq.model.errors import InvalidAttributeName
from tests.engine.desk import Desk

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def test_kind_is_the_one_that_the_attributes_ask_for() -> None:
    assert kind_of({}) is STANDARD
    assert kind_of({"VisibilityTimeout": "5", "FifoQueue": "True"}) is FIFO
    assert kind_of({"FifoQueue": "false"}) is STANDARD
    for kind in KINDS:
        assert kind_of({kind.marker: kind.marker_value}) is kind
    assert len(MARKERS) == len(KINDS) - 1, "one kind needs no marker"


def test_name_says_the_kind_that_aws_knows() -> None:
    assert (kind_named("jobs"), kind_named("jobs.fifo"), kind_named("http://h/1/jobs.fifo")) == (STANDARD, FIFO, FIFO)


def test_messages_stay_in_queues_of_one_type() -> None:
    for kind in KINDS:
        assert kind.exchanges_with(kind)
        assert kind.exchanges_with(FIFO) == (not kind.exchanges_with(STANDARD))


@every_kind
def test_defaults_are_values_that_may_be_set(kind: Kind) -> None:
    assert checked(kind.defaults, kind) == kind.defaults


@every_kind
def test_attributes_of_other_kinds_are_refused(kind: Kind) -> None:
    own = {*kind.ranges, *kind.choices, *kind.checks}
    assert own.isdisjoint(kind.refused)
    others = {name for other in KINDS for name in (*other.ranges, *other.choices, *other.checks)} - own
    for name in others:
        with pytest.raises(InvalidAttributeName, match=name):
            checked({name: "1"}, kind)


def made(kind: Kind) -> tuple[Desk, str]:
    """A desk with a queue of this kind, and its name."""
    desk = Desk()
    name = "jobs.fifo" if kind.exchanges_with(FIFO) else "jobs"
    desk.create(name, **({kind.marker: kind.marker_value} if kind.marker else {}))
    return desk, name


def send(desk: Desk, kind: Kind, name: str, number: int) -> c.SendMessage:
    command = c.SendMessage(name, f"body {number}")
    if kind.needs_group:
        command.message_group_id = f"g{number}"
    if kind.deduplicates_all:
        command.message_deduplication_id = f"id{number}"
    result = desk.do(command)
    assert (result.sequence_number is not None) == kind.has_sequence_numbers
    return command


@every_kind
def test_queue_of_every_kind_gives_what_it_got_and_forgets_what_was_deleted(kind: Kind) -> None:
    desk, name = made(kind)
    bodies = {send(desk, kind, name, number).message_body for number in range(5)}
    received = desk.receive(10, url=name)
    assert {message.body for message in received} == bodies
    for message in received:
        assert ("SequenceNumber" in (message.attributes or {})) == kind.has_sequence_numbers
        desk.do(c.DeleteMessage(name, message.receipt_handle))
    assert desk.counts(name) == (0, 0, 0)


@every_kind
def test_old_handle_can_do_as_little_as_its_kind_says(kind: Kind) -> None:
    desk, name = made(kind)
    send(desk, kind, name, 1)
    (message,) = desk.receive(url=name, visibility_s=1)
    desk.wait(2)
    command = c.DeleteMessage(name, message.receipt_handle)
    if kind.has_strict_handles:
        with pytest.raises(Exception, match="The receipt handle has expired"):
            desk.do(command)
    else:
        desk.do(command)
    assert desk.counts(name) == (int(kind.has_strict_handles), 0, 0)


@every_kind
def test_second_send_of_an_id_stores_as_often_as_its_kind_says(kind: Kind) -> None:
    desk, name = made(kind)
    first = send(desk, kind, name, 1)
    desk.do(first)
    assert desk.counts(name)[0] == (1 if kind.deduplicates_all else 2)


@every_kind
def test_dump_of_every_kind_makes_the_same_state(kind: Kind) -> None:
    desk, name = made(kind)
    for number in range(6):
        send(desk, kind, name, number)
    desk.receive(2, url=name, visibility_s=3)
    desk.wait(5)
    other = State()
    for chunk in dump(desk.state):
        for mutation in chunk:
            apply(other, mutation)
    assert state_digest(other, desk.context.now_ms) == state_digest(desk.state, desk.context.now_ms)
    twin = next(iter(other.queues.values()))
    chosen = desk.queue(name).order.choose(desk.context.now_ms, 10, -1)
    assert twin.order.choose(desk.context.now_ms, 10, -1) == chosen
    assert len(chosen) == 6
