"""The texts of errors about values of settings: what the setting accepts, in words and with its range."""

import json
from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

_HIDDEN: Final = "secret_access_key"


def unfit(sections: Mapping[str, Any], kind: type[Struct], given: Callable[[str], str]) -> Iterator[str]:
    """Yield a sentence for each value of ``sections`` that does not fit its field of ``kind``.

    given: returns a setting's name as its source wrote it, such as --port for http.port.
    """
    for name, value, wanted in _values(sections, kind, ""):
        if not _fits(value, wanted):
            yield f"{given(name)}{_shown(name, value)} is not {taken(wanted)}"


def taken(wanted: Any) -> str:
    """Return what a type of a setting accepts, such as ``a whole number from 0 to 65535``."""
    plain, meta = _parts(wanted)
    if meta.description:
        return meta.description
    if get_origin(plain) is Literal:
        return f"one of {', '.join(map(str, get_args(plain)))}"
    if plain is bool:
        return "true or false"
    if plain is int:
        return f"a whole number{_range(meta.ge, meta.le)}"
    if plain is str:
        return _text(meta)
    return "a list" if get_origin(plain) is list else "a table"


def _values(tree: Mapping[str, Any], kind: type[Struct], path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, value and type of each setting, including those inside tables and lists of tables."""
    for key, wanted in get_type_hints(kind, include_extras=True).items():
        if key not in tree:
            continue
        name, value = f"{path}{key}", tree[key]
        plain, _ = _parts(wanted)
        below = next((each for each in (plain, *get_args(plain)) if _is_struct(each)), None)
        if below is None:
            yield name, value, wanted
        elif plain is below and isinstance(value, Mapping):
            yield from _values(value, below, f"{name}.")
        elif isinstance(value, Mapping if get_origin(plain) is dict else list):
            for at, each in value.items() if isinstance(value, Mapping) else enumerate(value):
                place = f"{name}.{at}" if isinstance(value, Mapping) else f"{name}[{at}]"
                if isinstance(each, Mapping):
                    yield from _values(each, below, f"{place}.")
                else:
                    yield place, each, below
        else:
            yield name, value, wanted


def _parts(wanted: Any) -> tuple[Any, Meta]:
    """Return the type without its bounds, and the bounds. For an optional type, ignore None."""
    if NoneType in get_args(wanted):
        wanted = next(each for each in get_args(wanted) if each is not NoneType)
    meta = next((each for each in getattr(wanted, "__metadata__", ()) if isinstance(each, Meta)), Meta())
    return getattr(wanted, "__origin__", wanted) if hasattr(wanted, "__metadata__") else wanted, meta


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _fits(value: Any, wanted: Any) -> bool:
    try:
        msgspec.convert(value, wanted, strict=False)
    except msgspec.ValidationError:
        return False
    return True


def _shown(name: str, value: Any) -> str:
    """Return the value as it was written, with a space before it; empty for tables, lists and secrets."""
    if isinstance(value, Mapping | list) or name.endswith(_HIDDEN):
        return ""
    is_plain = not isinstance(value, str) or (value.isprintable() and value and " " not in value)
    return f" {value}" if is_plain and not isinstance(value, bool) else f" {json.dumps(value)}"


def _text(meta: Meta) -> str:
    if meta.max_length is None:
        return "text that is not empty" if meta.min_length else "text"
    return f"text of {meta.min_length or 0} to {meta.max_length} characters"


def _range(least: Any, most: Any) -> str:
    if least is None:
        return "" if most is None else f" of at most {most}"
    return f" of at least {least}" if most is None else f" from {least} to {most}"
