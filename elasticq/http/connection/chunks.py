"""A decoder of chunked bodies, as strict as the reader of heads.

It refuses chunk extensions and trailers with BadHead, which ends the connection.
Clients of queues do not send them, and proxies read them differently. A trailer
would also be a header that arrives after the head was checked.
"""

import re
from typing import Final

from elasticq.http.connection.head import BadHead

CHUNKS_MAX: Final = 16_384
"""A body has at most this many chunks. The longest body may have chunks of 512 bytes; smaller ones cost too much."""

_LINE_BYTES_MAX: Final = len(b"\r\n12345678\r\n")
_FIRST: Final = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_NEXT: Final = re.compile(rb"\r\n([0-9A-Fa-f]{1,8})\r\n")
_PART_OF_FIRST: Final = re.compile(rb"(?:[0-9A-Fa-f]{1,8}\r?)?")
_PART_OF_NEXT: Final = re.compile(rb"\r?|\r\n(?:[0-9A-Fa-f]{1,8}\r?)?")
_END: Final = b"\r\n"


class Chunks:
    """A body that is being received. Its deadline counts from ``began_ms``."""

    __slots__ = ("_count", "_is_last", "_left_bytes", "_part", "began_ms")

    def __init__(self, began_ms: int = 0) -> None:
        self.began_ms = began_ms
        self._count = 0
        self._is_last = False  # the empty last chunk was read
        self._left_bytes = 0  # of the current chunk
        self._part = b""  # an incomplete line

    def feed(self, data: bytes, body: bytearray) -> bytes | None:
        """Append the chunks in ``data`` to ``body``.

        Return the bytes after the body if it is complete, else None. Raise BadHead for malformed chunks.
        """
        data, self._part, at = self._part + data, b"", 0
        while not self._is_last:
            if self._left_bytes:
                taken = data[at : at + self._left_bytes]
                body += taken
                at += len(taken)
                self._left_bytes -= len(taken)
                if self._left_bytes:
                    return None
            line = (_NEXT if self._count else _FIRST).match(data, at)
            if line is None:
                self._part = self._checked_part(data[at : at + _LINE_BYTES_MAX])
                return None
            at = line.end()
            self._left_bytes = int(line[1], 16)
            self._is_last = not self._left_bytes
            self._count += 1
            if self._count > CHUNKS_MAX:
                raise BadHead(f"a body of more than {CHUNKS_MAX} chunks")
        end = data[at : at + len(_END)]
        if end == _END:
            return data[at + len(_END) :]
        if not _END.startswith(end):
            raise BadHead("a trailer after the last chunk")
        self._part = end
        return None

    def _checked_part(self, part: bytes) -> bytes:
        if not (_PART_OF_NEXT if self._count else _PART_OF_FIRST).fullmatch(part):
            raise BadHead("malformed chunk: it must be a size on a line, that many bytes, and a line end")
        return part
