"""Decodes JSON that the plain decoders of the commands do not take, or that would take them too long.

Some clients write null where a list or map is meant, or into it; and 8 MiB of ``{},`` are 2.8 million entries, which
take the decoder a quarter of a second. Here a second class stands beside each command: everything in it may be null,
and of a list it has only the first items, as the fields of a struct that is written as an array; the decoder skips
the others without building anything. What is found becomes the plain command, without the nulls.
"""

from functools import cache
from typing import Any, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct, UnsetType, defstruct, structs

from elasticq.model.commands import Command
from elasticq.model.limits import LIST_ITEMS_MAX
from elasticq.wire.operations import bare


def decode(command: type[Command], body: bytes) -> Command:
    """The command in ``body``; the bounds of its members are not checked. Raises msgspec's errors."""
    found: Command = _plain(command, _decoder(command).decode(body))
    return found


@cache  # by the classes of the commands
def _decoder(command: type[Command]) -> msgspec.json.Decoder[Struct]:
    return msgspec.json.Decoder(_beside(command))


@cache
def _beside(kind: type[Struct]) -> type[Struct]:
    """A class with the same members as ``kind``, in which everything may be null."""
    members = [
        (each.name, _nullable(each.type), msgspec.field(default=None, name=each.encode_name))
        for each in structs.fields(kind)
    ]
    return defstruct(kind.__name__, members)


@cache
def _first(item: Any) -> type[Struct]:
    """A class for a list of ``item`` that keeps its first LIST_ITEMS_MAX + 1 items."""
    members = [(f"at{place}", _nullable(item) | UnsetType, UNSET) for place in range(LIST_ITEMS_MAX + 1)]
    return defstruct("First", members, array_like=True)


def _nullable(annotation: Any) -> Any:
    annotation = bare(annotation)
    if get_origin(annotation) is list:
        return _first(get_args(annotation)[0]) | None
    if get_origin(annotation) is dict:
        return dict[str, _nullable(get_args(annotation)[1])] | None  # type: ignore[misc]
    return (_beside(annotation) if issubclass(annotation, Struct) else annotation) | None


def _plain(kind: type[Struct], found: Struct) -> Any:
    given = structs.asdict(found)
    return kind(**{name: _value(wanted, given[name]) for name, wanted in _types(kind) if given[name] is not None})


@cache
def _types(kind: type[Struct]) -> tuple[tuple[str, Any], ...]:
    return tuple((each.name, bare(each.type)) for each in structs.fields(kind))


def _value(wanted: Any, found: Any) -> Any:
    wanted = bare(wanted)
    if get_origin(wanted) is list:
        return _items(bare(get_args(wanted)[0]), structs.astuple(found))
    if get_origin(wanted) is dict:
        kind = get_args(wanted)[1]
        return {key: _value(kind, each) for key, each in found.items() if each is not None}
    return _plain(wanted, found) if isinstance(found, Struct) else found


def _items(wanted: Any, found: tuple[Any, ...]) -> list[Any]:
    """The items of a list without its nulls; for a list that is too long as many empty items.

    The check of bounds comes later and refuses them.
    """
    if found[-1] is UNSET:
        return [_value(wanted, each) for each in found if each is not None and each is not UNSET]
    return [wanted() for _ in found]
