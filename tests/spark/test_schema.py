"""Messages as rows: the columns of the format, JSON bodies by the user's schema, and bodies that do not fit."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import types
from pyspark.sql.types import StructType

from elasticq.spark.bodies import BadBody
from elasticq.spark.options import OptionError
from elasticq.spark.schema import Origin, Rows, default_schema

ORIGIN = Origin("jobs", 7, 3)
MESSAGE = {
    "MessageId": "id-1",
    "ReceiptHandle": "handle-1",
    "Body": "hällo",
    "Attributes": {
        "SentTimestamp": "1700000000123",
        "ApproximateFirstReceiveTimestamp": "1700000000456",
        "ApproximateReceiveCount": "2",
        "SenderId": "AID",
        "MessageGroupId": "g",
        "MessageDeduplicationId": "d",
        "SequenceNumber": "18",
    },
    "MessageAttributes": {
        "kind": {"DataType": "String", "StringValue": "new"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    },
}


def rows(
    schema: StructType, messages: list[dict[str, Any]], value_format: str = "string", on_error: str = "fail"
) -> Any:
    batch, rejected = Rows(schema, value_format, on_error).batch(messages, ORIGIN)
    return (batch.to_pylist() if batch is not None else []), rejected


def bodies(*texts: str) -> list[dict[str, Any]]:
    return [{"MessageId": f"id-{number}", "Body": body} for number, body in enumerate(texts)]


def test_a_message_fills_every_column() -> None:
    (row,), _ = rows(default_schema("string", True), [MESSAGE])
    assert row == {
        "messageId": "id-1",
        "body": "hällo",
        "messageGroupId": "g",
        "deduplicationId": "d",
        "sequenceNumber": "18",
        "sentTimestamp": datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
        "firstReceiveTimestamp": datetime(2023, 11, 14, 22, 13, 20, 456000, UTC),
        "receiveCount": 2,
        "senderId": "AID",
        "attributes": [
            ("kind", {"type": "String", "string": "new", "binary": None}),
            ("raw", {"type": "Binary", "string": None, "binary": b"\x00\xff"}),
        ],
        "queue": "jobs",
        "receiptHandle": "handle-1",
        "batch": 7,
        "partition": 3,
    }


def test_what_a_message_does_not_have_is_null() -> None:
    (row,), _ = rows(default_schema("string", False), bodies("a"))
    assert row["sentTimestamp"] is None
    assert row["messageGroupId"] is None
    assert row["attributes"] == []
    assert "receiptHandle" not in row


def test_a_binary_body_is_its_utf8() -> None:
    (row,), _ = rows(default_schema("binary", False), bodies("ä"), "binary")
    assert row["body"] == b"\xc3\xa4"


def test_a_receive_asks_only_for_what_a_column_needs() -> None:
    narrow = Rows(StructType().add("body", "string").add("sentTimestamp", "timestamp"), "string", "fail")
    assert sorted(narrow.system_attributes) == ["ApproximateReceiveCount", "SentTimestamp"]
    assert not narrow.wants_attributes(True)
    assert Rows(StructType().add("body", "string"), "string", "deadletter").wants_attributes(False)


def test_fields_of_a_json_body_are_columns_beside_those_of_the_message() -> None:
    schema = (
        StructType().add("id", "long").add("price", "decimal(6,2)").add("when", "timestamp").add("day", "date")
        .add("tags", types.ArrayType(types.StringType()))
        .add("sizes", types.MapType(types.StringType(), types.IntegerType()))
        .add("raw", "binary").add("nested", StructType().add("ok", "boolean").add("ratio", "double"))
        .add("messageId", "string")
    )  # fmt: skip
    body = (
        '{"id": 9007199254740993, "price": 12.5, "when": "2026-01-31T12:00:00Z", "day": "2026-01-31", "tags": ["a", 1],'
        ' "sizes": {"s": 1}, "raw": "AP8=", "nested": {"ok": true, "ratio": 1}, "extra": 0}'
    )
    (row,), _ = rows(schema, bodies(body), "json")
    assert row == {
        "id": 9007199254740993,
        "price": Decimal("12.50"),
        "when": datetime(2026, 1, 31, 12, tzinfo=UTC),
        "day": date(2026, 1, 31),
        "tags": ["a", "1"],
        "sizes": [("s", 1)],
        "raw": b"\x00\xff",
        "nested": {"ok": True, "ratio": 1.0},
        "messageId": "id-0",
    }


def test_the_whole_json_body_may_be_one_column() -> None:
    schema = StructType().add("body", types.ArrayType(types.IntegerType()))
    assert rows(schema, bodies("[1, 2]"), "json")[0] == [{"body": [1, 2]}]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("integer", '{"a": "1"}'),
        ("integer", '{"a": 2147483648}'),
        ("integer", '{"a": true}'),
        ("boolean", '{"a": 1}'),
        ("double", '{"a": "x"}'),
        ("timestamp", '{"a": "yesterday"}'),
        ("date", '{"a": 5}'),
        ("binary", '{"a": "***"}'),
        ("decimal(4,2)", '{"a": 123.45}'),
        ("decimal(4,2)", '{"a": 1.234}'),
        ("string", "[]"),
        ("string", "{"),
        ("string", "[" * 100_000),
    ],
)
def test_a_body_that_does_not_fit_fails_with_its_message_id(kind: str, body: str) -> None:
    with pytest.raises(BadBody, match=r"message id-0: .*onParseError"):
        rows(StructType().add("a", kind), bodies(body), "json")


def test_a_bad_body_may_be_null() -> None:
    found, rejected = rows(
        StructType().add("a", "integer").add("messageId", "string"), bodies("{", '{"a": 1}'), "json", "null"
    )
    assert found == [{"a": None, "messageId": "id-0"}, {"a": 1, "messageId": "id-1"}]
    assert rejected == []


def test_a_bad_body_may_be_set_apart() -> None:
    found, rejected = rows(StructType().add("a", "integer"), bodies("{", '{"a": 1}'), "json", "deadletter")
    assert found == [{"a": 1}]
    assert [each.message["MessageId"] for each in rejected] == ["id-0"]
    assert "no JSON" in rejected[0].reason


def test_only_bad_bodies_make_no_batch() -> None:
    assert rows(StructType().add("a", "integer"), bodies("{"), "json", "deadletter")[0] == []


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (StructType().add("id", "integer"), "no column 'id'"),
        (StructType().add("messageId", "integer"), "column messageId is string, not int"),
        (StructType().add("body", "integer"), "body is string or binary, not int"),
    ],
)
def test_a_schema_that_the_format_cannot_fill_is_refused(schema: StructType, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        Rows(schema, "string", "fail")


def test_json_needs_a_schema() -> None:
    with pytest.raises(OptionError, match=r"valueFormat=json needs a schema"):
        default_schema("json", False)
