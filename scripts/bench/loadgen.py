"""A small load generator for machines without Go, with those flags and figures of sqsload that are used here.

Only this generator has the workload publish: it publishes to a topic, and so many queues (-subscribed) get raw copies.
Each connection has one request in flight. The generator needs more CPU than sqsload, so its rates are lower. Read the
server's CPU per message.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

import measure

BOTO3_HEADERS = (
    "Accept-Encoding: identity\r\nx-amzn-query-mode: true\r\n"
    "User-Agent: Boto3/1.44.5 md/Botocore#1.44.5 ua/2.1 os/linux lang/python#3.11.7 cfg/retry-mode#standard\r\n"
    "amz-sdk-invocation-id: {invocation}\r\namz-sdk-request: attempt=1\r\n"
)
PLAIN_HEADERS = "User-Agent: loadgen\r\nAccept-Encoding: identity\r\n"
SIGNED = (
    "X-Amz-Date: 20260101T000000Z\r\n"
    "Authorization: AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/{service}/aws4_request, "
    "SignedHeaders=content-type;host;x-amz-date, Signature=" + "0" * 64 + "\r\n"
)
SIGNED_BY = {service: SIGNED.format(service=service) for service in ("sqs", "sns")}
FORM = "Content-Type: application/x-www-form-urlencoded\r\n"
ACCOUNT = "000000000000"
DELIVERY_S = 60
"""How long the copies of answered publishes may take to reach their queues."""
LOOK_S = 0.1
HANDLE_MARKS = {"json": (b'"ReceiptHandle":"', b'"'), "query": (b"<ReceiptHandle>", b"<")}


class Connection(asyncio.Protocol):
    """A keep-alive connection. ``exchange`` writes a request and returns the response's body."""

    def __init__(self) -> None:
        self.data = b""
        self.answered: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of asyncio's

    def data_received(self, data: bytes) -> None:
        self.data += data
        head_end = self.data.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = self.data[:head_end].lower()
        mark = head.find(b"content-length: ")
        length = int(head[mark + 16 :].split(b"\r", 1)[0]) if mark >= 0 else 0
        if len(self.data) >= head_end + 4 + length and self.answered:
            body, self.data = self.data[head_end + 4 : head_end + 4 + length], b""
            self.finish(head, body)

    def finish(self, head: bytes, body: bytes) -> None:
        assert self.answered
        if head.startswith((b"http/1.1 2", b"http/1.0 2")):
            self.answered.set_result(body)
        else:
            self.answered.set_exception(RuntimeError((head[:40] + body[:200]).decode(errors="replace")))

    def connection_lost(self, exc: Exception | None) -> None:
        if self.answered and not self.answered.done():
            self.answered.set_exception(ConnectionError("closed by the server"))

    def exchange(self, *parts: bytes) -> Awaitable[bytes]:
        self.answered = asyncio.get_running_loop().create_future()
        for part in parts:
            self.transport.write(part)
        return self.answered


