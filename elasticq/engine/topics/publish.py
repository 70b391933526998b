"""Publish and PublishBatch. One entry stores the copies of a message for all matching subscriptions, or none.

If an entry cannot hold all copies, it stores the publish itself, with the subscriptions that it matched.
``engine/topics/deliveries.py`` then delivers it in steps.

A FIFO topic remembers a deduplication id for five minutes, in the whole topic or per message group. A publish with a
remembered id delivers nothing and gets the answer of the first publish.
"""

import re
from hashlib import blake2b, sha256
from struct import Struct as Layout
from typing import Final

from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.matching import Matching
from elasticq.engine.state import State
from elasticq.engine.stored import contents
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.invocations import TOO_MANY
from elasticq.engine.stored.topic_attributes import CONTENT_BASED, THROUGHPUT_SCOPE, message_bytes_max
from elasticq.engine.stored.topic_index import QUEUE_PROTOCOL, Topic
from elasticq.engine.topics.arns import arn_of, named_topic, topic_key
from elasticq.engine.topics.fan_out import FanOut, Message, read_texts, sequence_number, text_for
from elasticq.engine.topics.publish_attributes import check_attributes
from elasticq.model import limits
from elasticq.model import topic_commands as t
from elasticq.model.commands import Call
from elasticq.model.errors import (
    EmptyPublishBatch,
    InvalidPublishBatchId,
    PublishBatchIdsNotDistinct,
    PublishBatchTooLong,
    SqsError,
    TooManyEntriesInPublishBatch,
    TopicThrottled,
    invalid_parameter,
    quoted,
)
from elasticq.model.topic_results import PublishBatchResult, PublishCounts, PublishedEntry, PublishResult

STRUCTURED: Final = "json"
_SUBJECT: Final = re.compile(rf"[^\x00-\x1f\x7f]{{1,{limits.SUBJECT_CHARS_MAX}}}\Z")
_ID: Final = re.compile(r"[A-Za-z0-9_-]*\Z")
_ID_CHARS_MAX: Final = 80
_KEY: Final = Layout(">QB")
_DEDUPLICATION: Final = 3  # keys of queues use 1 and 2 (engine/deduplication.py)
_TOO_MANY_ENTRIES: Final = "The batch request contains more entries than permissible."

Entry = t.Publish | t.PublishBatchRequestEntry


def publish(state: State, call: Call, command: t.Publish, context: ExecutionContext) -> Outcome:
    topic = _target(state, call, command, context)
    publisher = _Publisher(state, topic, call, context)
    publisher.check(command, "")
    publisher.match(command)
    number = publisher.add(command, 0)
    message_id, sequence = publisher.message_id(number), publisher.sequence(number)
    return PublishResult(message_id, sequence, publisher.number, number, publisher.counts), publisher.mutations


def _target(state: State, call: Call, command: t.Publish, context: ExecutionContext) -> Topic:
    if command.topic_arn is not None:
        return named_topic(state, call, command.topic_arn, context)
    if command.target_arn is not None:
        if ":endpoint/" in command.target_arn:
            raise invalid_parameter("TargetArn Reason: No endpoint found for the target arn specified")
        return named_topic(state, call, command.target_arn, context, "TargetArn")
    if command.phone_number is not None:
        raise invalid_parameter("PhoneNumber Reason: this server sends no text messages")
    raise invalid_parameter("TopicArn or TargetArn Reason: no value for required parameter")


def publish_batch(state: State, call: Call, command: t.PublishBatch, context: ExecutionContext) -> Outcome:
    """Publish all entries. One invalid entry fails the whole call, as on AWS."""
    entries = command.publish_batch_request_entries
    topic_key(command.topic_arn, call, context)
    _check_entries(entries)
    topic = named_topic(state, call, command.topic_arn, context)
    publisher = _Publisher(state, topic, call, context)
    total_bytes = sum(contents.message_bytes(each.message or "", each.message_attributes) for each in entries)
    if total_bytes > publisher.message_bytes_max:
        raise PublishBatchTooLong("The length of all the messages put together is more than the limit.")
    for at, entry in enumerate(entries, start=1):
        publisher.check(entry, f"publishBatchRequestEntries.{at}.member.")
    result = PublishBatchResult(topic=publisher.number, counts=publisher.counts)
    for entry in entries:
        publisher.match(entry)
    for place, entry in enumerate(entries):
        number = publisher.add(entry, place)
        sent = PublishedEntry(entry.id or "", publisher.message_id(number), publisher.sequence(number), number)
        result.successful.append(sent)
    return result, publisher.mutations


