"""The MD5 digests that SQS puts beside bodies and attributes so that clients can check them.

They guard against damage on the way, not against people: boto3 compares
MD5OfMessageBody and MD5OfBody, the Java SDK the ones of attributes too.
Nothing is stored: a digest follows from what is sent or handed out.
"""

from collections.abc import Mapping
from hashlib import md5

from elasticq.model.commands import MessageAttributeValue


def body_md5(body: str) -> str:
    """MD5OfMessageBody and MD5OfBody: hex MD5 of the UTF-8 text."""
    return md5(body.encode(), usedforsecurity=False).hexdigest()


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
    return md5(b"".join(parts), usedforsecurity=False).hexdigest()


def _value(attribute: MessageAttributeValue) -> bytes:
    if attribute.data_type.startswith("Binary"):
        return b"\x02" + _sized(attribute.binary_value or b"")
    return b"\x01" + _sized((attribute.string_value or "").encode())


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
