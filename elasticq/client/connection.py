"""One kept-alive HTTP/1.1 connection: it sends the bytes of a request, and returns status, head and body of the answer.

It uses a socket directly. http.client parses the head of an answer with the email package, which costs more time than
all the rest of a call.
"""

import os
import socket
from typing import TYPE_CHECKING, Final, NamedTuple

from elasticq.client.errors import Unreachable

if TYPE_CHECKING:
    import ssl

CHUNK_BYTES: Final = 262_144
HEAD_BYTES_MAX: Final = 65_536
ANSWER_BYTES_MAX: Final = 256 * 1_048_576


class Answer(NamedTuple):
    """An answer of HTTP. ``head``: the header lines, each with its CRLF in front."""

    status: int
    head: bytes
    body: bytes

    def header(self, name: bytes) -> bytes:
        """Return the value of a header, given by its name in lower case; empty if there is none."""
        head = self.head
        start = head.lower().find(b"\r\n%b:" % name)
        if start < 0:
            return b""
        start += len(name) + 3
        end = head.find(b"\r\n", start)
        return head[start : end if end >= 0 else len(head)].strip()


class Connection:
    """The connection of one thread. A failure closes it and raises Unreachable. The next exchange opens it again."""

    def __init__(self, host: str, port: int, tls: "ssl.SSLContext | None", connect_s: float, read_s: float) -> None:
        self._socket: socket.socket | None = None
        self._address = host, port
        self._tls = tls
        self._connect_s = connect_s
        self._read_s = read_s
        self.is_used = False  # whether an answer came over it: if it then breaks, the server may have closed it as idle

    def exchange(self, request: bytes, patience_s: float = 0) -> Answer:
        """Send a request and return the answer. Raise Unreachable if there is none in time.

        patience_s: how much longer than the read timeout the answer may take.
        """
        try:
            sock = self._socket or self._open()
            if patience_s:
                sock.settimeout(self._read_s + patience_s)
            sock.sendall(request)
            answer, keeps = self._read(sock)
            if patience_s:
                sock.settimeout(self._read_s)
        except (OSError, ValueError) as error:
            self.close()
            host, port = self._address
            raise Unreachable(f"{host}:{port}: {error or type(error).__name__}") from error
        except BaseException:
            self.close()  # after an interrupt, the rest of this answer must not be read as the next one
            raise
        if keeps:
            self.is_used = True
        else:
            self.close()
        return answer

    def close(self) -> None:
        """Close the connection; do nothing if it is closed."""
        sock, self._socket = self._socket, None
        self.is_used = False
        if sock is not None:
            sock.close()

    def __del__(self) -> None:
        """Close the socket when the thread ends and drops its connection."""
        self.close()

    def _open(self) -> socket.socket:
        sock = socket.create_connection(self._address, self._connect_s)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_hostname=self._address[0])
            sock.settimeout(self._read_s)
        except BaseException:
            sock.close()
            raise
        self._socket = sock
        return sock

    def _read(self, sock: socket.socket) -> tuple[Answer, bool]:
        """Return the answer, and whether the connection can be used again."""
        data = sock.recv(CHUNK_BYTES)
        while (end := data.find(b"\r\n\r\n")) < 0:
            if not data or len(data) > HEAD_BYTES_MAX:
                raise ConnectionResetError("the connection was closed" if not data else "the head is too long")
            more = sock.recv(CHUNK_BYTES)
            if not more:
                raise ConnectionResetError("the connection was closed")
            data += more
        if not data.startswith(b"HTTP/1."):
            raise ValueError("this is no HTTP/1.1")
        status = int(data[9:12])
        line_end = data.find(b"\r\n")
        head = data[line_end:end]
        answer = Answer(status, head, b"")
        keeps = data[7:8] == b"1" and b"close" not in answer.header(b"connection").lower()
        length = answer.header(b"content-length")
        if length:
            body = self._read_whole(sock, data[end + 4 :], int(length))
        elif b"chunked" in answer.header(b"transfer-encoding").lower():
            body = self._read_chunks(sock, data[end + 4 :])
        elif status in (204, 304):
            body = b""
        else:
            body, keeps = self._read_to_end(sock, data[end + 4 :]), False
        return Answer(status, head, body), keeps

    def _read_whole(self, sock: socket.socket, start: bytes, length: int) -> bytes:
        if len(start) == length:
            return start
        if len(start) > length or length > ANSWER_BYTES_MAX:
            raise ValueError("the answer is not as long as it says, or too long")
        body = bytearray(start)
        while len(body) < length:
            more = sock.recv(min(length - len(body), 4 * CHUNK_BYTES))
            if not more:
                raise ConnectionResetError("the answer was cut")
            body += more
        return bytes(body)

    def _read_chunks(self, sock: socket.socket, data: bytes) -> bytes:
        body = bytearray()
        while True:
            while (end := data.find(b"\r\n")) < 0:
                data += self._more(sock, len(body) + len(data))
            length = int(data[:end].partition(b";")[0], 16)
            needed = end + 2 + length + 2
            while len(data) < needed:
                data += self._more(sock, len(body) + len(data))
            body += data[end + 2 : needed - 2]
            data = data[needed:]
            if not length:
                return bytes(body)  # without trailers, which no server sends here

    def _more(self, sock: socket.socket, got: int) -> bytes:
        data = sock.recv(CHUNK_BYTES) if got <= ANSWER_BYTES_MAX else b""
        if not data:
            raise ConnectionResetError("the answer was cut, or is too long")
        return data

    def _read_to_end(self, sock: socket.socket, start: bytes) -> bytes:
        body = bytearray(start)
        while len(body) <= ANSWER_BYTES_MAX and (more := sock.recv(CHUNK_BYTES)):
            body += more
        return bytes(body)


def tls_context(verify: bool | str) -> "ssl.SSLContext":
    """Return the TLS settings for ``verify``, as in boto3.

    False checks nothing. A file of CAs replaces AWS_CA_BUNDLE and the CAs of the system.
    """
    import ssl  # here, as this import takes longer than a whole reader of Spark over plain HTTP

    if verify is False:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    return ssl.create_default_context(cafile=verify if isinstance(verify, str) else os.environ.get("AWS_CA_BUNDLE"))
