"""Publish and PublishBatch: what reaches the queues, in one entry, and what is refused."""

import json
from hashlib import sha256
from typing import Any

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.envelopes import SENDER
from elasticq.engine.topics.fan_out import sequence_number
from elasticq.model import commands as c
from elasticq.model import errors, limits
from elasticq.model import topic_commands as t
from elasticq.model.errors import SqsError
from elasticq.model.limits import INVOCATION_WINDOW_MS
from tests.engine.topic_desk import TopicDesk, arn, arn_of_queue, attribute

CALL = b"1" * 16
Entry = t.PublishBatchRequestEntry


@pytest.fixture
def desk() -> TopicDesk:
    made = TopicDesk()
    made.create()
    made.topic()
    made.subscribe()
    return made


@pytest.fixture
def ordered() -> TopicDesk:
    """A FIFO topic with two FIFO queues and a standard one."""
    made = TopicDesk()
    made.topic("orders.fifo")
    for name in ("a.fifo", "b.fifo"):
        made.fifo(name)
        made.subscribe(name, topic="orders.fifo", RawMessageDelivery="true")
    made.create()
    made.subscribe(topic="orders.fifo")
    return made


def refused(desk: TopicDesk, **members: Any) -> tuple[str, str]:
    with pytest.raises(SqsError) as caught:
        desk.publish(**members)
    return caught.value.code, caught.value.message.removeprefix("Invalid parameter: ")


# --- what reaches the queues ------------------------------------------------------------


def test_all_queues_get_the_message_in_one_entry(desk: TopicDesk) -> None:
    for name in ("a", "b"):
        desk.create(name)
        desk.subscribe(name)
    published = desk.publish("hello")
    assert [type(mutation) for mutation in desk.steps[-1]] == [m.MessageStored] * 3
    for name in ("jobs", "a", "b"):
        (body,) = desk.bodies(name)
        told = json.loads(body)
        assert (told["Message"], told["MessageId"]) == ("hello", published.message_id)
    assert published.counts.delivered == 3


def test_message_of_the_queue_has_an_id_of_its_own_and_no_attributes(desk: TopicDesk) -> None:
    published = desk.publish("hello", message_attributes={"a": attribute("v")})
    message = desk.receive_one()
    assert message.message_id != published.message_id
    assert message.message_attributes is None
    assert message.attributes is not None
    assert message.attributes["SenderId"] == SENDER


def test_raw_message_is_the_body_with_its_attributes() -> None:
    desk = TopicDesk()
    desk.create()
    desk.topic()
    desk.subscribe(RawMessageDelivery="true")
    attributes = {"s": attribute("v"), "n": attribute("1", "Number.int"), "b": attribute(b"\x00\xff")}
    desk.publish("plain", subject="lost", message_attributes=attributes)
    message = desk.receive_one()
    assert (message.body, message.message_attributes) == ("plain", attributes)


def test_later_subscribers_see_no_earlier_message(desk: TopicDesk) -> None:
    desk.publish("before")
    desk.create("late")
    desk.subscribe("late")
    desk.publish("after")
    assert (desk.messages("late"), desk.messages()) == (["after"], ["before", "after"])


def test_delay_of_the_queue_applies(desk: TopicDesk) -> None:
    desk.create("slow", DelaySeconds="5")
    desk.subscribe("slow")
    desk.publish()
    assert desk.counts("slow") == (0, 0, 1)


def test_group_of_a_message_of_a_standard_topic_is_passed_on(desk: TopicDesk) -> None:
    desk.publish(message_group_id="tenant")
    message = desk.receive_one()
    assert message.attributes is not None
    assert message.attributes["MessageGroupId"] == "tenant"


def test_filter_decides_at_the_publish(desk: TopicDesk) -> None:
    desk.create("red")
    desk.subscribe("red", FilterPolicy={"color": ["red"]})
    first = desk.publish("1", message_attributes={"color": attribute("red")})
    second = desk.publish("2", message_attributes={"color": attribute("blue")})
    assert desk.messages("red") == ["1"]
    assert desk.messages() == ["1", "2"]
    assert (first.counts.filtered, second.counts.filtered) == (0, 1)


