"""Memory of a server before and after a mix of legal, illegal and rude calls; status 1 if it grew too much.

The first figure is taken after a minute of the mix, when the server has loaded everything that it loads at first use.
Before each figure the queues are deleted and the testing clock is advanced, so everything remembered for a time ends.
The program fails if the difference is more than --rise-mb. It prints a line each minute while the mix runs.

    python scripts/chaos soak --minutes 60
    python scripts/chaos soak --minutes 10 --durable
"""

import argparse
import asyncio
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote, urlsplit

import measure
from servers import DIRECTORY, Way, running

SERVER = [sys.executable, "-m", "elasticq", "server", "--port", "0", "--admin-port", "-1"]
QUEUES = 20
WARM_S = 60.0
SETTLE_S = 30.0
TURN_ON_S = 30 * 86_400  # longer than the retention of messages, leases and the history of calls
MIB = 1_048_576
Members = dict[str, Any]


class Client:
    """A client with one connection, which it opens when needed."""

    def __init__(self, host: str, port: int, seed: int, statuses: Counter[int]) -> None:
        self._address = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._number = 0
        self.random = random.Random(seed)
        self.statuses = statuses

    async def write(self, data: bytes) -> asyncio.StreamReader:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        writer.write(data)
        await writer.drain()
        return reader

    async def exchange(self, data: bytes) -> tuple[int, bytes]:
        """Send a request; return the status and body of its answer."""
        reader = await self.write(data)
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
        body = await reader.readexactly(int(fields[b"content-length"]))
        status = int(head.split(b" ", 2)[1])
        self.statuses[status] += 1
        if fields.get(b"connection") == b"close":
            self.leave()
        return status, body

    async def call(self, action: str, members: Members | bytes, *headers: str) -> Members:
        """Call an action by JSON with a new invocation id; return its result, or {} after an error."""
        body = members if isinstance(members, bytes) else json.dumps(members, ensure_ascii=False).encode()
        self._number += 1
        mark = f"amz-sdk-invocation-id: {id(self)}-{self._number}"
        lines = f"Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.{action}\r\n{mark}\r\n"
        status, answer = await self.exchange(_post(lines + "".join(f"{line}\r\n" for line in headers), body))
        found: Members = json.loads(answer) if status == 200 and answer else {}
        return found

    def leave(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


def _post(lines: str, body: bytes, path: str = "/") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _url(client: Client) -> str:
    return f"http://localhost/000000000000/soak-{client.random.randrange(QUEUES)}"


# --- legal calls ---


async def send(client: Client) -> None:
    body = "x" * client.random.choice([10, 500, 5_000, 200_000])
    await client.call("SendMessage", {"QueueUrl": _url(client), "MessageBody": body})


async def send_batch(client: Client) -> None:
    text = {"DataType": "String", "StringValue": "v"}
    entries = [
        {
            "Id": str(at),
            "MessageBody": "é" * 100,
            "MessageAttributes": {"a": text, "b": text},
            "MessageGroupId": f"g{at}",
        }
        for at in range(10)
    ]
    await client.call("SendMessageBatch", {"QueueUrl": _url(client), "Entries": entries})


async def receive(client: Client) -> None:
    url = _url(client)
    wait_s = client.random.choice([0, 0, 0, 1])
    asked = {"QueueUrl": url, "MaxNumberOfMessages": 10, "WaitTimeSeconds": wait_s, "AttributeNames": ["All"]}
    messages = (await client.call("ReceiveMessage", asked)).get("Messages", [])
    if messages:
        entries = [{"Id": str(at), "ReceiptHandle": each["ReceiptHandle"]} for at, each in enumerate(messages)]
        await client.call("DeleteMessageBatch", {"QueueUrl": url, "Entries": entries})


async def churn(client: Client) -> None:
    name = f"churn-{client.random.getrandbits(64):x}.fifo"
    members = {"QueueName": name, "Attributes": {"FifoQueue": "true"}, "tags": {"a": "b"}}
    url = (await client.call("CreateQueue", members)).get("QueueUrl", name)
    for at in range(5):
        grouped = {"MessageBody": "x", "MessageGroupId": f"g{at}", "MessageDeduplicationId": f"d{at}"}
        await client.call("SendMessage", {"QueueUrl": url, **grouped})
    await client.call("ReceiveMessage", {"QueueUrl": url, "ReceiveRequestAttemptId": "r"})
    await client.call("DeleteQueue", {"QueueUrl": url})


async def look(client: Client) -> None:
    url = quote(_url(client), safe="")
    for target in ("/?Action=ListQueues", f"/?Action=GetQueueAttributes&AttributeName=All&QueueUrl={url}"):
        await client.exchange(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    form = f"Action=ReceiveMessage&VisibilityTimeout=0&QueueUrl={url}".encode()
    await client.exchange(_post("Content-Type: application/x-www-form-urlencoded\r\n", form))


# --- illegal and rude calls ---


async def fail(client: Client) -> None:
    """Send calls that the engine refuses, one after another."""
    url, long = _url(client), "q" * client.random.choice([300, 10_000, 200_000])
    for action, members in (
        ("ReceiveMessage", {"QueueUrl": "nowhere"}),
        ("GetQueueUrl", {"QueueName": long}),
        ("SendMessage", {"QueueUrl": "nowhere", "MessageBody": long}),
        ("SendMessage", {"QueueUrl": url, "MessageBody": "x", "MessageGroupId": long}),
        ("DeleteMessage", {"QueueUrl": url, "ReceiptHandle": long}),
        ("SetQueueAttributes", {"QueueUrl": url, "Attributes": {"RedrivePolicy": long}}),
        ("SendMessageBatch", {"QueueUrl": url, "Entries": [{"Id": "a", "MessageBody": "x"}, {"Id": long}]}),
    ):
        await client.call(action, members)


async def exceed(client: Client) -> None:
    """Send requests that are longer, or hold more, than any bound allows."""
    salt = f"{client.random.getrandbits(128):x}"
    await client.call("SendMessage", {"QueueUrl": _url(client), "MessageBody": salt * 40_000})
    await client.call("SendMessage", {"QueueUrl": f"http://{salt * 1_000}/000000000000/soak-1", "MessageBody": "x"})
    names = [f"{number:x}" for number in range(20_000)]
    await client.call(
        "ReceiveMessage", {"QueueUrl": _url(client), "WaitTimeSeconds": 1, "MessageAttributeNames": names}
    )
    await client.call("ListQueues", b"[" * 100_000)
    await client.call("SendMessage", b"{}", f"User-Agent: {salt * 100}", f"X-Amzn-Trace-Id: {salt * 20}")


async def intrude(client: Client) -> None:
    """Send bytes that are no request, and requests of other services."""
    for data in (
        b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\0\1\2\r\n\r\n",
        _post("", b"", "/_elasticq/peek"),
    ):
        try:
            await client.exchange(data)
        except (asyncio.IncompleteReadError, OSError):
            client.leave()


async def walk_out(client: Client) -> None:
    """Close connections in the middle of a head, a body, and a wait, and before answers are read."""
    poll = json.dumps({"QueueUrl": _url(client), "WaitTimeSeconds": 20}).encode()
    lines = "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\n"
    pipelined = "GET /?Action=ReceiveMessage&VisibilityTimeout=0&QueueUrl=soak-1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for data in (
        b"POST / HTTP/1.1\r\nX: ",
        _post(lines, b"x" * 90_000)[:-1],
        _post(lines, poll),
        pipelined.encode() * 50,
    ):
        await client.write(data)
        await asyncio.sleep(client.random.uniform(0, 0.2))
        client.leave()


MIX: tuple[tuple[Callable[[Client], Awaitable[None]], int], ...] = (
    (send, 40),
    (send_batch, 10),
    (receive, 60),
    (churn, 3),
    (look, 6),
    (fail, 6),
    (exceed, 3),
    (intrude, 3),
    (walk_out, 3),
)


async def work(client: Client, until_s: float, only: str) -> None:
    chosen = [(step, weight) for step, weight in MIX if only in ("", step.__name__)]
    steps, weights = zip(*chosen, strict=True)
    while time.monotonic() < until_s:
        (step,) = client.random.choices(steps, weights)
        try:
            await step(client)
        except (asyncio.IncompleteReadError, OSError):
            client.statuses[0] += 1
            client.leave()
        await asyncio.sleep(client.random.uniform(0, 0.1))
    client.leave()


async def soak(arguments: argparse.Namespace, url: str, pid: int) -> float:
    """Run the whole soak; return by how many MiB the server grew."""
    address = urlsplit(url)
    host, port = address.hostname or "", address.port or 0
    statuses: Counter[int] = Counter()
    began_s = time.monotonic()

    async def load(seconds: float, seed: int) -> None:
        until_s = time.monotonic() + seconds
        clients = [Client(host, port, seed + at, statuses) for at in range(arguments.clients)]
        works = [asyncio.create_task(work(client, until_s, arguments.only)) for client in clients]
        while time.monotonic() < until_s:
            await asyncio.sleep(min(60.0, max(0.1, until_s - time.monotonic())))
            print(
                f"{time.monotonic() - began_s:6.0f} s  {_rss(pid):6.1f} MiB  {dict(sorted(statuses.items()))}",
                flush=True,
            )
        await asyncio.gather(*works)

    async def rest(operator: Client) -> float:
        """Delete all queues, advance the clock and wait; return the server's memory in MiB."""
        operator.leave()  # the server has closed this idle connection
        for number in range(QUEUES):
            await operator.call("DeleteQueue", {"QueueUrl": f"soak-{number}"})
        await operator.exchange(_post("", json.dumps({"advance": TURN_ON_S}).encode(), "/_elasticq/clock"))
        await asyncio.sleep(SETTLE_S)
        return _rss(pid)

    async def create(operator: Client) -> None:
        for number in range(QUEUES):
            await operator.call(
                "CreateQueue", {"QueueName": f"soak-{number}", "Attributes": {"VisibilityTimeout": "5"}}
            )

    print(f"idle:   {_rss(pid):.1f} MiB", flush=True)
    operator = Client(host, port, arguments.seed, statuses)
    await create(operator)
    await load(WARM_S, arguments.seed)
    before = await rest(operator)
    print(f"before: {before:.1f} MiB", flush=True)
    await create(operator)
    await load(arguments.minutes * 60, arguments.seed + arguments.clients)
    after = await rest(operator)
    print(f"after:  {after:.1f} MiB, {after - before:+.1f}", flush=True)
    return after - before


def _rss(pid: int) -> float:
    return measure.rss_bytes(pid) / MIB


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=10, help="length of the mix after the first minute (10)")
    parser.add_argument("--clients", type=int, default=50, help="connections (50)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the calls (1)")
    parser.add_argument(
        "--only", default="", choices=[step.__name__ for step, _ in MIX], help="send only this kind of call"
    )
    parser.add_argument("--durable", action="store_true", help="use a data directory instead of memory")
    parser.add_argument("--rise-mb", type=float, default=20, help="MiB by which the memory may grow (20)")


def main(arguments: argparse.Namespace) -> int:
    os.environ["ELASTICQ_TESTING__ENABLED"] = "true"  # for its clock
    where = ["--data-dir", DIRECTORY] if arguments.durable else ["--memory"]
    with running([*SERVER, *where], Way(())) as (process, url):
        rise = asyncio.run(soak(arguments, url, process.pid))
        if process.poll() is not None:
            print(f"the server ended with {process.returncode}")
            return 1
    return int(rise > arguments.rise_mb)
