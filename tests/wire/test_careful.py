"""JSON with nulls in it, and lists that are too long, become plain commands."""

import msgspec
import pytest

from elasticq.model.commands import MessageAttributeValue, SendMessage, SendMessageBatch, SendMessageBatchEntry
from elasticq.model.limits import LIST_ITEMS_MAX
from elasticq.wire import careful


def test_null_is_as_absent_wherever_it_stands() -> None:
    body = (
        b'{"QueueUrl":"u","DelaySeconds":null,"MessageBody":"x","MessageAttributes":'
        b'{"a":{"DataType":"String","StringValue":"1","BinaryValue":null},"b":null}}'
    )
    attributes = {"a": MessageAttributeValue("String", string_value="1")}
    assert careful.decode(SendMessage, body) == SendMessage("u", message_body="x", message_attributes=attributes)


def test_null_among_items_is_left_out() -> None:
    command = careful.decode(SendMessageBatch, b'{"QueueUrl":"u","Entries":[null,{"Id":"a","MessageBody":null},null]}')
    assert isinstance(command, SendMessageBatch)
    assert command.entries == [SendMessageBatchEntry("a")]


@pytest.mark.parametrize("count", [LIST_ITEMS_MAX, LIST_ITEMS_MAX + 1, 2 * LIST_ITEMS_MAX])
def test_of_a_list_that_is_too_long_as_many_are_built_as_are_too_many(count: int) -> None:
    body = b'{"Entries":[' + b",".join([b'{"Id":"a"}'] * count) + b"]}"
    command = careful.decode(SendMessageBatch, body)
    assert isinstance(command, SendMessageBatch)
    assert len(command.entries or ()) == min(count, LIST_ITEMS_MAX + 1)


@pytest.mark.parametrize("body", [b"null", b"[]", b'{"MessageBody":5}', b'{"MessageBody":null,}', b""])
def test_what_is_wrong_with_it_is_still_wrong(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        careful.decode(SendMessage, body)