def test_changed_filter_counts_at_once(desk: TopicDesk) -> None:
    desk.create("red")
    made = desk.subscribe("red", FilterPolicy={"color": ["red"]})
    desk.do(t.SetSubscriptionAttributes(made, "FilterPolicy", ""))
    desk.publish("1")
    desk.do(t.SetSubscriptionAttributes(made, "FilterPolicyScope", "MessageBody"))
    desk.do(t.SetSubscriptionAttributes(made, "FilterPolicy", '{"a": ["b"]}'))
    desk.publish("2")
    desk.publish('{"a": "b"}')
    assert desk.messages("red") == ["1", '{"a": "b"}']


def test_structured_message_has_a_text_for_each_protocol(desk: TopicDesk) -> None:
    desk.subscribe(protocol="sms", endpoint="+15550100")
    text = json.dumps({"default": "d", "sqs": "q", "email": 1, "other": "o"})
    desk.publish(text, message_structure="json")
    assert desk.messages() == ["q"]
    desk.publish('{"default": "d"}', message_structure="json")
    assert desk.messages() == ["q", "d"]


@pytest.mark.parametrize("text", ["x", "[]", '"x"', '{"default": "d"} x', "{}", '{"default": 1}'])
def test_message_without_structure_is_refused(desk: TopicDesk, text: str) -> None:
    code, message = refused(desk, message=text, message_structure="json")
    assert code == "InvalidParameter"
    assert message in (
        "Message Structure - JSON message body failed to parse",
        "Message Structure - No default entry in JSON message body",
    )


def test_texts_of_a_structured_message_are_looked_at(desk: TopicDesk) -> None:
    for text in ('{"default": "\\u0000"}', '{"default": "d", "sqs": "\\ufffe"}'):
        assert refused(desk, message=text, message_structure="json")[1].startswith("Message Reason")
    assert refused(desk, message='{"default": "\\ud800"}', message_structure="json")[0] == "InvalidParameter"
    desk.publish('{"default": "d", "sqs": ""}', message_structure="json")
    assert desk.messages() == [""]


def test_target_arn_is_as_the_topics(desk: TopicDesk) -> None:
    desk.do(t.Publish(target_arn=arn(), message="by target"))
    assert desk.messages() == ["by target"]


def test_forwarding_queue_passes_its_copy_on(desk: TopicDesk) -> None:
    desk.create("end")
    desk.do(c.DeclareQueue("start", move_to="end"))
    desk.subscribe("start", RawMessageDelivery="true")
    desk.publish("on")
    assert (desk.bodies("start"), desk.bodies("end")) == ([], ["on"])


# --- dead letters --------------------------------------------------------------------------


def test_copy_for_a_queue_that_is_gone_goes_to_the_dead_letters(desk: TopicDesk) -> None:
    desk.create("dead")
    desk.subscribe("gone", RedrivePolicy={"deadLetterTargetArn": arn_of_queue("dead")})
    published = desk.publish("late", message_attributes={"a": attribute("v")})
    (told,) = map(json.loads, desk.bodies("dead"))
    assert (told["Message"], told["MessageId"]) == ("late", published.message_id)
    assert (published.counts.delivered, published.counts.dead_lettered, published.counts.failed) == (1, 1, 0)
    desk.create("gone")
    desk.publish("again")
    assert desk.messages("gone") == ["again"], "a queue that is made anew is served again"


def test_copy_for_a_queue_that_is_gone_is_dropped_without_a_policy(desk: TopicDesk) -> None:
    desk.subscribe("gone")
    counts = desk.publish().counts
    assert (counts.delivered, counts.failed) == (1, 1)


