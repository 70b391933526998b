"""A real Node (volatile, one voter) against a list of messages that anyone can check by eye."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from elasticq.model import commands as c
from elasticq.model.errors import InvalidParameterValue
from elasticq.model.limits import INVOCATION_WINDOW_MS
from elasticq.model.results import ReceiveMessageResult, SendMessageBatchResult, SendMessageResult
from tests.engine.driver import by_turns
from tests.node.cluster import Solo

RETENTION_MS = 60_000
SECONDS = st.sampled_from([0, 1, 2, 5, 30])


class Naive:
    """One message: what a person would note on a card."""

    def __init__(self, message_id: str, body: str, now_ms: int, delay_s: int) -> None:
        self.message_id, self.body = message_id, body
        self.expires_ms = now_ms + RETENTION_MS
        self.available_ms = now_ms + delay_s * 1_000
        self.receives = 0
        self.received_ms = 0
        self.was_handed_out = False
        self.handle = ""


class QueueMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.solo = Solo()
        self.solo.create(MessageRetentionPeriod="60")
        self.cards: list[Naive] = []
        self.handles: list[tuple[str, Naive]] = []
        self.last: list[tuple[ReceiveMessageResult, list[Naive]]] = []
        self.sent: dict[bytes, tuple[c.SendMessage, str, int]] = {}
        self.turns = 0  # 1 after a delivery of a message that had come back

    @property
    def now_ms(self) -> int:
        return self.solo.time_ms

    def live(self) -> list[Naive]:
        return [card for card in self.cards if card.expires_ms > self.now_ms]

    def available(self) -> list[Naive]:
        """What came back and what was never received, by turns, of each the longest available first."""
        found = sorted((x for x in self.live() if x.available_ms <= self.now_ms), key=lambda x: x.available_ms)
        back = [card for card in found if card.was_handed_out]
        return by_turns(back, [card for card in found if not card.was_handed_out], self.turns)

    # --- what clients do --------------------------------------------------------------

    @rule(delay_s=SECONDS, with_guid=st.booleans())
    def send(self, delay_s: int, with_guid: bool) -> None:
        guid = len(self.sent).to_bytes(16, "big") if with_guid else b""
        command = c.SendMessage(queue_url="jobs", message_body=f"{len(self.cards)}", delay_seconds=delay_s)
        result = self.solo.do(command, guid)
        assert isinstance(result, SendMessageResult)
        assert result.message_id not in {card.message_id for card in self.cards}
        self.cards.append(Naive(result.message_id, command.message_body or "", self.now_ms, delay_s))
        if guid:
            self.sent[guid] = (command, result.message_id, self.now_ms)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        guid = data.draw(st.sampled_from(sorted(self.sent)))
        command, message_id, sent_ms = self.sent[guid]
        result = self.solo.do(command, guid)
        assert isinstance(result, SendMessageResult)
        if self.now_ms < sent_ms + INVOCATION_WINDOW_MS:
            assert result.message_id == message_id
            return
        assert result.message_id not in {card.message_id for card in self.cards}
        self.cards.append(Naive(result.message_id, command.message_body or "", self.now_ms, command.delay_seconds or 0))
        self.sent[guid] = (command, result.message_id, self.now_ms)

    @rule(delays_s=st.lists(SECONDS, min_size=1, max_size=10))
    def send_batch(self, delays_s: list[int]) -> None:
        entries = [
            c.SendMessageBatchEntry(id=str(at), message_body=f"b{at}", delay_seconds=delay_s)
            for at, delay_s in enumerate(delays_s)
        ]
        result = self.solo.do(c.SendMessageBatch(queue_url="jobs", entries=entries))
        assert isinstance(result, SendMessageBatchResult)
        for sent, entry in zip(result.successful, entries, strict=True):
            self.cards.append(Naive(sent.message_id, entry.message_body or "", self.now_ms, entry.delay_seconds or 0))

    @rule(limit=st.integers(1, 10), visibility_s=SECONDS)
    def receive(self, limit: int, visibility_s: int) -> None:
        expected = self.available()[:limit]
        command = c.ReceiveMessage(
            queue_url="jobs",
            max_number_of_messages=limit,
            visibility_timeout=visibility_s,
            attribute_names=["ApproximateReceiveCount"],
        )
        result = self.solo.do(command)
        assert isinstance(result, ReceiveMessageResult)
        by_id = {card.message_id: card for card in self.available()}
        taken = [by_id[message.message_id] for message in result.messages]
        assert len(set(taken)) == len(taken)
        assert [(card.was_handed_out, card.available_ms) for card in taken] == [
            (card.was_handed_out, card.available_ms) for card in expected
        ]
        self.turns = int(taken[-1].was_handed_out) if taken else self.turns
        for message, card in zip(result.messages, taken, strict=True):
            assert message.body == card.body
            assert message.receipt_handle not in {handle for handle, _ in self.handles}
            card.receives += 1
            assert message.attributes == {"ApproximateReceiveCount": str(card.receives)}
            card.received_ms = self.now_ms
            card.available_ms = self.now_ms + visibility_s * 1_000
            card.was_handed_out, card.handle = True, message.receipt_handle
            self.handles.append((message.receipt_handle, card))
        if taken:
            self.last.append((result, taken))

    @precondition(lambda self: self.last)
    @rule(back=st.integers(1, 3))
    def answer_was_not_delivered(self, back: int) -> None:
        result, taken = self.last[-min(back, len(self.last))]
        self.solo.call_node("undelivered", result)
        for message, card in zip(result.messages, taken, strict=True):
            is_out = card.available_ms > self.now_ms or card.available_ms == card.received_ms  # as visibility may be 0
            if card.handle == message.receipt_handle and card in self.cards and is_out:
                card.available_ms = self.now_ms - (card.received_ms == self.now_ms)  # never that of a receive
                card.receives -= 1
        self.last = [kept for kept in self.last if kept[0] is not result]

    @precondition(lambda self: self.handles)
    @rule(data=st.data(), in_batch=st.booleans())
    def delete(self, data: st.DataObject, in_batch: bool) -> None:
        handle, card = data.draw(st.sampled_from(self.handles[-8:]))
        if in_batch:
            entry = c.DeleteMessageBatchEntry(id="a", receipt_handle=handle)
            assert self.solo.do(c.DeleteMessageBatch(queue_url="jobs", entries=[entry])).successful == ["a"]
        else:
            self.solo.do(c.DeleteMessage(queue_url="jobs", receipt_handle=handle))
        if card in self.cards and (card.handle == handle or card.available_ms <= self.now_ms):
            self.cards.remove(card)

    @precondition(lambda self: self.handles)
    @rule(data=st.data(), seconds=SECONDS)
    def change_visibility(self, data: st.DataObject, seconds: int) -> None:
        handle, card = data.draw(st.sampled_from(self.handles[-8:]))
        is_gone = card not in self.live()
        command = c.ChangeMessageVisibility(queue_url="jobs", receipt_handle=handle, visibility_timeout=seconds)
        try:
            self.solo.do(command)
        except InvalidParameterValue:
            assert is_gone
            return
        assert not is_gone or card.expires_ms <= self.now_ms  # expired ones go in their own time
        if card in self.cards and card.available_ms > self.now_ms:  # an earlier receive's handle is as good
            card.available_ms = self.now_ms + seconds * 1_000

    @rule()
    def purge(self) -> None:
        self.solo.do(c.PurgeQueue(queue_url="jobs"))
        self.cards.clear()
        self.turns = 0

    @rule(ms=st.sampled_from([1, 500, 1_000, 2_000, 5_000, 29_999, 60_000]))
    def time_passes(self, ms: int) -> None:
        self.solo.advance(ms)

    # --- what must hold -----------------------------------------------------------------

    @invariant()
    def counts_are_exact(self) -> None:
        names = [
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        ]
        shown = self.solo.do(c.GetQueueAttributes(queue_url="jobs", attribute_names=names)).attributes
        hidden = [card for card in self.live() if card.available_ms > self.now_ms]
        in_flight = sum(card.was_handed_out for card in hidden)
        expected = (len(self.live()) - len(hidden), in_flight, len(hidden) - in_flight)
        assert tuple(int(shown[name]) for name in names) == expected


class TestQueueMachine(QueueMachine.TestCase):
    settings = settings(max_examples=80, stateful_step_count=40)


# --- FIFO ----------------------------------------------------------------------------------

FIFO = "jobs.fifo"
GROUPS = st.sampled_from(["g1", "g2", "g3"])
DEDUPLICATION_MS = 300_000


class Place:
    """One message of a FIFO queue: what a person would note on a card, in the order of the cards."""

    def __init__(self, sent: SendMessageResult, body: str, group: str, now_ms: int) -> None:
        self.message_id, self.number, self.body, self.group = sent.message_id, sent.sequence_number, body, group
        self.sent_ms = now_ms
        self.hidden_until_ms = 0
        self.receives = 0
        self.handle = ""


class FifoMachine(RuleBasedStateMachine):
    """Within a group strictly in order, one holder, no gap; no duplicate in five minutes."""

    @initialize()
    def begin(self) -> None:
        self.solo = Solo()
        attributes = {"FifoQueue": "true", "MessageRetentionPeriod": "600"}
        self.solo.do(c.CreateQueue(queue_name=FIFO, attributes=attributes))
        self.places: list[Place] = []
        self.handles: list[tuple[str, Place]] = []
        self.first_sends: dict[str, tuple[SendMessageResult, int]] = {}
        self.attempts: dict[str, tuple[list[Place], list[str], int]] = {}
        self.changed: set[str] = set()
        self.delay_ms = 0

    @property
    def now_ms(self) -> int:
        return self.solo.time_ms

    def free(self) -> dict[str, list[Place]]:
        """Of each group what may be handed out now."""
        found: dict[str, list[Place]] = {}
        closed = set()
        for place in self.live():
            is_delayed = not place.handle and place.sent_ms + self.delay_ms > self.now_ms
            if place.hidden_until_ms > self.now_ms or is_delayed:
                closed.add(place.group)
            if place.group not in closed:
                found.setdefault(place.group, []).append(place)
        return found

    def live(self) -> list[Place]:
        return [place for place in self.places if place.sent_ms + 600_000 > self.now_ms]

    @rule(group=GROUPS, deduplication_id=st.sampled_from(["a", "b", "c", ""]))
    def send(self, group: str, deduplication_id: str) -> None:
        body = f"body {len(self.first_sends)}"
        key = deduplication_id or f"only-{len(self.first_sends)}-{self.now_ms}"
        command = c.SendMessage(queue_url=FIFO, message_body=body, message_group_id=group, message_deduplication_id=key)
        result = self.solo.do(command)
        assert isinstance(result, SendMessageResult)
        known = self.first_sends.get(key)
        if known is not None and self.now_ms < known[1] + DEDUPLICATION_MS:
            assert result == known[0]
            return
        assert all((place.number or "") < (result.sequence_number or "") for place in self.places)
        self.first_sends[key] = (result, self.now_ms)
        self.places.append(Place(result, body, group, self.now_ms))

    @rule(limit=st.integers(1, 10), visibility_s=SECONDS)
    def receive(self, limit: int, visibility_s: int) -> None:
        self._receive(limit, visibility_s)

    def _receive(self, limit: int, visibility_s: int, attempt: str | None = None) -> list[Place]:
        free = self.free()
        command = c.ReceiveMessage(
            queue_url=FIFO,
            max_number_of_messages=limit,
            visibility_timeout=visibility_s,
            attribute_names=["MessageGroupId", "SequenceNumber", "ApproximateReceiveCount"],
            receive_request_attempt_id=attempt,
        )
        result = self.solo.do(command)
        assert isinstance(result, ReceiveMessageResult)
        by_id = {place.message_id: place for places in free.values() for place in places}
        taken = [by_id[message.message_id] for message in result.messages]
        assert len(taken) == min(limit, len(by_id))
        groups = list(dict.fromkeys(place.group for place in taken))
        whole = [place for group in groups for place in free[group]]
        assert taken == whole[: len(taken)], "group by group, each from its oldest on"
        for message, place in zip(result.messages, taken, strict=True):
            place.receives += 1
            assert (message.body, message.attributes) == (
                place.body,
                {
                    "MessageGroupId": place.group,
                    "SequenceNumber": place.number,
                    "ApproximateReceiveCount": str(place.receives),
                },
            )
            assert message.receipt_handle not in {handle for handle, _ in self.handles}
            place.handle = message.receipt_handle
            place.hidden_until_ms = self.now_ms + visibility_s * 1_000
            self.handles.append((message.receipt_handle, place))
        if attempt is not None and taken:
            self.attempts[attempt] = (taken, [place.handle for place in taken], self.now_ms)
        return taken

    @rule(attempt=st.sampled_from(["x", "y"]), visibility_s=SECONDS)
    def receive_by_attempt(self, attempt: str, visibility_s: int) -> None:
        known = self.attempts.get(attempt)
        if known is None or self.now_ms >= known[2] + DEDUPLICATION_MS:
            self._receive(3, visibility_s, attempt)
            return
        places, handles, first_ms = known
        still = [place.handle == handle for place, handle in zip(places, handles, strict=True)]
        is_over = any(
            place not in self.places or (is_still and handle in self.changed)
            for place, handle, is_still in zip(places, handles, still, strict=True)
        )
        # Their time-out has ended for all of them once another receive has one.
        held = [place for place in places if all(still) and place.hidden_until_ms > self.now_ms]
        command = c.ReceiveMessage(queue_url=FIFO, visibility_timeout=visibility_s, receive_request_attempt_id=attempt)
        if is_over:
            try:
                self.solo.do(command)
            except InvalidParameterValue:
                return
            raise AssertionError("the attempt is over")
        if not held:
            self._receive(3, visibility_s, attempt)
            return
        result = self.solo.do(command)
        assert isinstance(result, ReceiveMessageResult)
        assert [message.receipt_handle for message in result.messages] == [place.handle for place in held]
        for place in held:
            place.hidden_until_ms = self.now_ms + visibility_s * 1_000
        self.attempts[attempt] = (held, [place.handle for place in held], first_ms)

    @precondition(lambda self: self.handles)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        handle, place = data.draw(st.sampled_from(self.handles[-6:]))
        is_held = place.handle == handle and place.hidden_until_ms > self.now_ms
        try:
            self.solo.do(c.DeleteMessage(queue_url=FIFO, receipt_handle=handle))
        except InvalidParameterValue:
            assert place in self.places or place.sent_ms + 600_000 <= self.now_ms  # expired ones go in their own time
            assert not is_held
            return
        assert is_held or place not in self.live()
        if place in self.places:
            self.places.remove(place)

    @precondition(lambda self: self.handles)
    @rule(data=st.data(), seconds=SECONDS)
    def change_visibility(self, data: st.DataObject, seconds: int) -> None:
        self.solo.advance(3)  # changes within a millisecond that end at the old deadline leave no trace
        handle, place = data.draw(st.sampled_from(self.handles[-6:]))
        is_held = place in self.live() and place.handle == handle and place.hidden_until_ms > self.now_ms
        command = c.ChangeMessageVisibility(queue_url=FIFO, receipt_handle=handle, visibility_timeout=seconds)
        try:
            self.solo.do(command)
        except InvalidParameterValue:
            assert not is_held
            return
        assert is_held or place not in self.live()
        is_the_same = place.hidden_until_ms == self.now_ms + seconds * 1_000
        place.hidden_until_ms = self.now_ms + seconds * 1_000 - is_the_same
        self.changed.add(handle)

    @rule(delay_s=st.sampled_from([0, 0, 2, 30]))
    def set_delay(self, delay_s: int) -> None:
        self.solo.do(c.SetQueueAttributes(queue_url=FIFO, attributes={"DelaySeconds": str(delay_s)}))
        self.delay_ms = delay_s * 1_000

    @rule()
    def purge(self) -> None:
        self.solo.do(c.PurgeQueue(queue_url=FIFO))
        self.places.clear()
        self.first_sends.clear()
        self.attempts.clear()

    @rule(ms=st.sampled_from([1, 500, 1_000, 2_000, 29_999, 100_000, 300_000]))
    def time_passes(self, ms: int) -> None:
        self.solo.advance(ms)
        self.places = self.live()

    @invariant()
    def counts_are_exact(self) -> None:
        shown = self.solo.do(c.GetQueueAttributes(queue_url=FIFO, attribute_names=["All"])).attributes
        in_flight = sum(place.hidden_until_ms > self.now_ms for place in self.live())
        delayed = sum(not place.handle and place.sent_ms + self.delay_ms > self.now_ms for place in self.live())
        assert int(shown["ApproximateNumberOfMessagesNotVisible"]) == in_flight
        assert int(shown["ApproximateNumberOfMessagesDelayed"]) == delayed
        assert int(shown["ApproximateNumberOfMessages"]) == len(self.live()) - in_flight - delayed


class TestFifoMachine(FifoMachine.TestCase):
    settings = settings(max_examples=80, stateful_step_count=40)
