"""Arrow arrays of Python values, made without pandas.

pyarrow.array() and pyarrow.scalar() import pandas to check whether a list is a pandas series. In a new worker this
import takes longer than the rest of a task, and the garbage collection after each task visits all imported objects.
"""

from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

Attribute = Mapping[str, Any]


def strings(values: Sequence[str | None]) -> Any:
    """Return a string array. Raise UnicodeEncodeError for an unpaired surrogate."""
    import pyarrow

    try:  # a check of each value for None would take as long as all the rest
        text = "".join(values)  # type: ignore[arg-type]
    except TypeError:
        return _with_nulls(pyarrow.string(), values)
    if text.isascii():
        return _joined(pyarrow.string(), values, text.encode())
    written = [value.encode() for value in values]  # type: ignore[union-attr]
    return _joined(pyarrow.string(), written, b"".join(written))


def binaries(values: Sequence[bytes | None]) -> Any:
    """Return a binary array."""
    import pyarrow

    try:
        data = b"".join(values)  # type: ignore[arg-type]
    except TypeError:
        return _with_nulls(pyarrow.binary(), values)
    return _joined(pyarrow.binary(), values, data)


def _joined(kind: Any, values: Sequence[Any], data: bytes) -> Any:
    """Return an array of the values. data: their bytes, one value after another, each as long as its value."""
    import pyarrow

    offsets = array("i", accumulate(map(len, values), initial=0))
    return pyarrow.Array.from_buffers(kind, len(values), [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)])


def _with_nulls(kind: Any, values: Sequence[str | bytes | None]) -> Any:
    import pyarrow

    if not any(values) and values.count(None) == len(values):
        return pyarrow.nulls(len(values), kind)
    builder = pyarrow.lib.StringBuilder()
    builder.append_values(values)
    built = builder.finish()
    return pyarrow.Array.from_buffers(kind, len(built), built.buffers())


def numbers(kind: Any, code: str, values: Sequence[float | None]) -> Any:
    """Return an array of the Arrow type ``kind``. code: the type code of array.array with the same layout."""
    import pyarrow

    present = None
    try:
        data: array[Any] = array(code, values)
    except TypeError:
        data = array(code, [value or 0 for value in values])
        bits = "".join("0" if value is None else "1" for value in reversed(values))
        present = pyarrow.py_buffer(int(bits, 2).to_bytes(-(-len(values) // 8), "little"))
    return pyarrow.Array.from_buffers(kind, len(values), [present, pyarrow.py_buffer(data)])


def maps(kind: Any, values: Sequence[Mapping[str, Attribute]]) -> Any:
    """Return an array of the Arrow type ``kind``: maps from names to structs of strings and binaries.

    A member of the struct that an attribute lacks is null.
    """
    import pyarrow

    is_empty = not any(values)
    names = [] if is_empty else [name for each in values for name in each]
    attributes = [] if is_empty else [attribute for each in values for attribute in each.values()]
    members = []
    for field in kind.item_type:
        make = binaries if pyarrow.types.is_binary(field.type) else strings
        members.append(make([attribute.get(field.name) for attribute in attributes]))
    items = pyarrow.Array.from_buffers(kind.item_type, len(names), [None], children=members)
    entry = pyarrow.struct([kind.key_field, kind.item_field])
    entries = pyarrow.Array.from_buffers(entry, len(names), [None], children=[strings(names), items])
    ends = array("i", bytes(4 * (len(values) + 1))) if is_empty else array("i", accumulate(map(len, values), initial=0))
    offsets = pyarrow.py_buffer(ends)
    return pyarrow.Array.from_buffers(kind, len(values), [None, offsets], children=[entries])
