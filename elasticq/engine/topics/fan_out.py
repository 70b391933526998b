"""The fan-out of a publish: mutations that store a copy in the queue of each subscription, for one entry.

A queue cannot accept a copy if it does not exist, if its Policy refuses, or if a raw message has too many attributes.
Then the unchanged copy goes to the dead-letter queue of the subscription. The queue's MaximumMessageSize does not
apply: the topic's limit does.
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
_AROUND_BYTES: Final = 2_048  # of a copy without its message: the rest of the envelope, and the mutation


def sequence_number(number: int) -> str:
    """Return the SequenceNumber of a message of a FIFO topic: 20 digits, growing with each message."""
    return str(_SEQUENCE_NUMBERS_FROM + number)


class Message:
    """A message that is published to the subscriptions of one topic.

    number: number of its publish. texts: the texts by protocol if MessageStructure is json, else None.
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
        assert topic.row is not None, "a message is published to a topic with a row"
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
        """Return the text that subscriptions of this protocol get."""
        return text_for(protocol, self.message, self.texts)

    def body(self, subscription: Subscription) -> str:
        """Return the body of the copy for a subscription: the text if it is raw, else an envelope."""
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
        """Return the maximum size of ``count`` copies in an entry: an envelope may double the length of a message."""
        return count * (2 * self.size_bytes + _AROUND_BYTES)


def text_for(protocol: str, message: str, texts: dict[str, str] | None) -> str:
    """Return the text of a message for subscriptions of a protocol. texts: see ``read_texts``; None: unstructured."""
    if texts is None:
        return message
    found = texts.get(protocol)
    return texts["default"] if found is None else found


def read_texts(message: str) -> dict[str, str] | None:
    """Return the texts of a structured message by protocol; None if the message is not a JSON object.

    Members that are not strings are ignored.
    """
    try:
        members = _decode(message)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return {name: value for name, value in members.items() if isinstance(value, str)}


_decode: Callable[[str], dict[str, object]] = msgspec.json.Decoder(dict[str, object]).decode


class FanOut:
    """A builder of the copies in one entry. is_checked: copies need the permission of the queues' Policies."""

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
        """Return whether ``count`` more copies of a message fit into the entry."""
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
        """Store one copy, unless the queue is FIFO and remembers its deduplication id."""
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
            assert row is not None, "a message is published to a topic with a row"
            stored.origin = row.number, message.number  # so its MessageId is that of the publish
            if not subscription.is_raw and (queue.account, queue.name) == subscription.target:
                stored.group_id = NOTIFICATION  # marks an envelope: the subscription may become raw later
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