def test_raw_message_with_more_attributes_than_a_queue_takes_is_a_failed_delivery(desk: TopicDesk) -> None:
    for name in ("raw", "dead"):
        desk.create(name)
    desk.subscribe("raw", RawMessageDelivery="true", RedrivePolicy={"deadLetterTargetArn": arn_of_queue("dead")})
    attributes = {f"a{number}": attribute("v") for number in range(11)}
    desk.publish("many", message_attributes=attributes)
    assert (desk.bodies("raw"), desk.bodies("dead"), desk.messages()) == ([], ["many"], ["many"])
    (content,) = desk.queue("dead").contents.values()
    assert content.attributes == attributes
    assert len(json.loads(desk.bodies()[0])["MessageAttributes"]) == 11


def test_raw_message_with_as_many_attributes_as_a_queue_takes_is_delivered(desk: TopicDesk) -> None:
    desk.create("raw")
    desk.subscribe("raw", RawMessageDelivery="true")
    desk.publish("ten", message_attributes={f"a{number}": attribute("v") for number in range(10)})
    assert desk.bodies("raw") == ["ten"]


# --- an SDK's retry -----------------------------------------------------------------------


def test_retry_of_a_call_is_one_publish(desk: TopicDesk) -> None:
    first = desk.publish("once", invocation=CALL)
    again = desk.publish("once", invocation=CALL)
    assert (again.message_id, again.sequence_number) == (first.message_id, None)
    assert desk.messages() == ["once"]


def test_retry_of_a_batch_is_one_batch(ordered: TopicDesk) -> None:
    entries = [Entry(str(at), f"m{at}", message_group_id="g", message_deduplication_id=f"d{at}") for at in range(3)]
    command = t.PublishBatch(arn("orders.fifo"), entries)
    first, again = (ordered.do(command, invocation=CALL) for _ in range(2))
    assert [(x.id, x.message_id, x.sequence_number) for x in again.successful] == [
        (x.id, x.message_id, x.sequence_number) for x in first.successful
    ]
    assert ordered.bodies("a.fifo") == ["m0", "m1", "m2"]


@pytest.mark.parametrize(
    "command",
    [
        t.CreateTopic(name="other"),
        t.Subscribe(arn(), "sqs", arn_of_queue("new")),
        t.Subscribe(arn(), "email", "a@example.com"),
        t.TagResource(arn(), [t.Tag("a", "b")]),
        t.SetTopicAttributes(arn(), "DisplayName", "d"),
        t.DeleteTopic(arn()),
    ],
    ids=lambda command: type(command).__name__,
)
def test_retry_of_a_call_on_topics_answers_the_same(desk: TopicDesk, command: t.TopicCommand) -> None:
    first = desk.do(command, invocation=CALL)
    steps = len(desk.log)
    assert desk.do(command, invocation=CALL) == first
    assert len(desk.log) == steps


# --- FIFO -----------------------------------------------------------------------------------


def test_group_and_id_reach_fifo_queues_and_no_standard_one(ordered: TopicDesk) -> None:
    published = ordered.publish("1", topic="orders.fifo", message_group_id="g", message_deduplication_id="d")
    for name in ("a.fifo", "b.fifo"):
        (content,) = ordered.queue(name).contents.values()
        assert (content.body, content.group_id, content.deduplication_id) == ("1", "g", "d")
    (content,) = ordered.queue().contents.values()
    assert (content.group_id, content.deduplication_id) == (None, None)
    told = json.loads(content.body)
    assert told["SequenceNumber"] == published.sequence_number == sequence_number(published.number)
    assert not {"SignatureVersion", "Signature", "SigningCertURL"} & told.keys()


def test_sequence_numbers_grow_over_terms_and_have_twenty_digits(ordered: TopicDesk) -> None:
    numbers = []
    for term in (1, 1, 7):
        ordered.context.term = term
        published = ordered.publish(
            "m", topic="orders.fifo", message_group_id="g", message_deduplication_id=f"d{len(numbers)}"
        )
        assert published.sequence_number is not None
        numbers.append(int(published.sequence_number))
    assert numbers == sorted(set(numbers))
    assert all(len(str(number)) == 20 for number in numbers)


