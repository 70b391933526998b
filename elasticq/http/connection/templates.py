"""Tells heads that differ only in the values of some headers, as those of an SDK do from one call to the next.

A template is made of a head that was read line by line. It fits another head
of the same length that is equal in every byte outside those values, and whose
values hold nothing but printable ASCII: so its lines end where the template's
end, and have the same names in the same order. Cutting such a head takes a
fifth of the time that reading its lines takes.
"""

from collections.abc import Iterable
from itertools import pairwise
from struct import Struct
from typing import Final

PRINTABLE: Final = bytes(range(0x20, 0x7F))

Span = tuple[int, int]
"""Where a value begins in a head, and where it ends."""


class Template:
    """The bytes that heads have in common, and where their values stand between them."""

    __slots__ = ("_common", "_unpack")

    def __init__(self, head: bytes, spans: Iterable[Span]) -> None:
        """``spans``: of the values in ``head`` that may differ, in their order."""
        cuts = [0]
        for begin, end in spans:
            cuts += begin, end
        cuts.append(len(head))
        sizes = [end - begin for begin, end in pairwise(cuts)]
        self._unpack = Struct("".join([f"{size}s" for size in sizes])).unpack
        self._common = self._unpack(head)[::2]

    def values(self, head: bytes) -> tuple[bytes, ...] | None:
        """Return the values of ``head``, which has the template's length; None where it does not fit."""
        parts = self._unpack(head)
        if parts[::2] != self._common:
            return None
        values = parts[1::2]
        return None if b"".join(values).translate(None, PRINTABLE) else values
