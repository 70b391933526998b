"""Unique ids: queue ids, sequences, delivery numbers, MessageIds and receipt handles.

Numbers contain the term in which they were made (docs/adr/0018). After a lost log tail, a new master cannot give the
same number to another message. So a consumer with an old handle cannot delete a message that it did not receive.

Receipt handles are not stored. A handle contains its kind, the queue id, the sequence and the delivery number, with a
MAC. So it is valid on every member, and after a failover or a restart.
"""

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from hashlib import blake2b
from hmac import compare_digest
from struct import Struct as Layout
from typing import Final

from elasticq.model.errors import ReceiptHandleIsInvalid, quoted

TERM_SHIFT: Final = 40  # sequence and queue id = term << 40 | counter
DELIVERY_TERM_SHIFT: Final = 32  # delivery number = term << 32 | deliveries so far

_RECEIPT: Final = 1  # the kind of handle, its first byte; the only one so far
_HANDLE: Final = Layout(">BQQQ")
_MAC_BYTES: Final = 17  # 25 + 17 = 42 bytes are 56 base64 characters without padding
_HANDLE_CHARS: Final = 56
_base64: Final = b2a_base64  # compiled code reads a name of this module without a dict lookup
_ORIGIN: Final = Layout(">QQ")
_NUMBER: Final = Layout(">Q")
_TOKEN_BYTES: Final = 144  # as on AWS: 288 hexadecimal digits

RECENT_MAX: Final = 2_048  # a power of two


class Receipt:
    """The message and the delivery that a valid receipt handle identifies."""

    __slots__ = ("delivery_number", "queue_id", "sequence")

    def __init__(self, queue_id: int, sequence: int, delivery_number: int) -> None:
        self.queue_id: Final = queue_id
        self.sequence: Final = sequence
        self.delivery_number: Final = delivery_number


class _CachedId:
    """A cached MessageId and the message it identifies."""

    __slots__ = ("message_id", "queue_id", "sequence")

    def __init__(self) -> None:
        self.queue_id = self.sequence = -1
        self.message_id = ""


_NO_ID: Final = _CachedId()
"""The content of all slots that were never used. It equals no message."""


class _Recent:
    """A cache of the newest ids. Most messages are received soon after they were sent, and deleted soon after.

    A cached id costs a tenth of the hash that makes or checks it. The last bits of a sequence select the slot of its
    MessageId. A slot is created at its first use, because many servers in tests stay nearly empty. It is then used
    again; compiled, it stores numbers without an object for each. The handles are in two halves: when the newer half
    is full, the older one is dropped.
    """

    def __init__(self) -> None:
        self.ids = [_NO_ID] * RECENT_MAX
        self.handles: dict[str, Receipt] = {}
        self.older_handles: dict[str, Receipt] = {}


def next_sequence(last: int, term: int) -> int:
    """Return the number after ``last`` for this term. It is used for sequences and queue ids."""
    return max(last, term << TERM_SHIFT) + 1


def sequence_number(sequence: int) -> str:
    """Return the SequenceNumber of a FIFO message: 20 digits, growing in its queue."""
    return f"{sequence:020d}"


def next_delivery_number(last: int, term: int) -> int:
    """Return the delivery number after ``last`` for this term.

    The count continues across terms. The term in front makes numbers unique after a lost log tail.
    """
    return term << DELIVERY_TERM_SHIFT | (last & 0xFFFFFFFF) + 1


