"""The FIFO ordering policy: what a group gives, which group goes first, exact counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.ordering import fifo
from elasticq.engine.ordering.contract import ContentsMissing, has_due_messages
from elasticq.engine.ordering.counts import Counts
from elasticq.engine.ordering.fifo import FifoOrder
from elasticq.engine.stored.ages import Ages
from elasticq.engine.stored.delivery_rows import UNTOUCHED, Grace, Row
from elasticq.engine.stored.mutations import MessageStored


class Shelf:
    """An order with its rows, written as apply writes them; it knows what a person would note."""

    def __init__(self, grace: Grace | None = None) -> None:
        self.touched: dict[int, Row] = {}
        self.contents: dict[int, MessageStored] = {}
        self.ages = Ages()
        self.grace = grace or Grace()
        self.order = FifoOrder(self.touched, self.contents, self.grace, self.ages)
        self.served: dict[str, int] = {}
        self.delay_ms = 0

    def put(self, sequence: int, sent_ms: int, group: str = "g") -> None:
        self.contents[sequence] = MessageStored(1, sequence, "x", sent_ms, "me", group_id=group)
        self.ages.note(sequence, sent_ms)
        self.order.insert(sequence, UNTOUCHED)

    def set(self, sequence: int, visible_at_ms: int, received_ms: int) -> None:
        old = self.touched.get(sequence, UNTOUCHED)
        row = self.touched[sequence] = Row(visible_at_ms, old.delivery_number + 1, 1, 1, received_ms)
        self.order.replace(sequence, old, row)
        group = self.contents[sequence].group_id or ""
        self.served[group] = max(self.served.get(group, 0), received_ms)

    def drop(self, sequence: int) -> None:
        group = self.contents[sequence].group_id or ""
        self.order.remove(sequence, self.touched.pop(sequence, UNTOUCHED))
        del self.contents[sequence]
        if group not in {content.group_id for content in self.contents.values()}:
            self.served.pop(group, None)

    def delay(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms
        self.order.set_delay(delay_ms)

    def choose(self, now_ms: int, limit: int = 10, sent_after_ms: int = -1) -> list[int]:
        return self.order.choose(now_ms, limit, sent_after_ms)

    def naive(self, now_ms: int) -> tuple[list[int], Counts]:
        """All that may be handed out in its order, and the counts, from the rows alone."""
        groups: dict[str, list[int]] = {}
        counts = Counts(0, 0, 0)
        hidden: set[str] = set()
        for sequence, content in sorted(self.contents.items()):
            group = content.group_id or ""
            row = self.touched.get(sequence)
            if row is not None and self.grace.deadline(row) > now_ms:
                counts.in_flight += 1
                hidden.add(group)
            elif row is None and content.sent_ms + self.delay_ms > now_ms:
                counts.delayed += 1
                hidden.add(group)
            else:
                counts.visible += 1
            if group not in hidden:
                groups.setdefault(group, []).append(sequence)
        line = sorted(groups, key=lambda group: self._since(groups[group][0], group))
        return [sequence for group in line for sequence in groups[group]], counts

    def _since(self, first: int, group: str) -> tuple[int, int]:
        row = self.touched.get(first)
        since_ms = self.grace.deadline(row) if row is not None else self.contents[first].sent_ms
        return max(since_ms, self.served.get(group, 0)), first


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def test_group_is_served_up_to_its_first_message_in_flight(shelf: Shelf) -> None:
    for sequence in (1, 2, 3):
        shelf.put(sequence, 100)
    shelf.set(2, 500, 100)
    assert shelf.choose(100) == [1]
    shelf.set(1, 400, 100)
    assert shelf.choose(399) == []
    assert shelf.choose(400) == [1]
    assert shelf.choose(500) == [1, 2, 3]


def test_shortened_deadline_comes_forward(shelf: Shelf) -> None:
    shelf.put(1, 100)
    shelf.set(1, 90_000, 100)
    shelf.set(1, 200, 100)
    assert shelf.order.next_due_ms() == 200
    assert shelf.choose(199) == []
    assert shelf.choose(200) == [1]


def test_grace_holds_what_had_come_back(shelf: Shelf) -> None:
    shelf.put(1, 100)
    shelf.put(2, 100)
    shelf.set(1, 500, 100)
    assert shelf.choose(500) == [1, 2]
    shelf.grace.spans = [(400, 900)]
    shelf.order.recheck_returned(400)
    assert shelf.choose(899) == []
    assert shelf.order.counts(899) == Counts(1, 1, 0)
    assert shelf.choose(900) == [1, 2]


def test_grace_that_is_taken_back_hides_nothing(shelf: Shelf) -> None:
    shelf.put(1, 100)
    shelf.set(1, 500, 100)
    shelf.grace.spans = [(400, 900)]
    assert shelf.choose(500) == []
    shelf.grace.spans = []
    shelf.order.forget_grace()
    assert shelf.choose(500) == [1]


def test_expired_messages_are_passed_over(shelf: Shelf) -> None:
    shelf.put(1, 100)
    shelf.put(2, 200)
    shelf.put(3, 100, "h")
    assert shelf.choose(300, sent_after_ms=100) == [2]
    assert shelf.choose(300, limit=1, sent_after_ms=100) == [2]


def test_content_on_disk_is_asked_for_when_nothing_else_can_go(shelf: Shelf) -> None:
    for sequence in (1, 2, 3):
        shelf.put(sequence, 100)
    shelf.put(4, 101, "h")
    del shelf.contents[2], shelf.contents[4]
    assert shelf.choose(200) == [1], "what is there goes first"
    del shelf.contents[1]
    with pytest.raises(ContentsMissing) as missing:
        shelf.choose(200)
    assert missing.value.sequences == [1, 2, 4]
    assert shelf.order.counts(200) == Counts(4, 0, 0)


def test_removed_message_comes_back_into_its_group_though_its_content_is_on_disk(shelf: Shelf) -> None:
    shelf.put(1, 100)
    shelf.put(2, 100)
    content = shelf.contents.pop(1)
    name = shelf.order.group_name(1)
    shelf.order.remove(1, UNTOUCHED)
    shelf.order.join(1, name)
    shelf.order.insert(1, UNTOUCHED)
    shelf.contents[1] = content
    assert shelf.choose(100) == [1, 2]


STEP = st.tuples(
    st.sampled_from(["send", "send", "take", "take", "free", "drop", "delay", "look"]),
    st.integers(0, 7),
    st.sampled_from([0, 0, 1, 10, 100]),
)


@given(st.lists(STEP, max_size=60))
def test_choice_and_counts_are_those_of_the_rows(steps: list[tuple[str, int, int]]) -> None:
    shelf, now_ms, sequence = Shelf(), 1_000, 0
    for action, number, passed_ms in steps:
        now_ms += passed_ms
        known = sorted(shelf.contents)
        if action == "send" or not known:
            sequence += 1 + number % 2
            shelf.put(sequence, now_ms, f"g{number % 4}")
        elif action == "take":
            for chosen in shelf.choose(now_ms, number + 1):
                shelf.set(chosen, now_ms + number * 20, now_ms)
        elif action == "free":
            at = known[number % len(known)]
            if at in shelf.touched and shelf.order.is_in_flight(at, now_ms):
                shelf.set(at, now_ms, shelf.touched[at].received_ms)
        elif action == "drop":
            shelf.drop(known[number % len(known)])
        elif action == "delay":
            shelf.delay(number % 3 * 50)
        expected, counts = shelf.naive(now_ms)
        assert shelf.order.counts(now_ms) == counts
        assert shelf.choose(now_ms, 100) == expected
        assert shelf.choose(now_ms, 1) == expected[:1]
        assert shelf.choose(now_ms, 3) == expected[:3]
        due_ms = shelf.order.next_due_ms()
        if due_ms is not None:
            assert shelf.naive(max(due_ms - 1, now_ms))[0] == expected, "never too late"


@pytest.mark.pure
@given(st.lists(STEP, max_size=60))
def test_changed_delay_holds_at_once_though_its_groups_move_in_many_turns(steps: list[tuple[str, int, int]]) -> None:
    """With one step in each turn, changes of the delay overlap."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fifo, "ADVANCED_MAX", 1)
        patch.setattr(fifo, "SKIPPED_MAX", 2)
        shelf, now_ms, sequence = Shelf(), 1_000, 0
        for action, number, passed_ms in [*steps, ("look", 0, 0)]:
            now_ms += passed_ms
            if action == "send" or not shelf.contents:
                sequence += 1
                shelf.put(sequence, now_ms, f"g{number}")
            elif action == "take":
                chosen = shelf.choose(now_ms, number + 1)
                assert set(chosen) <= set(shelf.naive(now_ms)[0]), "nothing whose delay is not over"
                for each in chosen:
                    shelf.set(each, now_ms + number * 20, now_ms)
            elif action == "drop":
                shelf.drop(sorted(shelf.contents)[number % len(shelf.contents)])
            elif action == "delay":
                shelf.delay(number % 3 * 50)
            elif action == "look":
                turns = 0
                while has_due_messages(shelf.order, now_ms):
                    shelf.order.advance(now_ms)
                    turns += 1
                    assert turns < 1_000
                expected, counts = shelf.naive(now_ms)
                assert shelf.choose(now_ms, 100) == expected
                assert shelf.order.counts(now_ms) == counts
