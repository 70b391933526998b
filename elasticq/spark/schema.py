"""The columns of ``format("sqs")``, and the Arrow record batches made from messages.

With ``valueFormat=json`` the user gives a schema. A column of it with a name from ``COLUMNS`` keeps its meaning, but
``body`` may have any type. Every other column is a field of the JSON body.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from elasticq.spark.arrays import binaries, maps, numbers, strings
from elasticq.spark.options import OptionError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from elasticq.spark.bodies import Reader

Message = dict[str, Any]  # in the shape of boto3's receive_message

COLUMNS: Final = {
    "messageId": "string",
    "body": "string",
    "messageGroupId": "string",
    "deduplicationId": "string",
    "sequenceNumber": "string",
    "sentTimestamp": "timestamp",
    "firstReceiveTimestamp": "timestamp",
    "receiveCount": "int",
    "senderId": "string",
    "attributes": "map<string,struct<type:string,string:string,binary:binary>>",
    "queue": "string",
    "receiptHandle": "string",
    "batch": "bigint",
    "partition": "int",
    "state": "string",
}
DEAD_LETTER: Final = "deadletter"  # of onParseError
# Columns that only the user's schema adds. state: visible, inflight or delayed; only a peek has it.
ONLY_WHERE_NAMED: Final = frozenset(["state"])
SYSTEM_ATTRIBUTES: Final = {
    "messageGroupId": "MessageGroupId",
    "deduplicationId": "MessageDeduplicationId",
    "sequenceNumber": "SequenceNumber",
    "sentTimestamp": "SentTimestamp",
    "firstReceiveTimestamp": "ApproximateFirstReceiveTimestamp",
    "receiveCount": "ApproximateReceiveCount",
    "senderId": "SenderId",
}


def default_schema(value_format: str, with_handles: bool) -> "StructType":
    """Return the schema that applies if the user gives none. Raise OptionError for valueFormat=json.

    with_handles: whether it has the column receiptHandle.
    """
    from pyspark.sql import types

    if value_format == "json":
        raise OptionError('valueFormat=json needs a schema of the body\'s fields: .schema("id int, name string")')
    attribute = types.StructType().add("type", "string").add("string", "string").add("binary", "binary")
    kinds: dict[str, Any] = {
        **COLUMNS,
        "receiveCount": types.IntegerType(),
        "batch": types.LongType(),
        "partition": types.IntegerType(),
        "body": value_format,
        "attributes": types.MapType(types.StringType(), attribute),
    }
    schema = types.StructType()
    for name, kind in kinds.items():
        if name not in ONLY_WHERE_NAMED and (with_handles or name != "receiptHandle"):
            schema = schema.add(name, kind)
    return schema


@dataclass(frozen=True)
class Origin:
    """Where a task reads: the values of the columns that are equal in all its rows."""

    queue: str
    batch: int
    partition: int


@dataclass(frozen=True)
class Rejected:
    """A message that cannot become a row, and the reason."""

    message: Message
    reason: str


class Rows:
    """A converter of messages to record batches of one schema. on_parse_error: fail, null or deadletter."""

    def __init__(self, schema: "StructType", value_format: str, on_parse_error: str) -> None:
        self._schema = schema
        self._on_parse_error = on_parse_error
        self._is_json = value_format == "json"
        self.names = [field.name for field in schema.fields]
        for field in schema.fields:
            _check(field.name, field.dataType.simpleString(), value_format)
        self._payload = [field.name for field in schema.fields if field.name not in COLUMNS]
        self._arrow_schema: Any = None
        self._body = next((field.dataType for field in schema.fields if field.name == "body"), None)

    @property
    def system_attributes(self) -> list[str]:
        """Return the system attributes to receive: for columns and dead letters, and the receive count."""
        needed = {*self.names, "receiveCount", *(["messageGroupId"] if self._on_parse_error == DEAD_LETTER else ())}
        return [name for column, name in SYSTEM_ATTRIBUTES.items() if column in needed]

    def wants_attributes(self, includes_attributes: bool) -> bool:
        """Return whether receives need the attributes: for their column, or because a dead letter keeps them."""
        return self._on_parse_error == DEAD_LETTER or (includes_attributes and "attributes" in self.names)

    def batch(self, messages: Sequence[Message], origin: Origin) -> tuple[Any, list[Rejected]]:
        """Return a record batch, or None without rows, and the rejected messages.

        Raise BadBody for a body that does not fit the schema if on_parse_error is fail.
        """
        import pyarrow

        rejected: list[Rejected] = []
        if self._is_json:
            messages, payloads = self._parsed(messages, rejected)
        if not messages:
            return None, rejected
        arrays = []
        schema = self._arrow()
        page = Page(messages, origin)
        for column in schema:
            if self._is_json and (column.name == "body" or column.name not in COLUMNS):
                arrays.append(pyarrow.array([payload[column.name] for payload in payloads], column.type))
            else:
                arrays.append(_COLUMNS[column.name](page, column.type))
        return pyarrow.RecordBatch.from_arrays(arrays, schema=schema), rejected

    def _parsed(
        self, messages: Sequence[Message], rejected: list[Rejected]
    ) -> tuple[list[Message], list[Mapping[str, Any]]]:
        from elasticq.spark.bodies import BadBody

        read_body = self._reader()
        kept, payloads = [], []
        for message in messages:
            try:
                payload = read_body(message["Body"])
            except BadBody as error:
                reason = f"message {message['MessageId']}: {error}"
                if self._on_parse_error == "fail":
                    raise BadBody(f"{reason}; see option onParseError") from error
                if self._on_parse_error == DEAD_LETTER:
                    rejected.append(Rejected(message, reason))
                    continue
                payload = dict.fromkeys([*self._payload, "body"])
            kept.append(message)
            payloads.append(payload)
        return kept, payloads

    def _reader(self) -> Callable[[str], Mapping[str, Any]]:
        from elasticq.spark.bodies import BadBody, decode, json_reader

        fields: dict[str, Reader] = {
            field.name: json_reader(field.dataType) for field in self._schema.fields if field.name not in COLUMNS
        }
        whole = json_reader(self._body) if self._body is not None else None

        def read_body(body: str) -> Mapping[str, Any]:
            value = decode(body)
            found = {}
            if fields:
                if not isinstance(value, dict):
                    raise BadBody("the body is no JSON object")
                found = {name: read(value.get(name)) for name, read in fields.items()}
            if whole is not None:
                found["body"] = whole(value)
            return found

        return read_body

    def _arrow(self) -> Any:
        """Return the Arrow schema. Each worker makes it once, and pickling leaves it out."""
        if self._arrow_schema is None:
            self._arrow_schema = _arrow_schema(self._schema)
        return self._arrow_schema

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_arrow_schema": None}


def _arrow_schema(schema: "StructType") -> Any:
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return to_arrow_schema(schema, timezone="UTC")
    except TypeError:  # Spark 4.1 has no such parameter and always uses UTC
        return to_arrow_schema(schema)


def _check(name: str, kind: str, value_format: str) -> None:
    if name not in COLUMNS:
        if value_format != "json":
            known = ", ".join(COLUMNS)
            raise OptionError(
                f"format sqs has no column {name!r}, only {known}; fields of bodies need valueFormat=json"
            )
    elif name == "body":
        allowed = {"string": ("string", "binary"), "binary": ("string", "binary")}.get(value_format)
        if allowed and kind not in allowed:
            raise OptionError(f"column body is string or binary, not {kind}, unless valueFormat=json")
    elif kind != COLUMNS[name]:
        raise OptionError(f"column {name} is {COLUMNS[name]}, not {kind}")


# --- columns --------------------------------------------------------------------------------------
# A function makes a whole column at a time, which costs a few microseconds a row.


class Page:
    """The messages of one record batch."""

    __slots__ = ("messages", "origin", "system")

    def __init__(self, messages: Sequence[Message], origin: Origin) -> None:
        self.messages = messages
        self.origin = origin
        self.system = [message.get("Attributes", _NOTHING) for message in messages]


Column = Callable[[Page, Any], Any]  # page and Arrow type → Arrow array
_NOTHING: Final[Mapping[str, str]] = {}


def _member(name: str) -> Column:
    return lambda page, kind: strings([message.get(name) for message in page.messages])


def _body(page: Page, kind: Any) -> Any:
    import pyarrow

    if pyarrow.types.is_binary(kind):
        return binaries([message["Body"].encode("utf-8", "surrogatepass") for message in page.messages])
    return strings([message["Body"] for message in page.messages])


def _system(name: str) -> Column:
    return lambda page, kind: strings([attributes.get(name) for attributes in page.system])


def _number(name: str, code: str, factor: int = 1) -> Column:
    """Return a column of the numbers in a system attribute, which is decimal text, times ``factor``.

    code: the type code of array.array.
    """

    def column(page: Page, kind: Any) -> Any:
        try:
            found = [int(attributes[name]) * factor for attributes in page.system]
        except KeyError:  # a peeked message that was never received lacks the attribute
            texts = [attributes.get(name) for attributes in page.system]
            return numbers(kind, code, [None if text is None else int(text) * factor for text in texts])
        return numbers(kind, code, found)

    return column


def _queue(page: Page, kind: Any) -> Any:
    return strings([page.origin.queue] * len(page.messages))


def _same(name: str, code: str) -> Column:
    """Return a column that repeats a number of the page's origin."""
    return lambda page, kind: numbers(kind, code, [getattr(page.origin, name)] * len(page.messages))


