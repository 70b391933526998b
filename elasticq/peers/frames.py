"""The format of frames on a connection, and its reader and writer. No sockets.

A frame is ``length (u32) | length XOR stamp (u32) | body | seal``, big-endian. The stamp consists of 0x4551, the
version of the format and the kind. A damaged length yields a wrong stamp, so the reader notices it in the header.

The seal is a CRC32 or, with a cluster secret, a keyed BLAKE2b of 16 bytes. Both cover ``counter (u64) | header |
body``. The counter is not sent; both sides count frames. So a repeated or missing frame makes the seal wrong.

A reader knows the kinds that the connection's phase allows, and the bound of each kind's length. It raises at the
header of a longer frame, so an unauthenticated sender cannot make it buffer more.
"""

from hashlib import blake2b
from hmac import compare_digest
from struct import Struct
from typing import Protocol
from zlib import crc32

from elasticq.model import limits
from elasticq.peers.errors import FrameError, UnexpectedKind, WrongChecksum, WrongLength, WrongVersion

HELLO, PROOF, REFUSED, GREETING, IDLE, PING, PONG, DATA, PULL, HEAD, CHUNK, END, ASK, REPLY = range(1, 15)

FRAME_BYTES_MAX = limits.FRAME_BYTES_MAX  # of a node's frame, the body of DATA
CHUNK_BYTES_MAX = 1_048_576
CONTROL_BYTES_MAX = 65_536
PROOF_BYTES_MAX = 256
PROBE_BYTES_MAX = 8

HANDSHAKE_KINDS = {HELLO: CONTROL_BYTES_MAX, PROOF: PROOF_BYTES_MAX, REFUSED: CONTROL_BYTES_MAX}
LINK_KINDS = {
    GREETING: CONTROL_BYTES_MAX,
    REFUSED: CONTROL_BYTES_MAX,
    IDLE: 0,
    PING: PROBE_BYTES_MAX,
    PONG: PROBE_BYTES_MAX,
    DATA: FRAME_BYTES_MAX,
    ASK: CONTROL_BYTES_MAX,
    REPLY: CONTROL_BYTES_MAX,
}
TRANSFER_KINDS = {
    REFUSED: CONTROL_BYTES_MAX,
    IDLE: 0,
    PULL: CONTROL_BYTES_MAX,
    HEAD: CONTROL_BYTES_MAX,
    CHUNK: CHUNK_BYTES_MAX,
    END: CONTROL_BYTES_MAX,
}

_MAGIC = 0x4551
_VERSION = 1
_STAMP = _MAGIC << 16 | _VERSION << 8
_header = Struct(">II")
_sealed = Struct(">QII")
_crc = Struct(">I")
HEADER_BYTES = _header.size
CRC_BYTES = 4
MAC_BYTES = 16


class Seal(Protocol):
    """A function that computes the seals of one direction of one connection. Call it once for each frame, in order."""

    size: int

    def __call__(self, length: int, stamped: int, body: bytes) -> bytes: ...


class CrcSeal:
    """A CRC32. It detects damage, but not deliberate changes."""

    def __init__(self) -> None:
        self.size = CRC_BYTES
        self._count = 0

    def __call__(self, length: int, stamped: int, body: bytes) -> bytes:
        count = self._count
        self._count = count + 1
        return _crc.pack(crc32(body, crc32(_sealed.pack(count, length, stamped))))


class MacSeal:
    """A MAC with the session key of one direction. The key's block is hashed once, and the state is copied."""

    def __init__(self, key: bytes) -> None:
        self.size = MAC_BYTES
        self._copy = blake2b(key=key, digest_size=MAC_BYTES).copy
        self._count = 0

    def __call__(self, length: int, stamped: int, body: bytes) -> bytes:
        count = self._count
        self._count = count + 1
        digest = self._copy()
        digest.update(_sealed.pack(count, length, stamped))
        digest.update(body)
        return digest.digest()


class FrameWriter:
    """The builder of frames. The connection replaces ``seal`` after the handshake made keys."""

    def __init__(self) -> None:
        self.seal: Seal = CrcSeal()

    def add(self, pieces: list[bytes], kind: int, body: bytes) -> None:
        """Append the bytes of one frame to ``pieces``. Frames must be sent in the order of these calls."""
        length = len(body)
        stamped = length ^ _STAMP ^ kind
        pieces += (_header.pack(length, stamped), body, self.seal(length, stamped, body))


class FrameReader:
    """The parser of frames from a byte stream. It must not be used again after a FrameError."""

    def __init__(self) -> None:
        self.seal: Seal = CrcSeal()
        self._buffer = b""
        self._at = 0
        self._partial = bytearray()  # the beginning of an incomplete frame
        self._need = HEADER_BYTES
        self._kinds: dict[int, tuple[int, int]] = {}
        self.allow(HANDSHAKE_KINDS)

    def allow(self, kinds: dict[int, int]) -> None:
        """Accept only these kinds from the next frame on. kinds: the greatest body length of each kind, in bytes."""
        self._kinds = {_STAMP ^ kind: (kind, bytes_max) for kind, bytes_max in kinds.items()}

    @property
    def kept_bytes(self) -> int:
        return len(self._buffer) - self._at + len(self._partial)

    def feed(self, data: bytes) -> None:
        if self._partial:
            self._partial += data
        elif self._at < len(self._buffer):
            self._partial += memoryview(self._buffer)[self._at :]
            self._partial += data
            self._buffer, self._at = b"", 0
        else:
            self._buffer, self._at = data, 0

    def next_frame(self) -> tuple[int, bytes] | None:
        """Return kind and body of the next whole frame, None if more bytes are needed. Raise FrameError if invalid."""
        if self._partial:
            if len(self._partial) < self._need:
                return None
            self._buffer, self._at = bytes(self._partial), 0
            self._partial = bytearray()
        buffer, at = self._buffer, self._at
        left = len(buffer) - at
        if left < HEADER_BYTES:
            self._wait(HEADER_BYTES)
            return None
        length, stamped = _header.unpack_from(buffer, at)
        known = self._kinds.get(length ^ stamped)
        if known is None or length > known[1]:
            raise _wrong_header(length, length ^ stamped, known)
        seal = self.seal
        end = at + HEADER_BYTES + length
        sealed_end = end + seal.size
        if sealed_end > len(buffer):
            self._wait(sealed_end - at)
            return None
        body = buffer[at + HEADER_BYTES : end]
        if not compare_digest(seal(length, stamped, body), buffer[end:sealed_end]):
            raise WrongChecksum(f"the checksum of a frame of {length} bytes is wrong")
        self._at = sealed_end
        return known[0], body

    def _wait(self, need: int) -> None:
        self._need = need
        if self._at < len(self._buffer):
            self._partial = bytearray(memoryview(self._buffer)[self._at :])
        self._buffer, self._at = b"", 0


def _wrong_header(length: int, stamp: int, known: tuple[int, int] | None) -> FrameError:
    if known is not None:
        return WrongLength(f"a frame of kind {known[0]} has {length} bytes, but at most {known[1]} are allowed")
    if stamp >> 16 != _MAGIC:
        return WrongLength("these bytes are not the header of a frame")
    if stamp >> 8 & 0xFF != _VERSION:
        return WrongVersion(f"the frame has format {stamp >> 8 & 0xFF}, but only format {_VERSION} is supported")
    return UnexpectedKind(f"a frame of kind {stamp & 0xFF} is not allowed in this phase of the connection")
