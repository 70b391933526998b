"""The facts of a request's head, as the reader of heads (head.py) found them."""

from typing import Final

from elasticq.wire.operations import Operation

HEADERS_MAX: Final = 100
LINE_END: Final = b"\r\n"


def lines_of(text: bytes) -> list[bytes]:
    """Return the lines of a head. Headers beyond HEADERS_MAX stay in one unsplit line, which is malformed."""
    return text.split(LINE_END, HEADERS_MAX)


class Head:
    """The facts of a head that the server uses."""

    __slots__ = (
        "authorization",
        "body_bytes",
        "close",
        "endpoint",
        "fence",
        "hot",
        "invocation_id",
        "operation",
        "path",
        "protocol",
        "text",
        "trace_header",
    )

    def __init__(
        self,
        hot: bool,
        path: str,
        body_bytes: int,
        protocol: int,
        operation: Operation | None,
        endpoint: str,
        invocation_id: bytes,
        authorization: bytes,
        trace_header: str,
        close: bool,
        text: bytes,
        fence: str = "",
    ) -> None:
        self.hot = hot
        self.path = path  # of a hot head
        self.body_bytes = body_bytes  # CHUNKED: unknown until the last chunk
        self.protocol = protocol  # JSON, FORM, FORM_FOR_JSON or REST; OTHER for anything else
        self.operation = operation  # of X-Amz-Target; None: no such header or no such operation
        self.endpoint = endpoint
        self.invocation_id = invocation_id  # empty: none sent
        self.authorization = authorization  # empty: none sent
        self.trace_header = trace_header  # X-Amzn-Trace-Id; empty: none sent, or no valid one
        self.close = close
        self.text = text  # without its last blank line
        self.fence = fence  # X-Elasticq-Fence; empty: none sent

    @property
    def lines(self) -> list[bytes]:
        """Return the lines of the head, the request line first. Signatures are checked against these lines."""
        return lines_of(self.text)
