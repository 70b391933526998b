"""Servers that answer fixed SQS replies and store no message: they show what HTTP alone costs.

``protocol`` is the floor: a bare asyncio protocol that finds the end of a request and writes prepared bytes. It holds
a waiting receive until the next send to the same queue, which gives a floor for wake-ups too. ``aiohttp`` is an
unchanged ``aiohttp.web.Server`` with the same replies.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
from typing import cast

from aiohttp import web

BODY = (b"abcdefghijklmnopqrstuvwxyz012345" * 8)[:256]
MD5 = hashlib.md5(BODY).hexdigest()
TYPE = "application/x-amz-json-1.0"
QUEUE_URL_MARK = b'"QueueUrl":"'


def reply(document: object) -> tuple[bytes, bytes]:
    """Return (body, whole HTTP response)."""
    body = json.dumps(document, separators=(",", ":")).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {TYPE}\r\nContent-Length: {len(body)}\r\n\r\n"
    return body, head.encode() + body


SENT = reply({"MessageId": "00000000-0000-4000-8000-000000000000", "MD5OfMessageBody": MD5})
MESSAGE = {"MessageId": "00000000-0000-4000-8000-000000000000", "ReceiptHandle": "h" * 64}
RECEIVED = reply({"Messages": [MESSAGE | {"MD5OfBody": MD5, "Body": BODY.decode()}]})
NOTHING = reply({})


def queue_of(body: bytes) -> bytes:
    start = body.find(QUEUE_URL_MARK) + len(QUEUE_URL_MARK)
    return body[start : body.find(b'"', start)]


class Floor(asyncio.Protocol):
    """One connection; ``waiting`` maps a queue to the connection whose receive waits on it."""

    def __init__(self, waiting: dict[bytes, asyncio.Transport]) -> None:
        self.waiting = waiting
        self.pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of asyncio's

    def data_received(self, data: bytes) -> None:
        self.pending = data = self.pending + data
        head_end = data.find(b"\r\n\r\n")
        if head_end < 0:
            return
        mark = data.find(b"Content-Length: ", 0, head_end)
        body_start = head_end + 4
        length = int(data[mark + 16 : data.find(b"\r", mark)]) if mark >= 0 else 0
        if len(data) < body_start + length:
            return
        self.pending = data[body_start + length :]
        if data.find(b"AmazonSQS.SendMessage", 0, head_end) >= 0:
            self.sent(data[body_start:])
        elif data.find(b"AmazonSQS.ReceiveMessage", 0, head_end) >= 0:
            self.received(data[body_start:])
        elif data.find(b"AmazonSQS.CreateQueue", 0, head_end) >= 0:
            self.transport.write(created(data[body_start:])[1])
        else:
            self.transport.write(NOTHING[1])

    def sent(self, body: bytes) -> None:
        self.transport.write(SENT[1])
        if self.waiting and (receiver := self.waiting.pop(queue_of(body), None)):
            receiver.write(RECEIVED[1])

    def received(self, body: bytes) -> None:
        if b'"WaitTimeSeconds":0' in body or b"WaitTimeSeconds" not in body:
            self.transport.write(NOTHING[1])
        else:
            self.waiting[queue_of(body)] = self.transport


def created(body: bytes) -> tuple[bytes, bytes]:
    name = json.loads(body).get("QueueName", "echo")
    return reply({"QueueUrl": f"http://localhost/000000000000/{name}"})


async def answer(request: web.BaseRequest) -> web.Response:
    body = await request.read()
    target = request.headers.get("X-Amz-Target", "")
    if target.endswith("CreateQueue"):
        return web.Response(body=created(body)[0], content_type=TYPE)
    return web.Response(body=(SENT if target.endswith("SendMessage") else NOTHING)[0], content_type=TYPE)


async def serve(kind: str) -> None:
    waiting: dict[bytes, asyncio.Transport] = {}
    factory = web.Server(answer, access_log=None) if kind == "aiohttp" else lambda: Floor(waiting)
    server = await asyncio.get_running_loop().create_server(factory, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    print(f"echo listening on http://{host}:{port}", flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["protocol", "aiohttp"])
    kind = parser.parse_args().kind
    with contextlib.suppress(KeyboardInterrupt):
        try:
            import uvloop
        except ImportError:
            asyncio.run(serve(kind))
        else:
            uvloop.run(serve(kind))


if __name__ == "__main__":
    main()