def test_duplicate_is_answered_as_the_first_and_delivered_nowhere(ordered: TopicDesk) -> None:
    members = {"topic": "orders.fifo", "message_deduplication_id": "d"}
    first = ordered.publish("1", message_group_id="g", **members)
    again = ordered.publish("2", message_group_id="other", **members)
    assert (again.message_id, again.sequence_number) == (first.message_id, first.sequence_number)
    assert (ordered.bodies("a.fifo"), ordered.messages()) == (["1"], ["1"])
    ordered.wait(INVOCATION_WINDOW_MS / 1_000)
    ordered.publish("3", message_group_id="g", **members)
    assert ordered.messages() == ["1", "3"]


def test_duplicates_in_a_batch_are_one_message(ordered: TopicDesk) -> None:
    entries = [Entry(str(at), f"m{at}", message_group_id="g", message_deduplication_id="same") for at in range(2)]
    result = ordered.publish_batch(*entries, topic="orders.fifo")
    assert len({each.message_id for each in result.successful}) == 1
    assert ordered.bodies("a.fifo") == ["m0"]


def test_group_can_be_the_scope_of_ids(ordered: TopicDesk) -> None:
    ordered.do(t.SetTopicAttributes(arn("orders.fifo"), "FifoThroughputScope", "MessageGroup"))
    for group in ("g", "h", "g"):
        ordered.publish(group, topic="orders.fifo", message_group_id=group, message_deduplication_id="d")
    assert ordered.messages() == ["g", "h"]


def test_id_by_content_is_of_the_message_alone(ordered: TopicDesk) -> None:
    ordered.do(t.SetTopicAttributes(arn("orders.fifo"), "ContentBasedDeduplication", "true"))
    ordered.publish("same", topic="orders.fifo", message_group_id="g", subject="a")
    ordered.publish("same", topic="orders.fifo", message_group_id="g", subject="b")
    (content,) = ordered.queue("a.fifo").contents.values()
    assert content.deduplication_id == sha256(b"same").hexdigest()


@pytest.mark.parametrize(
    ("topic", "members", "text"),
    [
        ("orders.fifo", {}, "The MessageGroupId parameter is required for FIFO topics"),
        (
            "orders.fifo",
            {"message_group_id": "g"},
            "The topic should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided"
            " explicitly",
        ),
        (
            "news",
            {"message_deduplication_id": "d"},
            "MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter that is not valid"
            " for this topic type",
        ),
    ],
)
def test_group_and_id_fit_the_kind_of_topic(ordered: TopicDesk, topic: str, members: dict[str, str], text: str) -> None:
    ordered.topic()
    assert refused(ordered, topic=topic, **members) == ("InvalidParameter", text)


# --- what is refused ------------------------------------------------------------------------


def test_size_counts_attributes(desk: TopicDesk) -> None:
    name, kind, value = "a", "String", "v" * 90
    room = limits.TOPIC_MESSAGE_BYTES_DEFAULT - len(name) - len(kind) - len(value)
    desk.publish("x" * room, message_attributes={name: attribute(value)})
    assert refused(desk, message="x" * (room + 1), message_attributes={name: attribute(value)}) == (
        "InvalidParameter",
        "Message too long",
    )