def _attributes(page: Page, kind: Any) -> Any:
    return maps(kind, [
        {
            name: {
                "type": attribute["DataType"],
                "string": attribute.get("StringValue"),
                "binary": attribute.get("BinaryValue"),
            }
            for name, attribute in written.items()
        }
        if (written := message.get("MessageAttributes"))
        else _NONE
        for message in page.messages
    ])  # fmt: skip


_NONE: Final[Mapping[str, Mapping[str, Any]]] = {}
_MICROSECONDS: Final = 1000  # of a millisecond
_COLUMNS: Final[Mapping[str, Column]] = {
    "messageId": _member("MessageId"),
    "body": _body,
    "messageGroupId": _system("MessageGroupId"),
    "deduplicationId": _system("MessageDeduplicationId"),
    "sequenceNumber": _system("SequenceNumber"),
    "sentTimestamp": _number("SentTimestamp", "q", _MICROSECONDS),
    "firstReceiveTimestamp": _number("ApproximateFirstReceiveTimestamp", "q", _MICROSECONDS),
    "receiveCount": _number("ApproximateReceiveCount", "i"),
    "senderId": _system("SenderId"),
    "attributes": _attributes,
    "queue": _queue,
    "receiptHandle": _member("ReceiptHandle"),
    "batch": _same("batch", "q"),
    "partition": _same("partition", "i"),
    "state": _member("State"),
}
