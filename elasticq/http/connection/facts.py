"""What a request's head says, as the reader of heads (head.py) found it."""

from typing import Final

from msgspec import Struct

from elasticq.wire.operations import Operation

HEADERS_MAX: Final = 100
LINE_END: Final = b"\r\n"


def lines_of(text: bytes) -> list[bytes]:
    """Return the lines of a head; what is beyond HEADERS_MAX headers stays one line, and that is none."""
    return text.split(LINE_END, HEADERS_MAX)


class Head(Struct, gc=False):
    """What the server wants to know of a request's head."""

    hot: bool
    path: str  # of a hot head
    body_bytes: int  # CHUNKED: only the body's end tells
    protocol: int  # JSON, FORM or FORM_FOR_JSON; OTHER for anything else
    operation: Operation | None  # by X-Amz-Target; None: no such header or no such operation
    endpoint: str
    invocation_id: bytes  # empty: none sent
    authorization: bytes  # empty: none sent
    trace_header: str  # X-Amzn-Trace-Id; empty: none sent, or none that a message can carry
    close: bool
    text: bytes  # without its last blank line
    fence: str = ""  # X-Elasticq-Fence; empty: none sent

    @property
    def lines(self) -> list[bytes]:
        """The request line first: what a signature is of."""
        return lines_of(self.text)
