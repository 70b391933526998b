"""A reader of the JSON documents that clients store: policies, weights, redrive and delivery policies, filters.

Decoders raise RecursionError when the stack is nearly full. So whether they can read a text depends on the depth of
the caller's stack. This reader refuses a text by its own depth, so all callers get the same outcome.
"""

import re
from itertools import accumulate
from typing import Any, Final

import msgspec

from elasticq.model.limits import DOCUMENT_DEPTH_MAX

_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""What each bracket adds to the depth, as a signed byte."""
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")


class Unreadable(ValueError):
    """An error: a document is not JSON, or it nests too deeply. Its text gives the reason."""


def read(text: str, depth_max: int = DOCUMENT_DEPTH_MAX) -> Any:
    """Return the value of a JSON text.

    Raise Unreadable for text that is not JSON or has more than ``depth_max`` lists and objects inside each other.
    NaN, Infinity, lone surrogates and numbers that are too large for a double are not JSON.
    """
    check_depth(text, depth_max)
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError) as error:
        raise Unreadable(str(error)) from None


def check_depth(text: str, depth_max: int = DOCUMENT_DEPTH_MAX) -> None:
    """Raise Unreadable for text with more than ``depth_max`` lists and objects inside each other.

    The cost grows with the length of the text, and does not depend on its shape.
    """
    if text.count("[") + text.count("{") <= depth_max:
        return
    steps = _STRING.sub("", text).encode("utf-8", "replace").translate(_STEPS, _NO_BRACKETS)
    if max(accumulate(memoryview(steps).cast("b")), default=0) > depth_max:
        raise Unreadable(f"it nests more than {depth_max} levels deep")
