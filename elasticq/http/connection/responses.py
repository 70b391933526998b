"""HTTP responses as bytes: status line, headers and body in one piece."""

import time
from typing import Final

from elasticq.http.connection.exchange import JSON_TYPE, XML_TYPE, Answer

_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
RETRY_HEADERS: Final = {"Retry-After": "1", "x-amz-retry-after": "1000"}
"""After which time a client may repeat a call that was answered 503: in s, and in ms for the SDKs."""
# Formatting bytes costs five times as much as joining parts that exist.
_LENGTHS: Final = [b"\r\nContent-Length: %d\r\n\r\n" % size_bytes for size_bytes in range(1_024)]
_LAST_DIGITS: Final = [b"%02x" % number for number in range(256)]
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Responses:
    """Responses with the Date of the current second and with request ids of this process.

    A request id is unique: 80 random bits of the process, then the number of the request.
    """

    __slots__ = ("_date", "_first_digits", "_hundreds", "_id_prefix", "json_ok", "rest_ok", "xml_ok")

    def __init__(self, entropy: bytes, wall_s: float) -> None:
        text = entropy[:10].hex()
        self._id_prefix = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-"
        self._hundreds, self._first_digits = 0, b"0" * 10
        self.refresh(wall_s)

    def refresh(self, wall_s: float) -> None:
        """Format the date. Called once a second, so that requests need not do it."""
        self._date = http_date(wall_s)
        self.json_ok = (
            f"HTTP/1.1 200 OK\r\nContent-Type: {JSON_TYPE.decode()}\r\nDate: {self._date}\r\n"
            f"x-amzn-RequestId: {self._id_prefix}"
        ).encode()
        """The start of the most frequent response, up to the number of the request."""
        self.xml_ok = self.json_ok.replace(JSON_TYPE, XML_TYPE, 1)
        self.rest_ok = (
            f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: {self._date}\r\nContent-Length: "
        ).encode()
        """The start of a successful answer of the REST API, up to its length."""

    def request_id(self, number: int) -> str:
        return "%s%012x" % (self._id_prefix, number)  # noqa: UP031  # compiled, a quarter of what an f-string costs

    def ok(self, start: bytes, number: int, body: bytes) -> bytes:
        """Return the successful response with ``body``. ``start``: ``json_ok`` or ``xml_ok``."""
        hundreds, size_bytes = number >> 8, len(body)
        if hundreds != self._hundreds:
            self._hundreds, self._first_digits = hundreds, b"%010x" % hundreds
        length = _LENGTHS[size_bytes] if size_bytes < 1_024 else b"\r\nContent-Length: %d\r\n\r\n" % size_bytes
        return b"".join([start, self._first_digits, _LAST_DIGITS[number & 0xFF], length, body])

    def write(self, answer: Answer, request_id: str, close: bool) -> bytes:
        head = (
            f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Error')}\r\n"
            f"Content-Type: {answer.content_type.decode()}\r\nDate: {self._date}\r\nx-amzn-RequestId: {request_id}\r\n"
        )
        if answer.query_error:
            head += f"x-amzn-query-error: {answer.query_error}\r\n"
        if answer.stale_ms >= 0:
            head += f"x-elasticq-stale: {answer.stale_ms}\r\n"
        if answer.status == 503:
            head += "".join([f"{name}: {value}\r\n" for name, value in RETRY_HEADERS.items()])
        if close:
            head += "Connection: close\r\n"
        return b"%bContent-Length: %d\r\n\r\n%b" % (head.encode(), len(answer.body), answer.body)

    def write_rest(self, status: int, content_type: str, body: bytes, headers: dict[str, str], close: bool) -> bytes:
        head = (
            f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}\r\nContent-Type: {content_type}\r\n"
            f"Date: {self._date}\r\n"
        )
        head += "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if close:
            head += "Connection: close\r\n"
        return b"%bContent-Length: %d\r\n\r\n%b" % (head.encode(), len(body), body)


def http_date(wall_s: float) -> str:
    """Return the time in the form of a Date header (RFC 9110). strftime would follow the locale."""
    at = time.gmtime(wall_s)
    return (
        f"{_DAYS[at.tm_wday]}, {at.tm_mday:02} {_MONTHS[at.tm_mon - 1]} {at.tm_year}"
        f" {at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} GMT"
    )