class Client:
    """A client that calls SQS over one connection, by JSON or Query, with plain requests or requests like boto3's."""

    def __init__(self, connection: Connection, options: argparse.Namespace) -> None:
        self.connection = connection
        self.options = options
        self.body = ("abcdefghijklmnopqrstuvwxyz012345" * (options.size // 32 + 1))[: options.size]

    async def call(self, action: str, **parameters: Any) -> bytes:
        if self.options.proto == "json":
            body = json.dumps(parameters, separators=(",", ":")).encode()
            extra = f"Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.{action}\r\n"
        else:
            body = urlencode({"Action": action, "Version": "2012-11-05", **flat(action, parameters)}).encode()
            extra = FORM
        return await self.post("sqs", extra, body)

    async def call_sns(self, action: str, **parameters: Any) -> bytes:
        """Call an action of SNS by Query, its only protocol."""
        body = urlencode({"Action": action, "Version": "2010-03-31", **parameters}).encode()
        return await self.post("sns", FORM, body)

    async def post(self, service: str, extra: str, body: bytes) -> bytes:
        boto3_shape = self.options.shape == "boto3"
        extra = (BOTO3_HEADERS.format(invocation=uuid4()) if boto3_shape else PLAIN_HEADERS) + extra
        extra += f"{SIGNED_BY[service]}Content-Length: {len(body)}\r\n"
        head = f"POST / HTTP/1.1\r\nHost: {self.options.netloc}\r\n{extra}\r\n".encode()
        return await self.connection.exchange(*([head, body] if boto3_shape else [head + body]))

    async def create(self) -> str:
        answer = await self.call("CreateQueue", QueueName=f"load-{uuid4().hex}")
        if self.options.proto == "json":
            return str(json.loads(answer)["QueueUrl"])
        return answer.partition(b"<QueueUrl>")[2].partition(b"<")[0].decode()

    async def create_topic(self, queues: list[str]) -> str:
        """Make a topic whose publishes go as raw copies to each of the queues (URLs); return its ARN."""
        answer = await self.call_sns("CreateTopic", Name=f"load-{uuid4().hex}")
        arn = answer.partition(b"<TopicArn>")[2].partition(b"<")[0].decode()
        raw = {"Attributes.entry.1.key": "RawMessageDelivery", "Attributes.entry.1.value": "true"}
        for queue in queues:
            endpoint = f"arn:aws:sqs:us-east-1:{ACCOUNT}:{queue.rpartition('/')[2]}"
            await self.call_sns("Subscribe", TopicArn=arn, Protocol="sqs", Endpoint=endpoint, **raw)
        return arn

    async def publish(self, topic: str) -> None:
        await self.call_sns("Publish", TopicArn=topic, Message=self.body)

    async def waiting(self, queue: str) -> int:
        """Return how many visible messages the queue has. Call by JSON."""
        name = "ApproximateNumberOfMessages"
        answer = await self.call("GetQueueAttributes", QueueUrl=queue, AttributeNames=[name])
        return int(json.loads(answer)["Attributes"][name])

    async def send(self, queue: str) -> None:
        await self.call("SendMessage", QueueUrl=queue, MessageBody=self.body)

    async def send_ten(self, queue: str) -> None:
        entries = [{"Id": f"e{number}", "MessageBody": self.body} for number in range(10)]
        await self.call("SendMessageBatch", QueueUrl=queue, Entries=entries)

    async def receive(self, queue: str, number: int = 1, wait_s: int = 0) -> list[str]:
        answer = await self.call("ReceiveMessage", QueueUrl=queue, MaxNumberOfMessages=number, WaitTimeSeconds=wait_s)
        mark, end = HANDLE_MARKS[self.options.proto]
        return [part.partition(end)[0].decode() for part in answer.split(mark)[1:]]

    async def delete(self, queue: str, handles: list[str]) -> None:
        if len(handles) == 1:
            await self.call("DeleteMessage", QueueUrl=queue, ReceiptHandle=handles[0])
        else:
            entries = [{"Id": f"e{number}", "ReceiptHandle": handle} for number, handle in enumerate(handles)]
            await self.call("DeleteMessageBatch", QueueUrl=queue, Entries=entries)

    async def cycle(self, queue: str) -> None:
        await self.send(queue)
        while handles := await self.receive(queue):
            await self.delete(queue, handles)
            return

    async def cycle_ten(self, queue: str) -> None:
        await self.send_ten(queue)
        left = 10
        while left > 0 and (handles := await self.receive(queue, 10)):
            await self.delete(queue, handles)
            left -= len(handles)


def flat(action: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters under Query's names, which number a batch's entries."""
    entries = parameters.pop("Entries", [])
    numbered = {
        f"{action}RequestEntry.{number}.{name}": value
        for number, entry in enumerate(entries, 1)
        for name, value in entry.items()
    }
    return parameters | numbered


Unit = Callable[[Client, str], Awaitable[None]]
# workload: (one unit, its messages, its requests)
WORKLOADS: dict[str, tuple[Unit, int, int]] = {
    "send": (Client.send, 1, 1),
    "raw": (Client.send, 1, 1),
    "send-batch10": (Client.send_ten, 10, 1),
    "cycle": (Client.cycle, 1, 3),
    "cycle10": (Client.cycle_ten, 10, 3),
    "empty": (lambda client, queue: discard(client.receive(queue)), 1, 1),
}


async def discard(awaited: Awaitable[object]) -> None:
    await awaited


async def connect(options: argparse.Namespace) -> Client:
    parts = urlsplit(options.endpoint)
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, parts.hostname, parts.port)
    return Client(connection, options)


def percentile_ms(samples_s: list[float], share: float) -> float:
    ordered = sorted(samples_s)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 if ordered else 0.0


async def steady(options: argparse.Namespace) -> dict[str, Any]:
    """Repeat the workload's unit on all connections; return the figures of the time after the warm-up."""
    unit, messages, requests = WORKLOADS[options.workload]
    clients = [await connect(options) for _ in range(options.c)]
    queue = await clients[0].create()
    samples_s: list[float] = []
    begin = time.perf_counter() + options.warm
    end = begin + options.d

    async def work(client: Client) -> None:
        while (started := time.perf_counter()) < end:
            await unit(client, queue)
            if started >= begin:
                samples_s.append(time.perf_counter() - started)

    async def watch() -> float:
        await asyncio.sleep(options.warm)
        before = measure.cpu_s(options.pid)
        await asyncio.sleep(options.d)
        return measure.cpu_s(options.pid) - before

    cpu_s, *_ = await asyncio.gather(watch(), *map(work, clients))
    await clients[0].call("DeleteQueue", QueueUrl=queue)
    units = max(1, len(samples_s))
    return {
        "msgs_per_s": units * messages / options.d,
        "p50_ms": percentile_ms(samples_s, 0.5) / requests,
        "p99_ms": percentile_ms(samples_s, 0.99) / requests,
        "server_cpu_s_per_1k_msgs": cpu_s * 1000 / (units * messages),
        "server_cpu_s_per_1k_reqs": cpu_s * 1000 / (units * requests),
        "errors": 0,
    }


async def publishing(options: argparse.Namespace) -> dict[str, Any]:
    """Publish on all connections; return the figures of the time after the warm-up.

    Servers may answer before they deliver, so the CPU time counts until all copies are in their queues.
    """
    clients = [await connect(options) for _ in range(options.c)]
    queues = [await clients[0].create() for _ in range(options.subscribed)]
    topic = await clients[0].create_topic(queues)
    samples_s: list[float] = []

    async def work(client: Client, end: float) -> None:
        while (started := time.perf_counter()) < end:
            await client.publish(topic)
            samples_s.append(time.perf_counter() - started)

    async def storm(duration_s: float) -> None:
        end = time.perf_counter() + duration_s
        await asyncio.gather(*(work(client, end) for client in clients))

    await storm(options.warm)
    warming = len(samples_s)
    await wait_until_delivered(clients[0], queues, warming)
    before = measure.cpu_s(options.pid)
    await storm(options.d)
    await wait_until_delivered(clients[0], queues, len(samples_s))
    cpu_s = measure.cpu_s(options.pid) - before
    for queue in queues:
        await clients[0].call("DeleteQueue", QueueUrl=queue)
    await clients[0].call_sns("DeleteTopic", TopicArn=topic)
    measured = samples_s[warming:]
    return {
        "msgs_per_s": len(measured) / options.d,
        "p50_ms": percentile_ms(measured, 0.5),
        "p99_ms": percentile_ms(measured, 0.99),
        "server_cpu_s_per_1k_msgs": cpu_s * 1000 / len(measured),
        "server_cpu_s_per_1k_reqs": cpu_s * 1000 / len(measured),
        "errors": 0,
    }


async def wait_until_delivered(client: Client, queues: list[str], published: int) -> None:
    """Wait until every queue has a copy of each publish. Raise RuntimeError if that takes longer than DELIVERY_S."""
    end = time.perf_counter() + DELIVERY_S
    for queue in queues:
        while (found := await client.waiting(queue)) != published:
            if time.perf_counter() > end:
                raise RuntimeError(f"{found} of {published} publishes are in {queue}")
            await asyncio.sleep(LOOK_S)


async def wake(options: argparse.Namespace) -> dict[str, Any]:
    """Repeat pairs of a waiting receive and a send; return the times from the send's first byte to the reply."""
    samples_s: list[float] = []
    end = time.perf_counter() + options.d

    async def pair() -> None:
        receiver, sender = await connect(options), await connect(options)
        queue = await sender.create()
        while time.perf_counter() < end:
            waiting = asyncio.ensure_future(receiver.receive(queue, wait_s=10))
            await asyncio.sleep(0.015)  # the receive must be waiting when the send goes out
            started = time.perf_counter()
            await sender.send(queue)
            handles = await waiting
            samples_s.append(time.perf_counter() - started)
            await receiver.delete(queue, handles)

    await asyncio.gather(*(pair() for _ in range(options.c)))
    figures = {"p50": percentile_ms(samples_s, 0.5), "p99": percentile_ms(samples_s, 0.99)}
    return {"samples": len(samples_s), "errors": 0, "send_to_wake_ms": figures}


def seconds(text: str) -> float:
    """Return the seconds of a text: ``3s``, as sqsload writes it, or a plain number."""
    return float(text.removesuffix("s"))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-endpoint", required=True)
    parser.add_argument("-proto", choices=["json", "query"], default="json")
    parser.add_argument("-workload", choices=[*WORKLOADS, "wake", "publish"], default="send")
    parser.add_argument("-shape", choices=["plain", "boto3"], default="plain")
    parser.add_argument("-c", type=int, default=16)
    parser.add_argument("-d", type=seconds, default=5.0)
    parser.add_argument("-warm", type=seconds, default=1.0)
    parser.add_argument("-size", type=int, default=256)
    parser.add_argument("-subscribed", type=int, default=1, help="queues that get the copies of publish (1)")
    parser.add_argument("-pid", type=int, required=True)
    options = parser.parse_args()
    options.netloc = urlsplit(options.endpoint).netloc
    return options


def main() -> None:
    options = parsed()
    if options.workload == "wake":
        figures = {"wake": asyncio.run(wake(options))}
    elif options.workload == "publish":
        figures = {"r": asyncio.run(publishing(options))}
    else:
        figures = {"r": asyncio.run(steady(options))}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