class Identity:
    """The factory and parser of ids, with the cluster's MAC key."""

    def __init__(self, mac_key: bytes) -> None:
        handle_key = blake2b(b"receipt-handle", key=mac_key, digest_size=32).digest()
        self._token_key = blake2b(b"confirmation", key=mac_key, digest_size=32).digest()
        message_key = blake2b(b"message-id", key=mac_key, digest_size=32).digest()
        # Copying a keyed hash costs two thirds of creating one.
        self._begin_handle = blake2b(key=handle_key, digest_size=_MAC_BYTES).copy
        self._begin_message = blake2b(key=message_key, digest_size=16).copy
        self._recent = _Recent()

    def message_id(self, queue_id: int, sequence: int) -> str:
        """Return the MessageId, in the form of a UUID, for the queue and sequence of a message's first send."""
        cached = self._recent.ids[sequence % RECENT_MAX]
        if cached.sequence == sequence and cached.queue_id == queue_id:
            return cached.message_id
        text = self.digest(queue_id, sequence).hex()
        if cached is _NO_ID:
            cached = self._recent.ids[sequence % RECENT_MAX] = _CachedId()
        cached.queue_id, cached.sequence = queue_id, sequence
        cached.message_id = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
        return cached.message_id

    def digest(self, queue_id: int, sequence: int) -> bytes:
        """Return the 16 bytes of ``message_id``."""
        keyed = self._begin_message()
        keyed.update(_ORIGIN.pack(queue_id, sequence))
        return keyed.digest()

    def task_id(self, number: int) -> str:
        """Return the id of a move task. It differs from all MessageIds, because no queue has id 0."""
        return self.message_id(0, number)

    def subscription_key(self, number: int) -> str:
        """Return the end of a subscription's ARN. It differs from all MessageIds, because no sequence is 0."""
        return self.message_id(number, 0)

    def token(self, number: int, *, is_farewell: bool = False) -> str:
        """Return the token that confirms the subscription with this number, or restores it after an Unsubscribe."""
        head = _NUMBER.pack(number)
        salts = range(3, 6) if is_farewell else range(3)
        blocks = [blake2b(head, key=self._token_key, salt=bytes((at,))).digest() for at in salts]
        return (head + b"".join(blocks))[:_TOKEN_BYTES].hex()

    def read_token(self, token: str, *, is_farewell: bool = False) -> int | None:
        """Return the number of the subscription for which ``token`` returns this token; None if there is none."""
        try:
            head = bytes.fromhex(token[: 2 * _NUMBER.size])
        except ValueError:
            return None
        if len(head) != _NUMBER.size:
            return None
        number: int = _NUMBER.unpack(head)[0]
        made = self.token(number, is_farewell=is_farewell).encode()
        return number if compare_digest(made, token.encode("utf-8", "replace")) else None

    def receipt_handle(self, queue_id: int, sequence: int, delivery_number: int) -> str:
        head = _HANDLE.pack(_RECEIPT, queue_id, sequence, delivery_number)
        handle = _base64(head + self._mac(head), newline=False).decode("ascii")
        recent = self._recent
        handles = recent.handles
        if len(handles) >= RECENT_MAX // 2:
            recent.older_handles, handles = handles, {}
            recent.handles = handles
        handles[handle] = Receipt(queue_id, sequence, delivery_number)
        return handle

    def _mac(self, head: bytes) -> bytes:
        keyed = self._begin_handle()
        keyed.update(head)
        return keyed.digest()

    def read_handle(self, handle: str) -> Receipt:
        """Return the content of a receipt handle. Raise ReceiptHandleIsInvalid if this cluster did not make it."""
        receipt = self._recent.handles.get(handle)
        if receipt is None:
            receipt = self._recent.older_handles.get(handle)
        return receipt if receipt is not None else self._checked(handle)

    def _checked(self, handle: str) -> Receipt:
        try:
            raw = a2b_base64(handle, strict_mode=True) if len(handle) == _HANDLE_CHARS else b""
        except (Base64Error, ValueError):
            raw = b""
        if len(raw) != _HANDLE.size + _MAC_BYTES:
            raise ReceiptHandleIsInvalid(f'The input receipt handle "{quoted(handle)}" is not a valid receipt handle.')
        head = raw[: _HANDLE.size]
        kind, queue_id, sequence, delivery_number = _HANDLE.unpack(head)
        if not compare_digest(self._mac(head), raw[_HANDLE.size :]) or kind != _RECEIPT:
            raise ReceiptHandleIsInvalid(f'The input receipt handle "{quoted(handle)}" is not a valid receipt handle.')
        return Receipt(queue_id, sequence, delivery_number)
