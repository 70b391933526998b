"""Ids that are never given twice: queue ids, sequences, hand-out numbers, MessageIds, receipt handles.

Numbers carry the term they were made in (design.md §2): after a lost tail a
new master cannot give the same number to another message, so an old consumer's
delete never removes what it did not receive. Nothing is stored for a handle:
kind, queue id, sequence and hand-out number stand in it under a MAC, so it is
valid on every member, after failover and restart.
"""

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from hashlib import blake2b
from hmac import compare_digest
from struct import Struct as Layout

from msgspec import Struct

from elasticq.model.errors import ReceiptHandleIsInvalid

TERM_SHIFT = 40  # sequence and queue id = term << 40 | counter
HAND_OUT_TERM_SHIFT = 32  # hand-out number = term << 32 | hand-outs so far

_RECEIPT = 1  # handle kinds; leases will be another
_HANDLE = Layout(">BQQQ")
_MAC_BYTES = 17  # 25 + 17 = 42 bytes are 56 base64 characters without padding
_HANDLE_CHARS = 56
_ORIGIN = Layout(">QQ")


def next_sequence(last: int, term: int) -> int:
    """The number after ``last``, made in ``term``; used for sequences and queue ids."""
    return max(last, term << TERM_SHIFT) + 1


def next_hand_out(last: int, term: int) -> int:
    """Hand-outs are counted through all terms; the term in front tells them apart after a lost tail."""
    return term << HAND_OUT_TERM_SHIFT | (last & 0xFFFFFFFF) + 1


class Receipt(Struct, gc=False):
    """What a valid handle says."""

    queue_id: int
    sequence: int
    hand_out: int


class Identity:
    """Mints and reads ids under the cluster's MAC key."""

    __slots__ = ("_handles", "_messages")

    def __init__(self, mac_key: bytes) -> None:
        # Keyed once and copied for each id: half the price of keying anew.
        self._handles = blake2b(key=mac_key, person=b"receipt-handle", digest_size=_MAC_BYTES)
        self._messages = blake2b(key=mac_key, person=b"message-id", digest_size=16)

    def message_id(self, queue_id: int, sequence: int) -> str:
        """UUID-shaped, of the queue and sequence under which the message was first stored."""
        digest = self._messages.copy()
        digest.update(_ORIGIN.pack(queue_id, sequence))
        text = digest.hexdigest()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def receipt_handle(self, queue_id: int, sequence: int, hand_out: int) -> str:
        head = _HANDLE.pack(_RECEIPT, queue_id, sequence, hand_out)
        digest = self._handles.copy()
        digest.update(head)
        return b2a_base64(head + digest.digest(), newline=False).decode("ascii")

    def read_handle(self, handle: str) -> Receipt:
        """Raises ReceiptHandleIsInvalid for anything that this cluster did not mint."""
        try:
            raw = a2b_base64(handle, strict_mode=True) if len(handle) == _HANDLE_CHARS else b""
        except (Base64Error, ValueError):
            raw = b""
        if len(raw) != _HANDLE.size + _MAC_BYTES:
            raise ReceiptHandleIsInvalid(f'The input receipt handle "{handle}" is not a valid receipt handle.')
        head = raw[: _HANDLE.size]
        digest = self._handles.copy()
        digest.update(head)
        kind, queue_id, sequence, hand_out = _HANDLE.unpack(head)
        if not compare_digest(digest.digest(), raw[_HANDLE.size :]) or kind != _RECEIPT:
            raise ReceiptHandleIsInvalid(f'The input receipt handle "{handle}" is not a valid receipt handle.')
        return Receipt(queue_id, sequence, hand_out)
