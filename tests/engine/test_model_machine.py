"""A real Node (volatile, one voter) against a list of messages that anyone can check by eye."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from elasticq.model import commands as c
from elasticq.model.errors import InvalidParameterValue
from elasticq.model.results import ReceiveMessageResult, SendMessageBatchResult, SendMessageResult
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
        self.sent: dict[bytes, tuple[c.SendMessage, str]] = {}

    @property
    def now_ms(self) -> int:
        return self.solo.time_ms

    def live(self) -> list[Naive]:
        return [card for card in self.cards if card.expires_ms > self.now_ms]

    def available(self) -> list[Naive]:
        return sorted((x for x in self.live() if x.available_ms <= self.now_ms), key=lambda x: x.available_ms)

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
            self.sent[guid] = (command, result.message_id)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        guid = data.draw(st.sampled_from(sorted(self.sent)))
        command, message_id = self.sent[guid]
        assert self.solo.do(command, guid) == SendMessageResult(message_id)

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
        assert [card.available_ms for card in taken] == [card.available_ms for card in expected]
        for message, card in zip(result.messages, taken, strict=True):
            assert message.body == card.body
            assert message.receipt_handle not in {handle for handle, _ in self.handles}
            card.receives += 1
            assert message.attributes == {"ApproximateReceiveCount": str(card.receives)}
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
            if card.handle == message.receipt_handle and card in self.cards and card.receives:
                card.available_ms = self.now_ms
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
        if card.handle == handle and card in self.cards:
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
        if card.handle == handle and card.available_ms > self.now_ms:
            card.available_ms = self.now_ms + seconds * 1_000

    @rule()
    def purge(self) -> None:
        self.solo.do(c.PurgeQueue(queue_url="jobs"))
        self.cards.clear()

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