def _check_entries(entries: list[t.PublishBatchRequestEntry]) -> None:
    if not entries:
        raise EmptyPublishBatch("The batch request doesn't contain any entries.")
    if len(entries) > limits.BATCH_ENTRIES_MAX:
        raise TooManyEntriesInPublishBatch(_TOO_MANY_ENTRIES)
    ids = [entry.id or "" for entry in entries]
    for each in ids:
        if not each or not _ID.match(each):
            raise InvalidPublishBatchId(
                f"The Id of a batch entry in the batch request contains an impermissible character: {quoted(each)}"
            )
        if len(each) > _ID_CHARS_MAX:
            raise InvalidPublishBatchId(f"The Id of a batch entry in the batch request is too long: {quoted(each)}")
    if len(set(ids)) < len(ids):
        raise PublishBatchIdsNotDistinct("Two or more batch entries in the request have the same Id.")


class _Publisher:
    """The messages that one call publishes to one topic.

    _is_behind: the topic is FIFO and has an undelivered publish, so the next messages must wait for it.
    """

    __slots__ = (
        "_arn",
        "_attributes",
        "_call",
        "_context",
        "_fan_out",
        "_is_behind",
        "_keys",
        "_matched",
        "_matching",
        "_recorded",
        "_state",
        "_topic",
        "message_bytes_max",
        "number",
    )

    def __init__(self, state: State, topic: Topic, call: Call, context: ExecutionContext) -> None:
        row = topic.row
        assert row is not None, "a topic found by its name or ARN has a row"
        self._state = state
        self._topic = topic
        self._call = call
        self._context = context
        self._arn = arn_of(topic, context)
        self.number = row.number
        self._attributes = row.attributes
        self._fan_out = FanOut(state, context, is_checked=call.origin is not None)
        self._keys: dict[bytes, int] = {}
        self._matching = context.matching
        # texts, and the numbers of subscriptions, which may be 100,000
        self._matched: list[tuple[dict[str, str] | None, list[int]]] = []
        self._recorded: list[m.Mutation] = []
        self._is_behind = topic.is_fifo and any(each.topic == row.number for each in state.publishes.values())
        self.message_bytes_max = limits.TOPIC_MESSAGE_BYTES_MAX
        if not context.limits.is_relaxed:
            self.message_bytes_max = message_bytes_max(row.attributes)

    @property
    def counts(self) -> PublishCounts:
        return self._fan_out.counts

    @property
    def mutations(self) -> list[m.Mutation]:
        return self._fan_out.mutations + self._recorded

    def message_id(self, number: int) -> str:
        return self._state.identity.message_id(self.number, number)

    def sequence(self, number: int) -> str | None:
        return sequence_number(number) if self._topic.is_fifo else None

    # --- rules ----------------------------------------------------------------------

    def check(self, entry: Entry, where: str) -> None:
        """Raise a TopicError if the entry is invalid. where: path of the entry in the request, for error texts."""
        message, attributes = entry.message, entry.message_attributes
        if not message:
            raise invalid_parameter("Empty message")
        if contents.message_bytes(message, attributes) > self.message_bytes_max:
            raise invalid_parameter("Message too long")
        if attributes:
            check_attributes(attributes, where)
        if entry.subject is not None and not _SUBJECT.match(entry.subject):
            raise invalid_parameter("Subject")
        self._check_text(message)
        if entry.message_structure is not None:
            self._check_structure(entry.message_structure, message)
        self._check_fifo(entry)

    def _check_text(self, text: str) -> None:
        try:
            contents.check_body(text, self._context.limits)
        except SqsError:
            raise invalid_parameter("Message Reason: Invalid characters were found in the message body.") from None

    def _check_structure(self, structure: str, message: str) -> None:
        if structure != STRUCTURED:
            raise invalid_parameter("MessageStructure")
        texts = read_texts(message)
        if texts is None:
            raise invalid_parameter("Message Structure - JSON message body failed to parse")
        if "default" not in texts:
            raise invalid_parameter("Message Structure - No default entry in JSON message body")
        for text in texts.values():
            if text:  # an empty text is allowed
                self._check_text(text)

    def _check_fifo(self, entry: Entry) -> None:
        group_id, deduplication_id = entry.message_group_id, entry.message_deduplication_id
        if self._topic.is_fifo:
            if group_id is None:
                raise invalid_parameter("The MessageGroupId parameter is required for FIFO topics")
            if deduplication_id is None and self._attributes.get(CONTENT_BASED) != "true":
                raise invalid_parameter(
                    "The topic should either have ContentBasedDeduplication enabled"
                    " or MessageDeduplicationId provided explicitly"
                )
        elif deduplication_id is not None:
            raise invalid_parameter(
                "MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter"
                " that is not valid for this topic type"
            )
        for name, token in (("MessageGroupId", group_id), ("MessageDeduplicationId", deduplication_id)):
            if token is not None:
                _check_token(token, name)

    # --- what is published ------------------------------------------------------------

    def match(self, entry: Entry) -> None:
        """Find the subscriptions of the next message of the call. Raise Unfinished if the search needs more slices."""
        texts = read_texts(entry.message or "") if entry.message_structure == STRUCTURED else None
        topic, attributes = self._topic, entry.message_attributes
        if topic.is_filtered:
            if self._matching is None:
                self._matching = Matching()
            body = text_for(QUEUE_PROTOCOL, entry.message or "", texts)
            matching = self._matching.of(len(self._matched), topic, attributes, body)
        else:
            matching = topic.matching(attributes, "")
        self._matched.append((texts, matching))

    def add(self, entry: Entry, place: int) -> int:
        """Publish one message; return its number, or that of the earlier message with the same deduplication id.

        place: position of the message in the call. ``match`` must have been called for all messages.
        Raise RequestThrottled if no more ids can be remembered, TopicThrottled if too many publishes are undelivered.
        """
        deduplication_id = None
        if self._topic.is_fifo:
            deduplication_id = entry.message_deduplication_id
            if deduplication_id is None:
                deduplication_id = sha256((entry.message or "").encode()).hexdigest()
            key = self._key(entry.message_group_id or "", deduplication_id)
            first = self._keys.get(key) or self._state.invocations.first_sent(key, self._context.now_ms, TOO_MANY)
            if first is not None:
                return first
        number = self._context.next_number()
        if deduplication_id is not None:
            self._keys[key] = number
            self._recorded.append(m.InvocationRecorded(key, self._context.now_ms, self.number, number))
        texts, matching = self._matched[place]
        message = Message(
            self._state,
            self._topic,
            self._arn,
            number,
            self._context.now_ms,
            self._call.endpoint,
            entry.message or "",
            texts=texts,
            subject=entry.subject,
            attributes=entry.message_attributes,
            trace_header=self._call.trace_header or None,
            group_id=entry.message_group_id,
            deduplication_id=deduplication_id,
            sign=self._context.sign,
        )
        self.counts.filtered += self._topic.confirmed - len(matching)
        if matching and (self._is_behind or not self._fan_out.has_room(message, len(matching))):
            self._recorded.append(self._deferred(message, matching))
            self._is_behind = self._topic.is_fifo
        else:
            self._fan_out.add(message, [self._topic.subscriptions[each] for each in matching])
        return number

    def _key(self, group_id: str, deduplication_id: str) -> bytes:
        if self._attributes.get(THROUGHPUT_SCOPE) == "MessageGroup":
            deduplication_id = f"{group_id} {deduplication_id}"  # ids contain no space, so the text is unambiguous
        given = _KEY.pack(self.number, _DEDUPLICATION) + deduplication_id.encode()
        return blake2b(given, digest_size=16).digest()

    def _deferred(self, message: Message, waiting: list[int]) -> m.PublishSet:
        """Return the row of a publish that is delivered in steps. waiting: numbers of its subscriptions, growing.

        Raise TopicThrottled if too many publishes are undelivered.
        """
        publishes = self._state.publishes
        waiting_bytes = sum(len(each.message) for each in publishes.values())
        if len(publishes) >= limits.PUBLISHES_MAX or waiting_bytes > limits.PUBLISHES_BYTES_MAX:
            raise TopicThrottled("Too many publishes are undelivered; try again later.")
        return m.PublishSet(
            number=message.number,
            topic=self.number,
            published_ms=message.published_ms,
            message=message.message,
            waiting=m.distances(waiting),
            base_url=message.base_url,
            subject=message.subject,
            attributes=message.attributes,
            trace_header=message.trace_header,
            group_id=message.group_id,
            deduplication_id=message.deduplication_id,
            is_structured=message.texts is not None,
            is_checked=self._fan_out.is_checked,
        )


def _check_token(token: str, name: str) -> None:
    try:
        contents.check_token(token, name)
    except SqsError:
        raise invalid_parameter(
            f"{name} Reason: it can only include alphanumeric and punctuation characters, 1 to 128 in length"
        ) from None
