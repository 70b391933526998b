"""Takes a chunked body apart, as strictly as its head was read.

Neither extensions nor trailers are taken: nobody sends them to a queue, proxies
read them differently, and a trailer is a header that came after its request was
judged. Each is a BadHead, which ends the connection.
"""

import re
from typing import Final

from elasticq.http.connection.head import BadHead

CHUNKS_MAX: Final = 16_384
"""One body has no more chunks: the longest one may come in chunks of half a kilobyte. Smaller ones cost too much."""

_LINE_BYTES_MAX: Final = len(b"\r\n12345678\r\n")
_FIRST: Final = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_NEXT: Final = re.compile(rb"\r\n([0-9A-Fa-f]{1,8})\r\n")
_PART_OF_FIRST: Final = re.compile(rb"(?:[0-9A-Fa-f]{1,8}\r?)?")
_PART_OF_NEXT: Final = re.compile(rb"\r?|\r\n(?:[0-9A-Fa-f]{1,8}\r?)?")
_END: Final = b"\r\n"


class Chunks:
    """One body under way; the deadline counts from ``began_ms``."""

    __slots__ = ("_count", "_is_last", "_left_bytes", "_part", "began_ms")

    def __init__(self, began_ms: int = 0) -> None:
        self.began_ms = began_ms
        self._count = 0
        self._is_last = False  # the chunk of no bytes was seen
        self._left_bytes = 0  # of the chunk under way
        self._part = b""  # of a line that is not complete

    def feed(self, data: bytes, body: bytearray) -> bytes | None:
        """Append the part of the body in ``data``; return the bytes behind the body once it is complete, else None.

        Raises BadHead for anything but chunks.
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
            raise BadHead("a trailer behind the last chunk")
        self._part = end
        return None

    def _checked_part(self, part: bytes) -> bytes:
        if not (_PART_OF_NEXT if self._count else _PART_OF_FIRST).fullmatch(part):
            raise BadHead("no chunk: a size alone on its line, then as many bytes, then an end of line")
        return part
