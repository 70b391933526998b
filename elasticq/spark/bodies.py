"""The conversion of JSON bodies to values of Spark's types.

A value that does not fit raises BadBody. It never becomes null silently.
"""

import json
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

Reader = Callable[[Any], Any]
INTEGER_BITS: Final = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


class BadBody(ValueError):
    """The error of a body that is not JSON or does not fit the schema."""


def decode(body: str) -> Any:
    """Return the JSON value of a body. Raise BadBody if it is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadBody(f"the body is no JSON: {error}") from error


def json_reader(kind: "DataType") -> Reader:
    """Return a function that converts a JSON value to one that Arrow accepts for the type, and null to None.

    The returned function raises BadBody for a value that does not fit. Raise BadBody at once if the type itself is not
    supported.
    """
    read = _reader(kind)

    def read_value(value: Any) -> Any:
        return None if value is None else read(value)

    return read_value


def _reader(kind: "DataType") -> Reader:
    from pyspark.sql import types

    match kind:
        case types.StructType():
            return _struct({field.name: json_reader(field.dataType) for field in kind.fields})
        case types.ArrayType():
            return _array(json_reader(kind.elementType))
        case types.MapType():
            return _map(json_reader(kind.valueType))
        case types.DecimalType():
            return _decimal(kind.precision, kind.scale)
    name = kind.simpleString()
    if name in INTEGER_BITS:
        return _integer(INTEGER_BITS[name])
    if name in _SCALARS:
        return _SCALARS[name]
    raise BadBody(f"type {name} cannot be read from JSON")


def _struct(fields: dict[str, Reader]) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise BadBody(f"{_shown(value)} is no object")
        return {name: read_field(value.get(name)) for name, read_field in fields.items()}

    return read


def _array(element: Reader) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, list):
            raise BadBody(f"{_shown(value)} is no array")
        return [element(each) for each in value]

    return read


def _map(read_value: Reader) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise BadBody(f"{_shown(value)} is no object")
        return [(name, read_value(each)) for name, each in value.items()]

    return read


def _integer(bits: int) -> Reader:
    def read(value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            return value
        raise BadBody(f"{_shown(value)} is no integer of {bits} bits")

    return read


def _float(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise BadBody(f"{_shown(value)} is no number")


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise BadBody(f"{_shown(value)} is neither true nor false")


def _string(value: Any) -> str:
    """Return a string unchanged, and any other value as its JSON text. Spark's from_json does the same."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _timestamp(value: Any) -> datetime:
    """Parse an ISO 8601 time. Without a zone it is in UTC."""
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise BadBody(f"{_shown(value)} is no time such as 2026-01-31T12:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _date(value: Any) -> date:
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise BadBody(f"{_shown(value)} is no date such as 2026-01-31") from None


def _decimal(precision: int, scale: int) -> Reader:
    least = Decimal(1).scaleb(-scale)

    def read(value: Any) -> Decimal:
        try:
            number = Decimal(str(value))
            exact = number.quantize(least, context=Context(prec=precision, traps=[InvalidOperation]))
        except InvalidOperation:
            number, exact = Decimal(0), Decimal(1)
        if number != exact:
            raise BadBody(f"{_shown(value)} is no decimal({precision},{scale})")
        return exact

    return read


def _binary(value: Any) -> bytes:
    try:
        return b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise BadBody(f"{_shown(value)} is no base64") from None


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


_SCALARS: Final[dict[str, Reader]] = {
    "string": _string,
    "boolean": _boolean,
    "float": _float,
    "double": _float,
    "timestamp": _timestamp,
    "date": _date,
    "binary": _binary,
}
