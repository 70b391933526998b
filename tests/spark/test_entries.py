"""Rows as entries of a batch: sizes, attributes, ids that repeat, and rows that make no message."""

from datetime import UTC, datetime

import pytest

from elasticq.spark.entries import BATCH_BYTES_MAX, BadRow, Batch, Identity, Ids, Outgoing, outgoing

IDENTITY = Identity("query", "7", 3)


def messages(*bodies: str) -> list[Outgoing]:
    return [outgoing({"body": body}, "body", None) for body in bodies]


def test_batches_end_at_ten_messages_and_one_mebibyte_with_attributes_counted() -> None:
    batch = Batch()
    for number in range(10):
        assert batch.add(messages(str(number))[0]) == []
    assert len(batch.add(messages("x")[0])) == 10
    assert [message.entry["MessageBody"] for message in batch.take()] == ["x"]
    # Name, type and value count, in bytes: 1 + 6 + 2 of an ä.
    big = outgoing({"body": "b" * (BATCH_BYTES_MAX - 10), "attributes": [("n", "ä")]}, "body", None)
    assert big.size_bytes == BATCH_BYTES_MAX - 1
    assert batch.add(big) == []
    assert batch.add(messages("1")[0]) == []
    assert len(batch.add(messages("2")[0])) == 2


def test_attributes_become_boto3s() -> None:
    row = {
        "value": "body",
        "attributes": [
            ("text", {"type": "String", "string": "a", "binary": None}),
            ("count", {"type": "Number.int", "string": "1", "binary": None}),
            ("picture", {"type": "Binary.png", "string": None, "binary": b"\x00"}),
        ],
        "delaySeconds": 3,
    }
    assert outgoing(row, "value", "group").entry == {
        "MessageBody": "body",
        "MessageGroupId": "group",
        "DelaySeconds": 3,
        "MessageAttributes": {
            "text": {"DataType": "String", "StringValue": "a"},
            "count": {"DataType": "Number.int", "StringValue": "1"},
            "picture": {"DataType": "Binary.png", "BinaryValue": b"\x00"},
        },
    }


@pytest.mark.parametrize(
    ("deliver_at", "ms"),
    [
        (1_800_000_000_123, 1_800_000_000_123),
        (datetime(2027, 1, 15, 8, tzinfo=UTC), 1_800_000_000_000),
        (datetime(2027, 1, 15, 8, 0, 0, 123_999), 1_800_000_000_123),
    ],
)
def test_priority_and_time_of_delivery_are_numbers_beside_the_other_attributes(
    deliver_at: int | datetime, ms: int
) -> None:
    row = {"body": "b", "attributes": [("a", "1")], "priority": -7, "deliver_at": deliver_at}
    made = outgoing(row, "body", None)
    assert made.entry["MessageAttributes"] == {
        "a": {"DataType": "String", "StringValue": "1"},
        "ElasticqPriority": {"DataType": "Number", "StringValue": "-7"},
        "ElasticqDeliverAt": {"DataType": "Number", "StringValue": str(ms)},
    }
    names = "b", "a", "String", "1", "ElasticqPriority", "Number", "-7", "ElasticqDeliverAt", "Number", str(ms)
    assert made.size_bytes == sum(map(len, names))
    assert "MessageAttributes" not in outgoing({"body": "b", "priority": None, "deliver_at": None}, "body", None).entry


@pytest.mark.parametrize("body", [None, "", b"\xff"])
def test_a_row_without_text_is_a_bad_row(body: object) -> None:
    with pytest.raises(BadRow):
        outgoing({"body": body}, "body", None)


def ids(bodies: list[str], identity: Identity = IDENTITY) -> dict[str, list[str]]:
    made, found = Ids(identity), {}
    for body in bodies:
        found.setdefault(body, []).append(made.of({"MessageBody": body}))
    return found


def test_ids_are_the_same_again_in_any_order_and_tell_equal_messages_apart() -> None:
    first = ids(["a", "b", "a", "c"])
    assert ids(["c", "a", "a", "b"]) == first
    assert len({one for some in first.values() for one in some}) == 4


@pytest.mark.parametrize("other", [Identity("else", "7", 3), Identity("query", "8", 3), Identity("query", "7", 4)])
def test_ids_of_another_query_batch_or_partition_are_others(other: Identity) -> None:
    assert ids(["a"], other) != ids(["a"])
