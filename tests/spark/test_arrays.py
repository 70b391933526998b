"""Arrow arrays made without pandas are those that pyarrow makes itself."""

import subprocess
import sys
from typing import Any

import pyarrow
import pytest

from elasticq.spark.arrays import binaries, maps, numbers, strings
from elasticq.spark.schema import default_schema

KIND = pyarrow.map_(
    pyarrow.string(),
    pyarrow.struct([("type", pyarrow.string()), ("string", pyarrow.string()), ("binary", pyarrow.binary())]),
)
PROGRAM = """
import sys
from elasticq.spark.schema import Origin, Rows, default_schema
message = {
    "MessageId": "id", "Body": "b", "Attributes": {"SentTimestamp": "1", "ApproximateReceiveCount": "1"},
    "MessageAttributes": {"n": {"DataType": "Binary", "BinaryValue": b"1"}},
}
batch, _ = Rows(default_schema(sys.argv[1], True), sys.argv[1], "fail").batch([message, {**message, "Attributes": {}}], Origin("q", 1, 2))
assert batch.num_rows == 2
batch.validate(full=True)
print([name for name in ("pandas", "pyarrow.compute") if name in sys.modules])
"""  # noqa: E501


def is_same(made: Any, values: list[Any], kind: Any) -> None:
    made.validate(full=True)
    assert made.type == kind
    assert made.equals(pyarrow.array(values, kind))


@pytest.mark.parametrize(
    "values",
    [[], [""], ["a", "bc", ""], ["ä", "b", "🙂"], [None], [None, None, None], ["a", None, "ö", ""], ["", None]],
    ids=str,
)
def test_texts_and_bytes(values: list[str | None]) -> None:
    is_same(strings(values), values, pyarrow.string())
    written = [None if value is None else value.encode() for value in values]
    is_same(binaries(written), written, pyarrow.binary())


def test_bytes_need_not_be_text_and_half_a_character_is_none() -> None:
    is_same(binaries([b"\xff\x00", None, b"\xed\xa0\x80"]), [b"\xff\x00", None, b"\xed\xa0\x80"], pyarrow.binary())
    for values in (["\ud800"], ["a", None, "\ud800"]):
        with pytest.raises(UnicodeEncodeError):
            strings(values)


@pytest.mark.parametrize(
    "values", [[], [0], [1, -2, 3], [None], [None] * 9, [1, *[None] * 8, 2], list(range(17))], ids=str
)
def test_numbers_of_any_count_with_and_without_nulls(values: list[int | None]) -> None:
    is_same(numbers(pyarrow.int64(), "q", values), values, pyarrow.int64())
    is_same(numbers(pyarrow.int32(), "i", values), values, pyarrow.int32())
    times = numbers(pyarrow.timestamp("us", "UTC"), "q", values)
    is_same(times, values, pyarrow.timestamp("us", "UTC"))
    is_same(numbers(pyarrow.float64(), "d", values), values, pyarrow.float64())


@pytest.mark.parametrize(
    "values",
    [
        [],
        [{}],
        [{}, {}],
        [{"a": {"type": "String", "string": "x", "binary": None}}],
        [
            {},
            {"a": {"type": "String", "string": "x"}, "b": {"type": "Binary", "binary": b"\xff"}},
            {},
            {"ö": {"type": "Number", "string": ""}},
        ],
    ],
    ids=str,
)
def test_maps_of_attributes(values: list[dict[str, dict[str, Any]]]) -> None:
    is_same(maps(KIND, values), [list(each.items()) for each in values], KIND)


def test_spark_has_the_type_that_the_maps_are_of() -> None:
    (attributes,) = (field for field in default_schema("string", False) if field.name == "attributes")
    assert attributes.dataType.simpleString() == "map<string,struct<type:string,string:string,binary:binary>>"


@pytest.mark.parametrize("value_format", ["string", "binary"])
def test_a_batch_of_every_column_imports_no_pandas(value_format: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, value_format], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