def test_topic_may_take_longer_or_shorter_messages(desk: TopicDesk) -> None:
    desk.do(t.SetTopicAttributes(arn(), "MaximumMessageSize", str(limits.TOPIC_MESSAGE_BYTES_MAX)))
    desk.publish("x" * limits.TOPIC_MESSAGE_BYTES_MAX)
    desk.do(t.SetTopicAttributes(arn(), "MaximumMessageSize", "1024"))
    assert refused(desk, message="x" * 1_025)[1] == "Message too long"


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"message": ""}, "Empty message"),
        ({"message": "\x00"}, "Message Reason: Invalid characters were found in the message body."),
        ({"subject": ""}, "Subject"),
        ({"subject": "a\nb"}, "Subject"),
        ({"subject": "x" * 101}, "Subject"),
        ({"message_structure": "xml"}, "MessageStructure"),
    ],
)
def test_message_that_is_none_is_refused(desk: TopicDesk, members: dict[str, str], text: str) -> None:
    assert refused(desk, **members) == ("InvalidParameter", text)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (t.Publish(message="m"), "TopicArn or TargetArn Reason: no value for required parameter"),
        (
            t.Publish(target_arn="arn:aws:sns:us-east-1:0:endpoint/GCM/a/b", message="m"),
            "TargetArn Reason: No endpoint found for the target arn specified",
        ),
        (t.Publish(phone_number="+1555", message="m"), "PhoneNumber Reason: this server sends no text messages"),
    ],
)
def test_publish_without_a_topic_is_refused(desk: TopicDesk, command: t.Publish, text: str) -> None:
    with pytest.raises(errors.InvalidParameter) as caught:
        desk.do(command)
    assert caught.value.message == f"Invalid parameter: {text}"


BAD_ATTRIBUTES: list[tuple[str, c.MessageAttributeValue, str]] = [
    (
        "a",
        attribute(""),
        "The message attribute 'a' must contain non-empty message attribute value for message attribute type 'String'.",
    ),
    (
        "a",
        c.MessageAttributeValue("Binary"),
        "The message attribute 'a' must contain non-empty message attribute value for message attribute type 'Binary'.",
    ),
    ("a", attribute(b"x", "String"), "The message attribute 'a' with type 'String' must use field 'String'."),
    ("a", attribute(b"x", "Number"), "The message attribute 'a' with type 'Number' must use field 'String'."),
    ("a", attribute("x", "Binary"), "The message attribute 'a' with type 'Binary' must use field 'Binary'."),
    *[
        (
            "a",
            attribute("x", kind),
            "The message attribute 'a' has an invalid message attribute type, the set of supported type prefixes is"
            " Binary, Number, and String.",
        )
        for kind in ("Text", "String.", "Stringx")
    ],
    ("x" * 257, attribute("x"), "Length of message attribute name must be less than 256 bytes."),
    (
        "a^b",
        attribute("x"),
        "Invalid non-alphanumeric character '#x5E' was found in the message attribute name. Can only include"
        " alphanumeric characters, hyphens, underscores, or dots.",
    ),
    (".a", attribute("x"), "Invalid message attribute name starting with character '.' was found."),
    ("a.", attribute("x"), "Invalid message attribute name ending with character '.' was found."),
    ("a..b", attribute("x"), "Message attribute name can not have successive '.' character."),
    ("price", attribute("x", "Number"), "Could not cast message attribute 'price' value to number."),
]


@pytest.mark.parametrize(("name", "value", "text"), BAD_ATTRIBUTES)
def test_attribute_that_is_none_is_refused_in_awss_words(
    desk: TopicDesk, name: str, value: c.MessageAttributeValue, text: str
) -> None:
    assert refused(desk, message_attributes={name: value}) == ("ParameterValueInvalid", text)


def test_attribute_with_the_longest_name_passes(desk: TopicDesk) -> None:
    desk.publish(message_attributes={"x" * 256: attribute("x"), "c": attribute("v", "String.custom")})


def test_missing_type_is_a_validation_error_with_its_place(desk: TopicDesk) -> None:
    value = c.MessageAttributeValue(string_value="x")
    assert refused(desk, message_attributes={"attr1": value}) == (
        "ValidationError",
        "1 validation error detected: Value null at 'messageAttributes.attr1.member.dataType' failed to satisfy"
        " constraint: Member must not be null",
    )
    with pytest.raises(errors.TopicValidationError, match=r"publishBatchRequestEntries\.1\.member\.messageAttributes"):
        desk.publish_batch(Entry("a", "m", message_attributes={"attr1": value}))


# --- batches --------------------------------------------------------------------------------


