"""Copies of published messages for the queues of a topic's subscriptions, as mutations of one entry.

A copy that its queue cannot take goes to the dead-letter queue of its subscription, exactly as it would have been: the
queue is gone, or its policy refuses, or a raw message has more attributes than a queue takes. The queue's own
MaximumMessageSize is not asked: the topic's counts.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from elasticq.engine.context import ExecutionContext, Sign
from elasticq.engine.deduplication import deduplication_key
from elasticq.engine.redrive.forwards import route
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import contents
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.envelopes import NOTIFICATION, SENDER, Notification, signature_version
from elasticq.engine.stored.identity import next_sequence
from elasticq.engine.stored.topic_index import QUEUE_PROTOCOL, Subscription, Topic
from elasticq.engine.topics.access import takes
from elasticq.model import limits
from elasticq.model.commands import MessageAttributes
from elasticq.model.topic_results import PublishCounts

_SEQUENCE_NUMBERS_FROM: Final = 10**19
_AROUND_BYTES: Final = 2_048  # of a copy, besides its message: the envelope's other members, and the mutation


def sequence_number(number: int) -> str:
    """The SequenceNumber that a FIFO topic gives: 20 digits, growing."""
    return str(_SEQUENCE_NUMBERS_FROM + number)


class Message:
    """A message on its way to the subscriptions of one topic.

    number: of its publish; texts: by protocol, where the message is structured.
    """

    __slots__ = (
        "_arn",
        "_envelopes",
        "_key",
        "_sign",
        "attributes",
        "base_url",
        "deduplication_id",
        "group_id",
        "message",
        "message_id",
        "number",
        "published_ms",
        "size_bytes",
        "subject",
        "texts",
        "topic",
        "trace_header",
    )

    def __init__(
        self,
        state: State,
        topic: Topic,
        topic_arn: str,
        number: int,
        published_ms: int,
        base_url: str,
        message: str,
        *,
        texts: dict[str, str] | None = None,
        subject: str | None = None,
        attributes: MessageAttributes | None = None,
        trace_header: str | None = None,
        group_id: str | None = None,
        deduplication_id: str | None = None,
        sign: Sign | None = None,
    ) -> None:
        assert topic.row is not None, "it is published to"
        self.topic = topic
        self.number = number
        self.message_id = state.identity.message_id(topic.row.number, number)
        self.published_ms = published_ms
        self.base_url = base_url
        self.message = message
        self.texts = texts
        self.subject = subject
        self.attributes = attributes or None
        self.trace_header = trace_header
        self.group_id = group_id
        self.deduplication_id = deduplication_id
        self.size_bytes = contents.message_bytes(message, attributes)
        self._arn = topic_arn
        self._key = state.mac_key
        self._sign = sign
        self._envelopes: dict[str, Notification] = {}

    def text(self, protocol: str) -> str:
        """What a protocol's subscriptions get."""
        return text_for(protocol, self.message, self.texts)

    def body(self, subscription: Subscription) -> str:
        protocol = subscription.row.protocol
        if subscription.is_raw:
            return self.text(protocol)
        kind = protocol if self.texts is not None and protocol in self.texts else ""
        envelope = self._envelopes.get(kind)
        if envelope is None:
            envelope = self._envelopes[kind] = self._envelope(self.text(protocol))
        return envelope.of(subscription.row.key)

    def _envelope(self, text: str) -> Notification:
        return Notification(
            message_id=self.message_id,
            topic_arn=self._arn,
            message=text,
            published_ms=self.published_ms,
            base_url=self.base_url,
            subject=self.subject,
            sequence_number=sequence_number(self.number) if self.topic.is_fifo else None,
            version=signature_version(self.topic),
            attributes=self.attributes,
            sign=None if self._sign is None else partial(self._sign, self._key),
        )

    def copies_bytes(self, count: int) -> int:
        """What so many copies take in an entry, at most: a character may become two in an envelope."""
        return count * (2 * self.size_bytes + _AROUND_BYTES)


def text_for(protocol: str, message: str, texts: dict[str, str] | None) -> str:
    """Return what a protocol's subscriptions get of a message; ``texts``: by protocol, where it is structured."""
    if texts is None:
        return message
    found = texts.get(protocol)
    return texts["default"] if found is None else found


def read_texts(message: str) -> dict[str, str] | None:
    """The texts by protocol of a structured message, without what is no text; None if it is not one JSON object."""
    try:
        members = _decode(message)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return {name: value for name, value in members.items() if isinstance(value, str)}


