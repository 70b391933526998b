"""Plain sockets that send the requests of a siege and read the answers; signatures by botocore."""

import json
import re
import socket
import time
from typing import Final, NamedTuple

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from elasticq.model.names import DEFAULT_REGION
from tests.system.siege.request import Request

HOST: Final = "127.0.0.1"
TIMEOUT_S: Final = 40.0
STREAM_S: Final = 0.3
"""How long a stream, which never ends, is read."""
SIGNED: Final = ("content-type", "x-amz-target")
CHUNK_BYTES: Final = 262_144
_LENGTH: Final = re.compile(rb"(?i)\r\ncontent-length:[ \t]*([0-9]+)")
_CHUNKED: Final = re.compile(rb"(?i)\r\ntransfer-encoding:[ \t]*chunked")
_STREAM: Final = re.compile(rb"(?i)\r\ncontent-type:[ \t]*text/event-stream")
_NO_BODY: Final = (204, 304)


class Keys(NamedTuple):
    """How requests are signed. secrets: of access keys, by account; a key's id is its account with "K" before it.

    token: of operators. Both are empty where the cluster asks for nothing.
    """

    secrets: dict[str, str]
    token: str

    def headers(self, request: Request, address: str) -> dict[str, str]:
        """Return the headers that authenticate the sender."""
        if request.is_operators:
            return {"Authorization": f"Bearer {self.token}"} if self.token else {}
        secret = self.secrets.get(request.account)
        if secret is None or not request.service:
            return {}
        signed = {name: value for name, value in request.headers.items() if name.lower() in SIGNED}
        whole = AWSRequest(request.method, f"http://{address}{request.path}", headers=signed, data=request.body)
        SigV4Auth(Credentials(f"K{request.account}", secret), request.service, DEFAULT_REGION).add_auth(whole)
        return {name: whole.headers[name] for name in ("Authorization", "X-Amz-Date")}


class Answer(NamedTuple):
    """status: 0 where the connection ended without an answer.

    took_s: from the sending, or from the answer before it on the same connection, to the last byte.
    """

    status: int
    body: bytes
    took_s: float

    @property
    def is_failure(self) -> bool:
        """Whether the server failed by an error of its own."""
        if self.status == 500:
            return True
        return b"InternalFailure" in self.body and (self.status >= 400 or b'"Code":"InternalFailure"' in self.body)


class Connection:
    """One kept connection to a port, opened when it is needed."""

    def __init__(self, port: int, keys: Keys) -> None:
        self._address = f"{HOST}:{port}"
        self._port, self._keys = port, keys
        self._socket: socket.socket | None = None
        self._data = b""
        self._until_s = 0.0

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._data = None, b""

    def exchange(self, *requests: Request) -> list[Answer]:
        """Send the requests at once, and return as many answers."""
        began_s, answers = time.monotonic(), list[Answer]()
        try:
            self._send(b"".join(map(self._bytes, requests)))
            for request in requests:
                self._until_s = began_s + TIMEOUT_S
                status, body = self._read(is_head=request.method == "HEAD")
                ended_s = time.monotonic()
                answers.append(Answer(status, body, ended_s - began_s))
                began_s = ended_s
        except (OSError, ValueError):
            self.close()
        missing = len(requests) - len(answers)
        return answers + [Answer(0, b"", time.monotonic() - began_s)] * missing

    def cut(self, request: Request) -> None:
        """Send the first part of a request on a connection of its own, and close it."""
        data = self._bytes(request)
        try:
            with socket.create_connection((HOST, self._port), TIMEOUT_S) as connection:
                connection.sendall(data[: int(len(data) * request.cut)])
        except OSError:
            return

    def _bytes(self, request: Request) -> bytes:
        return request.head(self._address, self._keys.headers(request, self._address)) + request.body

    def _send(self, data: bytes) -> None:
        if self._socket is None:
            self._socket = socket.create_connection((HOST, self._port), TIMEOUT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return  # the answer that refused the request may still be read

    def _read(self, *, is_head: bool) -> tuple[int, bytes]:
        """Return status and body of the next answer. Raises OSError, ValueError where there is none."""
        head = self._until(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        if status == 100:
            return self._read(is_head=is_head)
        if is_head or status in _NO_BODY:
            return status, b""
        if _STREAM.search(head):
            return status, self._stream()
        if _CHUNKED.search(head):
            return status, self._chunks()
        length = _LENGTH.search(head)
        return status, self._exactly(int(length[1]) if length else 0)

    def _received(self) -> bytes:
        """Return what came. Raises OSError where nothing can come any more, or the whole takes too long."""
        if time.monotonic() > self._until_s:
            raise TimeoutError
        received = self._socket.recv(CHUNK_BYTES) if self._socket is not None else b""
        if not received:
            raise ConnectionResetError
        return received

    def _until(self, end: bytes) -> bytes:
        while (at := self._data.find(end)) < 0:
            self._data += self._received()
        found, self._data = self._data[: at + len(end)], self._data[at + len(end) :]
        return found

    def _exactly(self, count: int) -> bytes:
        parts, missing = [self._data[:count]], count - len(self._data)
        self._data = self._data[count:]
        while missing > 0:
            received = self._received()
            parts.append(received[:missing])
            self._data = received[missing:]
            missing -= len(received)
        return b"".join(parts)

    def _chunks(self) -> bytes:
        parts = []
        while count := int(self._until(b"\r\n").strip(), 16):
            parts.append(self._exactly(count))
            self._until(b"\r\n")
        self._until(b"\r\n")
        return b"".join(parts)

    def _stream(self) -> bytes:
        """Read for a moment, then hang up."""
        assert self._socket is not None
        until_s = time.monotonic() + STREAM_S
        try:
            while (left_s := until_s - time.monotonic()) > 0:
                self._socket.settimeout(left_s)
                self._data += self._received()
        except OSError:
            pass
        data = self._data
        self.close()
        return data


def call(connection: Connection, account: str, action: str, guid: str = "", **members: object) -> Answer:
    """Send one call of SQS by JSON."""
    headers = {"X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": "application/x-amz-json-1.0"}
    if guid:
        headers["amz-sdk-invocation-id"] = guid
    request = Request(f"json:{action}", "POST", "/", headers, json.dumps(members).encode(), account=account)
    return connection.exchange(request)[0]