def test_entries_of_a_batch_are_answered_in_their_order_and_filtered_alone(desk: TopicDesk) -> None:
    desk.create("red")
    desk.subscribe("red", FilterPolicy={"color": ["red"]}, RawMessageDelivery="true")
    colors = ["red", "blue", "red"]
    entries = [
        Entry(f"e{at}", f"m{at}", message_attributes={"color": attribute(color)}) for at, color in enumerate(colors)
    ]
    result = desk.publish_batch(*entries)
    assert ([each.id for each in result.successful], result.failed) == (["e0", "e1", "e2"], [])
    assert (desk.bodies("red"), desk.messages()) == (["m0", "m2"], ["m0", "m1", "m2"])
    assert [json.loads(body)["MessageId"] for body in desk.bodies()] == [each.message_id for each in result.successful]


BATCHES = [
    ([], "EmptyBatchRequest", "The batch request doesn't contain any entries."),
    (
        [Entry(str(at), "m") for at in range(11)],
        "TooManyEntriesInBatchRequest",
        "The batch request contains more entries than permissible.",
    ),
    (
        [Entry("a", "m"), Entry("a", "m")],
        "BatchEntryIdsNotDistinct",
        "Two or more batch entries in the request have the same Id.",
    ),
    (
        [Entry("a b", "m")],
        "InvalidBatchEntryId",
        "The Id of a batch entry in the batch request contains an impermissible character: a b",
    ),
    (
        [Entry("x" * 81, "m")],
        "InvalidBatchEntryId",
        f"The Id of a batch entry in the batch request is too long: {'x' * 81}",
    ),
    (
        [Entry("a", "x" * 200_000), Entry("b", "x" * 200_000)],
        "BatchRequestTooLong",
        "The length of all the messages put together is more than the limit.",
    ),
    ([Entry("a", "m"), Entry("b", "")], "InvalidParameter", "Invalid parameter: Empty message"),
]


@pytest.mark.parametrize(("entries", "code", "text"), BATCHES)
def test_batch_with_anything_wrong_is_refused_as_a_whole(
    desk: TopicDesk, entries: list[Entry], code: str, text: str
) -> None:
    with pytest.raises(SqsError) as caught:
        desk.publish_batch(*entries)
    assert (caught.value.code, caught.value.message) == (code, text)
    assert desk.bodies() == []


def test_envelopes_are_signed_once_a_publish_where_there_is_a_signer(desk: TopicDesk) -> None:
    asked: list[tuple[bytes, dict[str, str]]] = []

    def sign(key: bytes, envelope: dict[str, str]) -> tuple[str, str]:
        asked.append((key, envelope))
        return "c2ln", "its.pem"

    desk.context.sign = sign
    for name in ("signed1", "signed2"):
        desk.create(name)
        desk.subscribe(name)
    desk.publish("x", subject="s")
    ((key, signed),) = asked
    assert key == desk.state.mac_key
    for name in ("signed1", "signed2"):
        (envelope,) = map(json.loads, desk.bodies(name))
        assert (envelope["Signature"], envelope["SigningCertURL"].rpartition("/")[2]) == ("c2ln", "its.pem")
        assert {member: envelope[member] for member in signed} == signed
    assert set(signed) == {"Type", "MessageId", "TopicArn", "Message", "Timestamp", "SignatureVersion", "Subject"}


def test_neither_raw_messages_nor_those_of_fifo_topics_are_signed() -> None:
    def sign(key: bytes, envelope: dict[str, str]) -> tuple[str, str]:
        raise AssertionError("nobody needs it")

    desk = TopicDesk()
    desk.context.sign = sign
    desk.topic()
    desk.create("raw")
    desk.subscribe("raw", RawMessageDelivery="true")
    desk.publish("x")
    desk.topic("orders.fifo")
    desk.fifo("steps.fifo")
    desk.subscribe("steps.fifo", topic="orders.fifo")
    desk.publish("x", topic="orders.fifo", message_group_id="g", message_deduplication_id="d")
    assert (desk.bodies("raw"), desk.messages("steps.fifo")) == (["x"], ["x"])
