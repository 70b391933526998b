"""SQS calls over one keep-alive socket, without an SDK: many clients fit into one test process."""

import json
import socket
from typing import Any, NamedTuple

TIMEOUT_S = 40


class Broken(Exception):
    """No whole answer came: what was asked may or may not have happened."""


class Answer(NamedTuple):
    status: int
    body: bytes


class Connection:
    """Blocking, one request at a time."""

    def __init__(self, port: int) -> None:
        try:
            self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        except OSError as error:
            raise Broken(str(error)) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._data = bytearray()

    def call(self, action: str, parameters: dict[str, Any], guid: str = "") -> Answer:
        """Raises Broken. ``guid``: what all attempts of one SDK call have in common."""
        return self.exchange(request(action, json.dumps(parameters).encode(), guid))

    def exchange(self, data: bytes) -> Answer:
        self.send(data)
        return self.read()

    def send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Broken(str(error)) from error

    def read(self) -> Answer:
        data = self._data
        while (end := data.find(b"\r\n\r\n")) < 0:
            self._more()
        head = bytes(data[:end]).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r")[0] or 0)
        whole = end + 4 + length
        while len(data) < whole:
            self._more()
        body = bytes(data[end + 4 : whole])
        del data[:whole]
        return Answer(int(head.split(b" ", 2)[1]), body)

    def _more(self) -> None:
        try:
            received = self._socket.recv(262_144)
        except OSError as error:
            raise Broken(str(error)) from error
        if not received:
            raise Broken("closed by the server")
        self._data += received

    def close(self) -> None:
        self._socket.close()


def request(action: str, body: bytes, guid: str = "") -> bytes:
    """The bytes of one JSON 1.0 request."""
    mark = f"amz-sdk-invocation-id: {guid}\r\n" if guid else ""
    head = (
        f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Amz-Target: AmazonSQS.{action}\r\n"
        f"Content-Type: application/x-amz-json-1.0\r\n{mark}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
