"""The MD5 digests that SQS puts beside bodies and attributes so that clients can check them.

They guard against damage on the way, not against people: boto3 compares
MD5OfMessageBody and MD5OfBody, the Java SDK the ones of attributes too.
Nothing is stored: a digest follows from what is sent or handed out. Those of
the bodies that were sent last are remembered, as a message is mostly received
soon after it was sent, and then as the very same text in memory.
"""

from collections.abc import Mapping
from hashlib import md5
from typing import Final

from elasticq.model.commands import MessageAttributeValue

try:  # the same function without OpenSSL's costs: 0.15 us less for a short text, a tenth more for a long one
    from _md5 import md5 as _small_md5  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    _small_md5 = md5

_SMALL_BYTES: Final = 1_024
_short_md5: Final = _small_md5  # compiled, a name of this module costs nothing, another's a look into a dict
_RECENT_MAX: Final = 1_021  # a prime, as memory hands out places at even distances


_recent: Final[list[tuple[str, str]]] = [("", md5(usedforsecurity=False).hexdigest())] * _RECENT_MAX
"""The newest short bodies with their digests, each pair where the body's address says.

Bodies are compared by identity, which costs nothing of their length; one that is held here cannot lose its address to
another one. A pair is one object, so that threads cannot mix two of them.
"""
_address: Final = id


def sent_md5(body: str) -> str:
    """As ``body_md5``, of a body that will probably be asked for again."""
    digest = _md5(body.encode())
    if len(body) <= _SMALL_BYTES:
        _recent[(_address(body) >> 4) % _RECENT_MAX] = body, digest
    return digest


def body_md5(body: str) -> str:
    """MD5OfMessageBody and MD5OfBody: hex MD5 of the UTF-8 text."""
    known = _recent[(_address(body) >> 4) % _RECENT_MAX]
    return known[1] if known[0] is body else _md5(body.encode())


def attributes_md5(attributes: Mapping[str, MessageAttributeValue] | None) -> str | None:
    """MD5OfMessageAttributes and MD5OfMessageSystemAttributes; None where there are no attributes.

    By name: name, data type and value, each with its length in front (4 bytes,
    big-endian), the value preceded by 1 for String and Number, 2 for Binary
    (SQS developer guide, "Calculating the MD5 message digest").
    """
    if not attributes:
        return None
    parts: list[bytes] = []
    for name in sorted(attributes):
        attribute = attributes[name]
        value = _value(attribute)
        parts += (_sized(name.encode()), _sized(attribute.data_type.encode()), value)
    return _md5(b"".join(parts))


def _md5(data: bytes) -> str:
    digest: str = (_short_md5 if len(data) <= _SMALL_BYTES else md5)(data, usedforsecurity=False).hexdigest()
    return digest


def _value(attribute: MessageAttributeValue) -> bytes:
    if attribute.data_type.startswith("Binary"):
        return b"\x02" + _sized(attribute.binary_value or b"")
    return b"\x01" + _sized((attribute.string_value or "").encode())


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
