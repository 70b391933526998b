"""The standard ordering policy: what comes back and what is new by turns, each message in one place, exact counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.ordering.contract import ContentsMissing
from elasticq.engine.ordering.counts import Counts
from elasticq.engine.ordering.standard import StandardOrder
from elasticq.engine.stored.ages import Ages
from elasticq.engine.stored.delivery_rows import Grace, Row
from elasticq.engine.stored.mutations import MessageStored
from tests.engine.driver import by_turns


class Shelf:
    """An order with its rows, written as apply writes them."""

    def __init__(self, grace: Grace | None = None) -> None:
        self.rows: dict[int, Row] = {}  # those of untouched messages, too
        self.touched: dict[int, Row] = {}
        self.contents: dict[int, MessageStored] = {}
        self.order = StandardOrder(self.touched, self.contents, grace or Grace(), Ages())

    def put(self, sequence: int, sent_ms: int, visible_at_ms: int = 0, delivery_number: int = 0) -> None:
        old = self.rows.get(sequence)
        if old is not None:
            self.order.remove(sequence, old)
        self.contents[sequence] = MessageStored(1, sequence, "x", sent_ms, "me", visible_at_ms)
        row = self.rows[sequence] = Row(visible_at_ms, delivery_number)
        if delivery_number:
            self.touched[sequence] = row
        self.order.insert(sequence, row)

    def drop(self, sequence: int) -> None:
        self.order.remove(sequence, self.rows.pop(sequence))
        self.touched.pop(sequence, None)
        del self.contents[sequence]

    def take(self, now_ms: int, visibility_ms: int = 0) -> int:
        """Hand out the next message, as apply does."""
        (sequence,) = self.choose(now_ms, 1)
        old = self.rows[sequence]
        row = Row(now_ms + visibility_ms, old.delivery_number + 1, old.receive_count + 1)
        self.rows[sequence] = self.touched[sequence] = row
        self.order.replace(sequence, old, row)
        return sequence

    def choose(self, now_ms: int, limit: int = 10, sent_after_ms: int = -1) -> list[int]:
        return self.order.choose(now_ms, limit, sent_after_ms)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def test_messages_go_in_the_order_they_came(shelf: Shelf) -> None:
    for sequence in (1, 2, 3):
        shelf.put(sequence, 100)
    assert shelf.choose(100) == [1, 2, 3]
    assert shelf.choose(100, limit=2) == [1, 2]


def test_delayed_message_takes_its_place_by_the_end_of_its_delay(shelf: Shelf) -> None:
    shelf.put(1, 100, visible_at_ms=500)
    shelf.put(2, 400)
    shelf.put(3, 600)
    assert shelf.choose(600) == [2, 1, 3]


def test_what_comes_back_goes_before_the_backlog_and_takes_every_second_place(shelf: Shelf) -> None:
    for sequence in range(1, 9):
        shelf.put(sequence, 100)
    for sequence in (1, 2, 3):
        shelf.put(sequence, 100, visible_at_ms=200 + sequence, delivery_number=1)
    shelf.put(2, 100, visible_at_ms=900, delivery_number=1)
    assert shelf.choose(899) == [1, 4, 3, 5, 6, 7, 8]
    assert shelf.choose(900) == [1, 4, 3, 5, 2, 6, 7, 8]


def test_message_that_always_fails_blocks_nobody(shelf: Shelf) -> None:
    for sequence in (1, 2, 3):
        shelf.put(sequence, 100)
    taken = [shelf.take(200) for _ in range(6)]
    assert taken == [1, 1, 2, 2, 3, 3]


def test_message_that_returns_goes_before_a_newer_one_that_waits(shelf: Shelf) -> None:
    """Recorded on AWS: visibility timeout 3 s, the second message was sent meanwhile."""
    shelf.put(1, 100)
    assert shelf.take(100, visibility_ms=3_000) == 1
    shelf.put(2, 200)
    assert shelf.choose(3_100) == [1, 2]


def test_delivery_that_is_rolled_back_leaves_the_turn_of_before(shelf: Shelf) -> None:
    for sequence in (1, 2, 3):
        shelf.put(sequence, 100)
    for now_ms in (100, 101):
        shelf.take(now_ms)
    assert shelf.choose(102, 1) == [2], "1 came back and was delivered, so a new one follows"
    old, row = shelf.rows[2], Row(90_000, 1)
    shelf.order.replace(2, old, row)
    shelf.order.replace(2, row, old)
    assert shelf.choose(102, 1) == [2]


def test_retry_does_not_wait_behind_ten_million() -> None:
    shelf = Shelf()
    shelf.put(1, 100)
    shelf.order.insert_untouched(2, 10_000_000)
    for sequence in range(2, 6):
        shelf.contents[sequence] = MessageStored(1, sequence, "x", 100, "me")
    shelf.put(1, 100, visible_at_ms=200, delivery_number=1)
    assert shelf.choose(199, limit=2) == [2, 3]
    assert 1 in shelf.choose(200, limit=2)


@given(st.data())
def test_returned_messages_never_have_two_places_in_a_row_while_others_wait(data: st.DataObject) -> None:
    shelf, now_ms = Shelf(), 1_000
    is_behind_returned = False
    for sequence in range(1, data.draw(st.integers(2, 30))):
        shelf.put(sequence, now_ms)
    for _ in range(data.draw(st.integers(1, 40))):
        now_ms += 1
        waiting = [sequence for sequence, row in shelf.rows.items() if not row.delivery_number]
        back = [sequence for sequence, row in shelf.rows.items() if row.delivery_number and row.visible_at_ms <= now_ms]
        chosen = shelf.choose(now_ms, 1)
        if not chosen:
            continue
        assert not (is_behind_returned and waiting and chosen[0] in back)
        is_behind_returned = chosen[0] in back
        shelf.take(now_ms, visibility_ms=data.draw(st.sampled_from([0, 0, 1, 3])))
        if data.draw(st.booleans()):
            shelf.drop(chosen[0])


def test_message_waits_for_its_very_millisecond(shelf: Shelf) -> None:
    shelf.put(1, 100, visible_at_ms=500)
    assert shelf.choose(499) == []
    assert shelf.choose(500) == [1]


def test_shortened_deadline_comes_forward(shelf: Shelf) -> None:
    shelf.put(1, 100, visible_at_ms=90_000, delivery_number=1)
    shelf.put(2, 100, visible_at_ms=80_000, delivery_number=1)
    shelf.put(1, 100, visible_at_ms=200, delivery_number=1)
    assert shelf.order.next_due_ms() == 200
    assert shelf.choose(200) == [1]


def test_lengthened_deadline_is_not_cut_by_the_old_one(shelf: Shelf) -> None:
    shelf.put(1, 100, visible_at_ms=200, delivery_number=1)
    shelf.put(1, 100, visible_at_ms=900, delivery_number=1)
    assert shelf.choose(899) == []
    assert shelf.order.counts(899) == Counts(0, 1, 0)
    assert shelf.choose(900) == [1]


def test_expired_messages_are_passed_over(shelf: Shelf) -> None:
    shelf.put(1, 100)
    shelf.put(2, 100, visible_at_ms=150, delivery_number=1)
    shelf.put(3, 300)
    assert shelf.choose(400, sent_after_ms=100) == [3]
    assert shelf.choose(400, limit=1, sent_after_ms=100) == [3]
    assert shelf.choose(400, sent_after_ms=300) == []


def test_grace_is_for_messages_in_flight_only() -> None:
    grace = Grace()
    grace.spans = [(100, 1_000), (1_500, 2_000), (1_900, 3_000)]
    shelf = Shelf(grace)
    shelf.put(1, 50, visible_at_ms=500)  # a delay
    shelf.put(2, 50, visible_at_ms=500, delivery_number=1)
    shelf.put(3, 50, visible_at_ms=1_600, delivery_number=1)  # to 2,000, and from there chained to 3,000
    assert shelf.choose(999) == [1]
    assert shelf.order.counts(999) == Counts(1, 2, 0)
    assert shelf.choose(1_000) == [2, 1]
    assert shelf.choose(2_999) == [2, 1]
    assert shelf.choose(3_000) == [2, 1, 3]


def test_many_moved_deadlines_do_not_grow_the_heap(shelf: Shelf) -> None:
    for at in range(5_000):
        shelf.put(1, 0, visible_at_ms=10_000 + at, delivery_number=1)
    assert len(shelf.order._heap) <= 130
    assert shelf.choose(14_998) == []
    assert shelf.choose(14_999) == [1]


def test_message_whose_content_is_on_disk_is_asked_for(shelf: Shelf) -> None:
    for sequence in (1, 2, 3):
        shelf.put(sequence, 100)
    del shelf.contents[2]
    assert shelf.choose(100) == [1], "what is there goes first, alone"
    shelf.drop(1)
    with pytest.raises(ContentsMissing) as missing:
        shelf.choose(100)
    assert missing.value.sequences == [2]


def test_returned_message_whose_content_is_on_disk_is_asked_for(shelf: Shelf) -> None:
    shelf.put(1, 100, visible_at_ms=200, delivery_number=1)
    del shelf.contents[1]
    assert shelf.choose(199) == []
    with pytest.raises(ContentsMissing) as missing:
        shelf.choose(200)
    assert missing.value.sequences == [1]


@given(st.data())
def test_choice_and_counts_agree_with_the_rows(data: st.DataObject) -> None:
    shelf, now_ms, sequence = Shelf(), 1_000, 0
    for _ in range(data.draw(st.integers(1, 40))):
        now_ms += data.draw(st.sampled_from([0, 0, 10, 100]))
        action = data.draw(st.sampled_from(["send", "delay", "take", "free", "drop", "look"]))
        known = sorted(shelf.rows)
        if action in ("send", "delay") or not known:
            sequence += 1
            delay_ms = data.draw(st.integers(1, 200)) if action == "delay" else 0
            shelf.put(sequence, now_ms, now_ms + delay_ms if delay_ms else 0)
        elif action == "take":
            for chosen in shelf.choose(now_ms, data.draw(st.integers(1, 3))):
                old = shelf.rows[chosen]
                sent_ms = shelf.contents[chosen].sent_ms
                shelf.put(chosen, sent_ms, now_ms + data.draw(st.integers(0, 200)), old.delivery_number + 1)
        elif action == "free":
            at = data.draw(st.sampled_from(known))
            if shelf.order.is_in_flight(at, now_ms):
                shelf.put(at, shelf.contents[at].sent_ms, now_ms, shelf.rows[at].delivery_number)
        elif action == "drop":
            shelf.drop(data.draw(st.sampled_from(known)))
        check_against_rows(shelf, now_ms)


def check_against_rows(shelf: Shelf, now_ms: int) -> None:
    available_ms = {}
    delayed = in_flight = 0
    for sequence, row in shelf.rows.items():
        if row.visible_at_ms <= now_ms:
            available_ms[sequence] = row.visible_at_ms or shelf.contents[sequence].sent_ms
        elif row.delivery_number:
            in_flight += 1
        else:
            delayed += 1
    assert shelf.order.counts(now_ms) == Counts(len(available_ms), in_flight, delayed)
    chosen = shelf.choose(now_ms, 100)
    assert sorted(chosen) == sorted(available_ms)
    back, fresh = (
        [available_ms[sequence] for sequence in chosen if bool(shelf.rows[sequence].delivery_number) == was_received]
        for was_received in (True, False)
    )
    assert back == sorted(back)
    assert fresh == sorted(fresh)
    turns = [bool(shelf.rows[sequence].delivery_number) for sequence in chosen]
    assert turns == by_turns([True] * len(back), [False] * len(fresh), shelf.order._turns)
    assert shelf.choose(now_ms, 1) == chosen[:1]