_decode: Callable[[str], dict[str, object]] = msgspec.json.Decoder(dict[str, object]).decode


class FanOut:
    """Makes the copies of one entry. is_checked: the queues' policies are asked."""

    __slots__ = ("_context", "_keys", "_lasts", "_state", "copies", "copies_bytes", "counts", "is_checked", "mutations")

    def __init__(self, state: State, context: ExecutionContext, *, is_checked: bool) -> None:
        self._state = state
        self._context = context
        self._lasts: dict[int, int] = {}
        self._keys: set[bytes] = set()
        self.is_checked = is_checked
        self.mutations: list[m.Mutation] = []
        self.counts = PublishCounts()
        self.copies = 0
        self.copies_bytes = 0

    def has_room(self, message: Message, count: int) -> bool:
        """Whether so many copies of a message fit into the entry, beside those that it has."""
        return (
            self.copies + count <= self._context.limits.copies
            and self.copies_bytes + message.copies_bytes(count) <= limits.FORWARDED_BYTES_MAX
        )

    def add(self, message: Message, subscriptions: list[Subscription]) -> None:
        """Add a copy of the message for each of the subscriptions."""
        self.copies += len(subscriptions)
        self.copies_bytes += message.copies_bytes(len(subscriptions))
        for subscription in subscriptions:
            self._deliver(message, subscription)

    def _deliver(self, message: Message, subscription: Subscription) -> None:
        counts, tally = self.counts, self._context.tally.of(subscription.row.number)
        queue = self._state.names.get(subscription.target)
        attributes = message.attributes if subscription.is_raw else None
        has_place = queue is not None and self._takes(queue, message, subscription)
        if attributes is not None and len(attributes) > limits.MESSAGE_ATTRIBUTES_MAX:
            has_place = has_place and subscription.row.protocol != QUEUE_PROTOCOL
        if queue is not None and has_place:
            counts.delivered += 1
            tally.delivered += 1
            self._store_everywhere(queue, message, subscription)
            return
        dead = self._state.names.get(subscription.dead_letters) if subscription.dead_letters is not None else None
        if (
            dead is not None
            and self._takes(dead, message, subscription)
            and (message.group_id is not None or not dead.kind.needs_group)
        ):
            counts.dead_lettered += 1
            tally.dead_lettered += 1
            self._store(dead, message, subscription)
        else:
            counts.failed += 1
            tally.failed += 1

    def _takes(self, queue: Queue, message: Message, subscription: Subscription) -> bool:
        if not self.is_checked or subscription.row.protocol != QUEUE_PROTOCOL:
            return True
        return takes(queue, message.topic, self._context)

    def _store_everywhere(self, queue: Queue, message: Message, subscription: Subscription) -> None:
        if not queue.is_forwarding:
            self._store(queue, message, subscription)
            return
        landing, copies = route(self._state, queue)
        for each in (landing, *copies):
            self._store(each, message, subscription)

    def _store(self, queue: Queue, message: Message, subscription: Subscription) -> None:
        """One copy; a FIFO queue that has the deduplication id already takes none."""
        last = self._lasts.get(queue.id)
        sequence = next_sequence(queue.last_sequence if last is None else last, self._context.term)
        stored = m.MessageStored(
            queue.id,
            sequence,
            message.body(subscription),
            self._context.now_ms,
            SENDER,
            queue.delayed_until_ms(self._context.now_ms),
        )
        if subscription.is_raw and message.attributes is not None:
            stored.attributes = message.attributes
        if message.trace_header:
            stored.trace_header = message.trace_header
        if subscription.row.protocol != QUEUE_PROTOCOL:
            row = message.topic.row
            assert row is not None, "it is published to"
            stored.origin = row.number, message.number  # its MessageId is the publish's
            if not subscription.is_raw and (queue.account, queue.name) == subscription.target:
                stored.group_id = NOTIFICATION  # this body is an envelope, whatever the subscription says later
        elif queue.kind.needs_group:
            stored.group_id, stored.deduplication_id = message.group_id, message.deduplication_id
        elif message.group_id is not None and not message.topic.is_fifo:
            stored.group_id = message.group_id
        key = deduplication_key(queue, stored)
        if key:
            if key in self._keys or self._state.invocations.get(key, self._context.now_ms) is not None:
                return
            self._keys.add(key)
        self._lasts[queue.id] = sequence
        self.mutations.append(stored)
        if key:
            self.mutations.append(m.InvocationRecorded(key, self._context.now_ms, queue.id, sequence))
