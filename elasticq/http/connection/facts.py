"""The facts of a request's head, as the reader of heads (head.py) found them."""

from typing import Final

from msgspec import Struct

from elasticq.wire.operations import Operation

HEADERS_MAX: Final = 100
LINE_END: Final = b"\r\n"


def lines_of(text: bytes) -> list[bytes]:
    """Return the lines of a head. Headers beyond HEADERS_MAX stay in one unsplit line, which is malformed."""
    return text.split(LINE_END, HEADERS_MAX)


class Head(Struct, gc=False):
    """The facts of a head that the server uses."""

    hot: bool
    path: str  # of a hot head
    body_bytes: int  # CHUNKED: unknown until the last chunk
    protocol: int  # JSON, FORM, FORM_FOR_JSON or REST; OTHER for anything else
    operation: Operation | None  # of X-Amz-Target; None: no such header or no such operation
    endpoint: str
    invocation_id: bytes  # empty: none sent
    authorization: bytes  # empty: none sent
    trace_header: str  # X-Amzn-Trace-Id; empty: none sent, or no valid one
    close: bool
    text: bytes  # without its last blank line
    fence: str = ""  # X-Elasticq-Fence; empty: none sent

    @property
    def lines(self) -> list[bytes]:
        """Return the lines of the head, the request line first. Signatures are checked against these lines."""
        return lines_of(self.text)
