"""The longest, largest and smallest that the types of a request allow, and what lies one beyond."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import inspect

from elasticq.model.limits import REQUEST_BYTES_MAX

Bounded = inspect.StrType | inspect.BytesType | inspect.ListType | inspect.DictType


class Extreme(NamedTuple):
    """A value at the bound of one field, None where a whole request is shorter, and one that is beyond it."""

    place: str
    within: Any
    beyond: Any


def unbounded(kind: inspect.Type, place: str = "$") -> Iterator[str]:
    """Yield the places inside ``kind`` that a client may fill without end."""
    match kind:
        case inspect.IntType() | inspect.FloatType():
            if None in (kind.ge if kind.ge is not None else kind.gt, kind.le if kind.le is not None else kind.lt):
                yield place
        case inspect.StrType():
            if kind.max_length is None and kind.pattern is None:
                yield place
        case inspect.BytesType() | inspect.ListType() | inspect.DictType():
            if kind.max_length is None:
                yield place
        case inspect.AnyType() | inspect.RawType():
            yield place
        case inspect.StructType() | inspect.UnionType() | inspect.TupleType():
            pass
        case _:
            assert isinstance(kind, (inspect.BoolType, inspect.NoneType, inspect.LiteralType)), kind
    for step, part in parts(kind):
        yield from unbounded(part, f"{place}{step}")


def parts(kind: inspect.Type) -> list[tuple[str, inspect.Type]]:
    match kind:
        case inspect.StructType():
            return [(f".{field.encode_name}", field.type) for field in kind.fields]
        case inspect.UnionType():
            return [("", arm) for arm in kind.types]
        case inspect.TupleType():
            return [(f"[{number}]", each) for number, each in enumerate(kind.item_types)]
        case inspect.ListType():
            return [("[]", kind.item_type)]
        case inspect.DictType():
            return [(".key", kind.key_type), (".value", kind.value_type)]
    return []


def smallest(kind: inspect.Type) -> Any:
    """Return a value that the type allows, with as little in it as may be."""
    match kind:
        case inspect.StructType():
            return {field.encode_name: smallest(field.type) for field in kind.fields if field.required}
        case inspect.UnionType():
            return None if kind.includes_none else smallest(kind.types[0])
        case inspect.ListType():
            return [smallest(kind.item_type)] * (kind.min_length or 0)
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.IntType():
            return max(kind.ge or 0, 0)
        case inspect.FloatType():
            return 1.0
    return {inspect.BoolType: False, inspect.DictType: {}}.get(type(kind), "")


def largest(kind: inspect.Type, choice: int) -> Any:
    """Return a value with as many members and items as may be at once; ``choice``: which of a field's few words.

    Its texts grow when they are written in lower case.
    """
    match kind:
        case inspect.StructType():
            return {field.encode_name: largest(field.type, choice) for field in kind.fields}
        case inspect.UnionType():
            return largest(next(arm for arm in kind.types if not isinstance(arm, inspect.NoneType)), choice)
        case inspect.ListType():
            return [smallest(kind.item_type)] * (kind.max_length or 0)
        case inspect.DictType():
            return {f"k{number}": smallest(kind.value_type) for number in range(kind.max_length or 0)}
        case inspect.LiteralType():
            return kind.values[choice % len(kind.values)]
        case inspect.IntType():
            return kind.le
        case inspect.StrType() if kind.max_length is not None and kind.max_length < REQUEST_BYTES_MAX:
            return "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}" * kind.max_length
    return smallest(kind)


def extremes(kind: inspect.Type, place: str = "$") -> Iterator[Extreme]:
    """Yield each field's extremes inside an else smallest value of ``kind``."""
    yield from _own(kind, place)
    match kind:
        case inspect.StructType():
            others = smallest(kind)
            for field in kind.fields:
                name = field.encode_name
                for each in extremes(field.type, f"{place}.{name}"):
                    yield _inside(each, lambda value, name=name: {**others, name: value})
        case inspect.UnionType():
            for arm in kind.types:
                yield from extremes(arm, place)
        case inspect.ListType():
            for each in extremes(kind.item_type, f"{place}[]"):
                yield _inside(each, lambda value: [value])
        case inspect.DictType():
            for each in extremes(kind.key_type, f"{place}.key"):
                yield _inside(each, lambda key: {key: smallest(kind.value_type)})
            for each in extremes(kind.value_type, f"{place}.value"):
                yield _inside(each, lambda value: {"k": value})


def _inside(extreme: Extreme, wrap: Any) -> Extreme:
    within = None if extreme.within is None else wrap(extreme.within)
    return Extreme(extreme.place, within, wrap(extreme.beyond))


def _own(kind: inspect.Type, place: str) -> Iterator[Extreme]:
    if isinstance(kind, inspect.IntType):
        assert kind.ge is not None
        assert kind.le is not None
        yield Extreme(f"{place} at most", kind.le, kind.le + 1)
        yield Extreme(f"{place} at least", kind.ge, kind.ge - 1)
    elif isinstance(kind, Bounded) and kind.max_length is not None:
        count = kind.max_length
        if count >= REQUEST_BYTES_MAX:
            yield Extreme(place, None, _of(kind, count + 1))
        else:
            yield Extreme(place, _of(kind, count), _of(kind, count + 1))


def _of(kind: Bounded, count: int) -> Any:
    if isinstance(kind, inspect.ListType):
        return [smallest(kind.item_type)] * count
    if isinstance(kind, inspect.DictType):
        return {f"k{number}": smallest(kind.value_type) for number in range(count)}
    return "x" * count
