"""Draws values out of the bytes of an input, so that a fuzzer that changes bytes changes what is drawn."""

from collections.abc import Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import msgspec

Item = TypeVar("Item")

NUMBERS = (0, 1, 2, 3, 10, 30, 127, 128, 255, 256, 900, 1_000, 43_200, 65_535, 65_536, 1 << 31, (1 << 31) - 1, 1 << 40)
NUMBERS += (1 << 53, (1 << 62) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1_700_000_000_000)
TEXTS = ("", "a", "b", "A", "x.fifo", "0", "1", "30", "true", "false", "All", "*", ".*", "é", "\u20ac", "\U0001f40d")
TEXTS += ("\0", "\n", "\x0b", "\ufffe", '"', "<&>", "\\", "%41", "+", "a" * 81, "a.b", "null", "-1", "1e3", " a ")
BLOBS = (b"", b"a", b"\0", b"\xff", b"k" * 16, b"k" * 32, b"\xc1", b"\x90", b"\x80")


class Choices:
    """Draws as ``random.Random`` does. After the last byte every draw is the first, smallest one."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_over(self) -> bool:
        return self._at >= len(self._data)

    def rest(self) -> bytes:
        """All bytes that were not drawn yet."""
        rest, self._at = self._data[self._at :], len(self._data)
        return rest

    def randbytes(self, size: int) -> bytes:
        drawn = self._data[self._at : self._at + size]
        self._at += size
        return drawn.ljust(size, b"\0")

    def below(self, end: int) -> int:
        """From 0 to ``end`` - 1. One byte for each 256 possibilities, so that inputs stay short."""
        return int.from_bytes(self.randbytes(((end - 1).bit_length() + 7) // 8), "little") % end

    def randint(self, first: int, last: int) -> int:
        return first + self.below(last - first + 1)

    def random(self) -> float:
        return self.below(256) / 256

    def flag(self) -> bool:
        return self.below(2) == 1

    def seldom(self) -> bool:
        """One time in sixteen; never after the last byte."""
        return self.below(16) == 15

    def choice(self, of: Sequence[Item]) -> Item:
        return of[self.below(len(of))]

    def choices(self, of: Sequence[Item], k: int) -> list[Item]:
        return [self.choice(of) for _ in range(k)]

    # --- values -------------------------------------------------------------------------

    def number(self) -> int:
        number = self.choice(NUMBERS) if self.flag() else self.below(256)
        return max(-number, -(1 << 63)) if self.seldom() else number

    def text(self) -> str:
        kind = self.below(4)
        if kind < 2:
            return self.choice(TEXTS)
        if kind == 2:
            return self.choice(TEXTS) + self.choice(TEXTS)
        return self.randbytes(self.below(24)).decode("utf-8", "replace")

    def blob(self) -> bytes:
        return self.choice(BLOBS) if self.flag() else self.randbytes(self.below(40))

    def json(self, depth: int = 3) -> Any:
        """Any value of JSON."""
        kind = self.below(8 if depth else 5)
        if kind == 0:
            return self.choice([None, True, False])
        if kind == 1:
            return self.number()
        if kind == 2:
            return self.choice([0.5, -1.5, 1e300, 5e-324, 1e16])
        if kind < 5:
            return self.text()
        if kind == 5:
            return [self.json(depth - 1) for _ in range(self.below(4))]
        return {self.text(): self.json(depth - 1) for _ in range(self.below(4))}


fields_of = cache(msgspec.structs.fields)


def bare(kind: Any) -> Any:
    """A type without its bounds."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


class Builder:
    """Makes plain values of annotated types, as a peer or a client would write them.

    Seldom one of another type, unless ``is_strict``. Subclasses say what texts and numbers of some fields are.
    """

    def __init__(self, choices: Choices, *, is_strict: bool = False) -> None:
        self.choices = choices
        self._is_strict = is_strict

    def text(self, name: str) -> str:
        return self.choices.text()

    def number(self, name: str) -> int:
        return self.choices.number()

    def mapping(self, name: str, key: Any, value: Any) -> dict[Any, Any]:
        kind = self.text if bare(key) is str else self.number
        return {kind(f"{name}.key"): self.value(value, name) for _ in range(self.choices.below(4))}

    def is_present(self, field: msgspec.structs.FieldInfo) -> bool:
        """Whether a field that may be left out is given."""
        return self.choices.below(3) == 0

    def struct(self, kind: type[Any]) -> Any:
        """As it is on the wire: by names, or in its order where it is ``array_like``, with its tag."""
        config = kind.__struct_config__
        fields = fields_of(kind)
        if config.array_like:
            values = [self.value(field.type, field.name) for field in fields]
            return values if config.tag is None else [config.tag, *values]
        given = [field for field in fields if field.required or self.is_present(field)]
        return {field.encode_name: self.value(field.type, field.name) for field in given}

    def value(self, kind: Any, name: str = "") -> Any:
        choices = self.choices
        if not self._is_strict and choices.seldom() and choices.seldom():
            return choices.json(2)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self.value(arguments[0], name)
        if origin in (Union, UnionType):
            others = [each for each in arguments if each is not NoneType]
            if len(others) < len(arguments) and choices.below(4) == 3:
                return None
            return self.value(choices.choice(others), name)
        if origin is list or (origin is tuple and arguments[-1] is Ellipsis):
            return [self.value(arguments[0], name) for _ in range(choices.below(4))]
        if origin is tuple:
            return [self.value(each, name) for each in arguments]
        if origin is dict:
            return self.mapping(name, *arguments)
        if origin is not None:  # Literal
            return choices.choice(arguments)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self.struct(kind)
        return self._plain(kind, name)

    def _plain(self, kind: Any, name: str) -> Any:
        if kind is int:
            return self.number(name)
        if kind is str:
            return self.text(name)
        if kind is bool:
            return self.choices.flag()
        if kind in (bytes, msgspec.Raw):
            return self.choices.blob()
        if kind is float:
            return self.choices.below(1 << 16) / 7
        return self.choices.json()
