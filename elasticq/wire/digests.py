"""The MD5 digests that SQS adds to bodies and attributes so that clients can check them.

They protect against damage in transit, not against attackers. boto3 compares
MD5OfMessageBody and MD5OfBody; the Java SDK compares those of attributes, too.
Digests are not stored. The module remembers the digests of the last sent bodies:
most messages are received soon after they were sent, as the same object in
memory.
"""

from collections.abc import Mapping
from hashlib import md5
from typing import Final

from elasticq.model.commands import MessageAttributeValue

try:  # without the costs of OpenSSL: 0.15 us less for a short text, a tenth more for a long one
    from _md5 import md5 as _small_md5  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    _small_md5 = md5

_SMALL_BYTES: Final = 1_024
_short_md5: Final = _small_md5  # compiled, a name of this module costs nothing, and a name of another one a lookup
_RECENT_MAX: Final = 1_021  # a prime, because addresses of objects have even distances


_recent: Final[list[tuple[str, str]]] = [("", md5(usedforsecurity=False).hexdigest())] * _RECENT_MAX
"""The newest short bodies with their digests. The address of the body defines the index of its pair.

Bodies are compared by identity, so their length does not matter. While a body is in this list, no other object can get
its address. A pair is one object, so that threads cannot mix two pairs.
"""
_address: Final = id


def sent_md5(body: str) -> str:
    """Return the same as ``body_md5``, and remember it if the body is short."""
    digest = _md5(body.encode())
    if len(body) <= _SMALL_BYTES:
        _recent[(_address(body) >> 4) % _RECENT_MAX] = body, digest
    return digest


def body_md5(body: str) -> str:
    """Return MD5OfMessageBody or MD5OfBody: the hexadecimal MD5 of the UTF-8 text."""
    known = _recent[(_address(body) >> 4) % _RECENT_MAX]
    return known[1] if known[0] is body else _md5(body.encode())


def attributes_md5(attributes: Mapping[str, MessageAttributeValue] | None) -> str | None:
    """Return MD5OfMessageAttributes or MD5OfMessageSystemAttributes; None if there are no attributes.

    The hashed bytes are name, data type and value of each attribute, in the order of names. Each part follows its
    length (4 bytes, big-endian). Before the value is a byte: 1 for String and Number, 2 for Binary. Source: SQS
    developer guide, "Calculating the MD5 message digest".
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
