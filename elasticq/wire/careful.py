"""A decoder for JSON that the decoders of the commands refuse, or for which they take too long.

Some clients write null instead of a list or map, or inside one. And 8 MiB of ``{},`` are 2.8 million entries, which
take the plain decoder 250 ms. So this module has a second class for each command. In it, every member may be null. A
list is a struct that is written as an array, with a field for each of the first items only. The decoder skips the
other items without building objects. The result becomes the plain command, without the nulls.
"""

from functools import cache
from typing import Any, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct, UnsetType, defstruct, structs

from elasticq.model.commands import Command
from elasticq.model.limits import LIST_ITEMS_MAX
from elasticq.wire.operations import bare


def decode(command: type[Command], body: bytes) -> Command:
    """Return the command in ``body``, without a check of its members' bounds. Raise the errors of msgspec."""
    found: Command = _plain(command, _decoder(command).decode(body))
    return found


@cache  # by the classes of the commands
def _decoder(command: type[Command]) -> msgspec.json.Decoder[Struct]:
    return msgspec.json.Decoder(_nullable_class(command))


@cache
def _nullable_class(kind: type[Struct]) -> type[Struct]:
    """Return a class with the members of ``kind``, in which every member may be null."""
    members = [
        (each.name, _nullable(each.type), msgspec.field(default=None, name=each.encode_name))
        for each in structs.fields(kind)
    ]
    return defstruct(kind.__name__, members)


@cache
def _first(item: Any) -> type[Struct]:
    """Return a class for a list of ``item`` that keeps only the first LIST_ITEMS_MAX + 1 items."""
    members = [(f"at{place}", _nullable(item) | UnsetType, UNSET) for place in range(LIST_ITEMS_MAX + 1)]
    return defstruct("First", members, array_like=True)


def _nullable(annotation: Any) -> Any:
    annotation = bare(annotation)
    if get_origin(annotation) is list:
        return _first(get_args(annotation)[0]) | None
    if get_origin(annotation) is dict:
        return dict[str, _nullable(get_args(annotation)[1])] | None  # type: ignore[misc]
    return (_nullable_class(annotation) if issubclass(annotation, Struct) else annotation) | None


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
    """Return the items of a list without its nulls.

    A list that is too long becomes LIST_ITEMS_MAX + 1 empty items, which the later check of bounds refuses.
    """
    if found[-1] is UNSET:
        return [_value(wanted, each) for each in found if each is not None and each is not UNSET]
    return [wanted() for _ in found]
