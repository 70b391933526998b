"""Leases on a real Node (volatile, one voter) against a card for each message and each lease."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from elasticq.model import commands as c
from elasticq.model.errors import LeaseExpired
from elasticq.model.results import ReceivedMessage, ReceiveMessageResult, Result
from tests.node.cluster import Solo

SECONDS = st.sampled_from([1, 2, 5, 30])
BATCHES, PARTITIONS, CALLS = st.integers(0, 2), st.integers(0, 1), st.integers(0, 3)


class Card:
    """One lease as a person would note it."""

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.calls: dict[int, list[ReceivedMessage]] = {}
        self.state = "open"

    def lives(self, now_ms: int) -> bool:
        return self.state in ("open", "sealed") and now_ms < self.deadline_ms

    @property
    def bodies(self) -> list[str]:
        return [message.body for messages in self.calls.values() for message in messages]


class LeaseMachine(RuleBasedStateMachine):
    """Whoever has a message has it alone; ids answer once and for all; what is over stays over."""

    @initialize()
    def begin(self) -> None:
        self.solo = Solo()
        self.solo.create()
        self.hidden_until_ms: dict[str, int] = {}  # by body, of what is there
        self.leases: dict[tuple[int, int], Card] = {}
        self.sent = 0

    @property
    def now_ms(self) -> int:
        return self.solo.time_ms

    def visible(self) -> set[str]:
        return {body for body, until_ms in self.hidden_until_ms.items() if until_ms <= self.now_ms}

    def is_refused(self, command: c.Command) -> bool:
        try:
            self.answer = self.solo.do(command)
        except LeaseExpired:
            return True
        return False

    @rule(count=st.integers(1, 4))
    def send(self, count: int) -> None:
        for _ in range(count):
            self.sent += 1
            self.solo.send(str(self.sent))
            self.hidden_until_ms[str(self.sent)] = 0

    @rule(limit=st.integers(1, 3), seconds=SECONDS)
    def other_consumer_receives(self, limit: int, seconds: int) -> None:
        visible = self.visible()
        taken = [message.body for message in self.solo.receive(limit, visibility_s=seconds)]
        assert set(taken) <= visible
        assert len(taken) == min(limit, len(visible))
        self.hidden_until_ms |= dict.fromkeys(taken, self.now_ms + seconds * 1_000)

    @rule(batch=BATCHES, partition=PARTITIONS, call=CALLS, limit=st.integers(1, 3), seconds=SECONDS)
    def read(self, batch: int, partition: int, call: int, limit: int, seconds: int) -> None:
        lease = self.leases.get((batch, partition))
        visible = self.visible()
        attempt_id = f"query/{batch}/{partition}/{call}"
        command = c.ReceiveMessage("jobs", None, None, None, limit, seconds, 0, attempt_id)
        is_refused = self.is_refused(command)
        if lease is not None and not lease.lives(self.now_ms):
            assert is_refused
            return
        assert not is_refused
        result: Result = self.answer
        assert isinstance(result, ReceiveMessageResult)
        if lease is None:
            lease = self.leases[batch, partition] = Card(self.now_ms + seconds * 1_000)
        if lease.calls.get(call):
            assert result.messages == lease.calls[call]
        elif lease.state == "sealed":
            assert result.messages == []
        else:
            assert len(result.messages) == min(limit, len(visible))
            assert {message.body for message in result.messages} <= visible
            lease.calls[call] = result.messages
            lease.state = "open" if result.messages else "sealed"
            taken = [message.body for message in result.messages]
            self.hidden_until_ms |= dict.fromkeys(taken, lease.deadline_ms)

    def _meant(self, batch: int, partition: int | None) -> list[Card]:
        return [card for key, card in self.leases.items() if key[0] == batch and partition in (None, key[1])]

    def _handle(self, batch: int, partition: int | None) -> str:
        return f"lease:query/{batch}/{'' if partition is None else partition}"

    @rule(batch=BATCHES, partition=st.none() | PARTITIONS)
    def commit(self, batch: int, partition: int | None) -> None:
        meant = self._meant(batch, partition)
        is_over = any(not card.lives(self.now_ms) and card.state != "committed" for card in meant)
        assert self.is_refused(c.DeleteMessage("jobs", self._handle(batch, partition))) == is_over
        for card in meant:
            if card.lives(self.now_ms):
                card.state = "committed"
                for body in card.bodies:
                    del self.hidden_until_ms[body]

    @rule(batch=BATCHES, partition=st.none() | PARTITIONS, seconds=st.sampled_from([0, 1, 5, 30, 43_200]))
    def renew_or_give_back(self, batch: int, partition: int | None, seconds: int) -> None:
        meant = self._meant(batch, partition)
        is_over = not all(card.lives(self.now_ms) for card in meant)
        is_over |= not meant and partition is not None and seconds > 0  # as one that was forgotten
        assert self.is_refused(c.ChangeMessageVisibility("jobs", self._handle(batch, partition), seconds)) == is_over
        if not meant and partition is not None and seconds == 0:
            card = self.leases[batch, partition] = Card(self.now_ms)
            card.state = "given_back"
        for card in meant:
            if card.lives(self.now_ms):
                card.deadline_ms = self.now_ms + seconds * 1_000
                card.state = card.state if seconds else "given_back"
                self.hidden_until_ms |= dict.fromkeys(card.bodies, card.deadline_ms)

    @rule(ms=st.sampled_from([1, 999, 1_000, 4_000, 30_000]))
    def time_passes(self, ms: int) -> None:
        self.solo.advance(ms)

    @invariant()
    def counts_are_exact(self) -> None:
        shown = self.solo.do(c.GetQueueAttributes(queue_url="jobs", attribute_names=["All"])).attributes
        visible = len(self.visible())
        assert int(shown["ApproximateNumberOfMessages"]) == visible
        assert int(shown["ApproximateNumberOfMessagesNotVisible"]) == len(self.hidden_until_ms) - visible

    @invariant()
    def listing_says_what_the_cards_say(self) -> None:
        told = {(lease.batch, lease.partition): lease for lease in self.solo.node.leases(self.solo.now_ms, 100)}
        assert told.keys() == self.leases.keys()
        for key, card in self.leases.items():
            expected = card.state if card.lives(self.now_ms) or card.state in ("committed", "given_back") else "expired"
            assert (told[key].state, told[key].messages) == (expected, len(card.bodies))


class TestLeaseMachine(LeaseMachine.TestCase):
    settings = settings(max_examples=80, stateful_step_count=40)
