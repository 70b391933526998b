"""Metadata of messages that were given back: kept by every member alike, and gone after its message."""

from typing import Any

import pytest

from elasticq.engine.metadata import KEPT, LOOKED_AT_A_STEP
from elasticq.engine.sweep import Sweeper
from elasticq.engine.views.digest import state_digest
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import commands as c
from elasticq.model import limits
from elasticq.model.errors import InvalidParameterValue, OverLimit
from elasticq.model.extensions import HideBySequence, Peek
from tests.engine.desk import Desk, replayed
from tests.engine.views.test_dump import dumped, made_from


@pytest.fixture
def desk() -> Desk:
    one = Desk()
    one.create()
    return one


def taken(desk: Desk) -> tuple[int, str]:
    """Sequence and handle of a message in flight."""
    message = desk.receive_one()
    return desk.state.identity.read_handle(message.receipt_handle).sequence, message.receipt_handle


def give_back(desk: Desk, sequence: int, metadata: dict[str, str], handle: str | None = None, **more: Any) -> None:
    desk.do(HideBySequence("jobs", sequence, 0, handle, metadata), **more)


def shown(desk: Desk) -> list[str | None]:
    return [each.attributes.get(KEPT) for each in desk.do(Peek("jobs")).messages]  # type: ignore[attr-defined]


def test_every_member_knows_it_and_a_roll_back_takes_it_away(desk: Desk) -> None:
    desk.send()
    give_back(desk, taken(desk)[0], {"a": "1"})
    now_ms = desk.context.now_ms
    for state in (replayed(desk.log, times=2), made_from(dumped(desk.state))):
        assert state_digest(state, now_ms) == state_digest(desk.state, now_ms)
        assert list(state.metadata.values()) == list(desk.state.metadata.values())
    sequence, handle = taken(desk)
    before, undo = state_digest(desk.state, now_ms), Undo()
    give_back(desk, sequence, {"a": "2", "b": "3"}, handle, undo=undo)
    assert shown(desk) == ['{"a":"2","b":"3"}']
    roll_back(undo)
    assert state_digest(desk.state, now_ms) == before
    assert shown(desk) == ['{"a":"1"}']


def test_what_is_the_same_is_no_change_and_an_older_handle_changes_nothing(desk: Desk) -> None:
    desk.send()
    sequence, old = taken(desk)
    give_back(desk, sequence, {"a": "1"}, old)
    sequence, new = taken(desk)
    give_back(desk, sequence, {"a": "1"}, new)
    assert len(desk.steps[-1]) == 1, "only the visibility"
    give_back(desk, sequence, {"a": "2"}, new)
    assert desk.steps[-1] == [], "it is not in flight"
    assert shown(desk) == ['{"a":"1"}']


@pytest.mark.parametrize(
    ("metadata", "words"),
    [({"AWS.a": "x"}, "reserved"), ({"a": ""}, "non-empty"), ({"a": "x" * 4_096}, "not exceed 4096")],
)
def test_what_no_attribute_may_be_is_refused_and_nothing_changes(
    desk: Desk, metadata: dict[str, str], words: str
) -> None:
    desk.send()
    sequence, _ = taken(desk)
    with pytest.raises(InvalidParameterValue, match=words):
        give_back(desk, sequence, metadata)
    assert desk.queue().order.is_in_flight(sequence, desk.context.now_ms)
    assert shown(desk) == [None]


def test_names_of_several_times_are_bounded_together(desk: Desk) -> None:
    desk.send()
    for name in "abcdefghij":
        give_back(desk, taken(desk)[0], {name: "x"})
    with pytest.raises(InvalidParameterValue, match="exceeds the allowed maximum"):
        give_back(desk, taken(desk)[0], {"k": "x"})


@pytest.mark.pure
def test_messages_with_metadata_are_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "METADATA_KEPT_MAX", 1)
    desk.send()
    desk.send()
    (first, _), (second, _) = taken(desk), taken(desk)
    give_back(desk, first, {"a": "1"})
    with pytest.raises(OverLimit):
        give_back(desk, second, {"a": "1"})
    give_back(desk, taken(desk)[0], {"a": "2"})


@pytest.mark.parametrize("end", ["delete", "purge", "delete queue"])
def test_it_goes_after_its_message(desk: Desk, end: str) -> None:
    desk.send("gone")
    desk.create("other")
    desk.do(c.SendMessage("other", "stays"))
    other = desk.receive_one(url="other")  # type: ignore[arg-type]
    kept = desk.state.identity.read_handle(other.receipt_handle)
    desk.do(HideBySequence("other", kept.sequence, 0, None, {"a": "1"}))
    give_back(desk, taken(desk)[0], {"a": "1"})
    assert Sweeper().step(desk.state, desk.context.now_ms)[0] == []
    if end == "delete":
        desk.do(c.DeleteMessage("jobs", desk.receive_one().receipt_handle))
    else:
        desk.do(c.PurgeQueue("jobs") if end == "purge" else c.DeleteQueue("jobs"))
    desk.write(Sweeper().step(desk.state, desk.context.now_ms)[0])
    assert list(desk.state.metadata) == [(kept.queue_id, kept.sequence)]


def test_sweeper_comes_round_to_all_of_it(desk: Desk) -> None:
    count = LOOKED_AT_A_STEP + 50
    for _ in range(count):
        desk.send()
    for _ in range(count):
        sequence, handle = taken(desk)
        desk.do(HideBySequence("jobs", sequence, 600, handle, {"a": "1"}))
    desk.do(c.PurgeQueue("jobs"))
    sweeper = Sweeper()
    for _ in range(3):
        desk.write(sweeper.step(desk.state, desk.context.now_ms)[0])
    assert not desk.state.metadata
