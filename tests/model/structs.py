"""Hypothesis strategies for msgspec structs, made from their fields' types."""

from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st

_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(0, 2**63 - 1),
    str: st.text(max_size=12),
    bytes: st.binary(max_size=24),
    bool: st.booleans(),
    NoneType: st.none(),
}


def structs(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Any value of ``kind`` that a codec may meet."""
    fields = {field.name: values(field.type) for field in msgspec.structs.fields(kind)}
    return st.builds(kind, **fields)


def values(kind: Any) -> st.SearchStrategy[Any]:
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _within(*arguments)
    if origin in (Union, UnionType):
        return st.one_of(*map(values, arguments))
    if origin is list:
        return st.lists(values(arguments[0]), max_size=4)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values(arguments[0]), max_size=4).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, arguments))
    if origin is dict:
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=3)
    return structs(kind)


def _within(kind: Any, meta: msgspec.Meta) -> st.SearchStrategy[Any]:
    """What elasticq/model/ranges.py and limits.py allow; lists, maps and texts are short anyway."""
    if kind is int:
        return st.integers(meta.ge, meta.le)
    if kind is bytes:
        return st.binary(min_size=meta.min_length or 0, max_size=meta.max_length)
    if kind is not str:
        return values(kind)
    return st.text(min_size=meta.min_length or 0, max_size=12)
