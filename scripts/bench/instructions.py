"""Instructions of a message in user mode, a figure that does not depend on how busy the machine is.

    python scripts/bench instructions [--requests 200] [--rows cycle,publish]

Requests go through a port in memory: the real connection, runtime and node, without socket, loop and kernel. The
program runs itself under valgrind's callgrind, which must be installed. callgrind writes its count after each part.
The count includes about a hundred instructions that hand a request over. Compare only figures of the same machine,
because other libraries need other instructions. Figures of a batch of ten are per message, too.
"""

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable
from contextvars import Context
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_plus
from uuid import UUID

import loadgen

ROOT: Final = Path(__file__).resolve().parents[2]
HOST: Final = "127.0.0.1:9324"
URL: Final = f"http://{HOST}/000000000000/jobs"
BODY: Final = "abcdefghijklmnopqrstuvwxyz012345" * 8
HANDLE: Final = re.compile(rb'"ReceiptHandle":"([^"]+)"|<ReceiptHandle>([^<]+)<')
TOTAL: Final = re.compile(r"^(?:summary|totals): (\d+)$", re.MULTILINE)
WALL_MS: Final = 1_800_000_000_000
REQUESTS_PER_MS: Final = 20
BATCH: Final = 10
NUMBERS: Final = count(1)
TOPIC_ARN: Final = "arn:aws:sns:us-east-1:000000000000:events"
ROWS: Final = ("cycle", "boto3 cycle", "cycle by 10", "query cycle", "publish")
BOTO3: Final = (
    f"{loadgen.BOTO3_HEADERS}Content-Type: application/x-amz-json-1.0\r\n{loadgen.SIGNED_BY['sqs']}"
    "X-Amz-Target: AmazonSQS.{action}\r\n"
)
"""The headers of boto3. Each request has another invocation id, as boto3's calls do."""


class Loop(asyncio.AbstractEventLoop):
    """An event loop that runs its callbacks when ``turn`` is called. The server needs nothing else of it."""

    def __init__(self) -> None:
        self.soon: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:
        """Keep the callback for the next turn. Return no handle, because nobody cancels it."""
        self.soon.append((callback, args))

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> Any:
        """Return a timer that never fires."""
        return asyncio.TimerHandle(0, callback, args, self, context)

    def get_debug(self) -> bool:
        return False

    def turn(self) -> None:
        while self.soon:
            callback, args = self.soon.popleft()
            callback(*args)


class Line(asyncio.Transport):
    """The client's end of the connection. It keeps what the server writes."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 50_000), "sockname": ("127.0.0.1", 9324)})
        self.written: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return False


class Port:
    """A server in memory, with one connection."""

    def __init__(self) -> None:
        from elasticq.http.context import ServerContext
        from elasticq.http.protocol import SqsProtocol
        from elasticq.node.node import Node
        from elasticq.node.settings import NodeSettings
        from elasticq.runtime.runtime import Runtime
        from elasticq.storage.memory import MemoryStorage

        storage = MemoryStorage()
        node = Node(NodeSettings(member_id="a", voters=("a",), volatile=True), storage.load().durable, bytes(32))
        self.loop, self.line, self.now_ms = Loop(), Line(), 1_000_000
        times: Any = {"clock": lambda: self.now_ms, "wall_clock": lambda: WALL_MS}
        runtime = Runtime(node, storage, self.loop, _broken, **times)
        runtime.start()
        context = ServerContext(runtime, self.loop, bytes(32), node_name="a", default_account="000000000000", **times)
        self.connection = SqsProtocol(context)
        self.connection.connection_made(self.line)
        self.ask_all([json_request("CreateQueue", '{"QueueName":"jobs"}'), topic_form("CreateTopic", "Name=events")])
        queue_arn = quote_plus("arn:aws:sqs:us-east-1:000000000000:jobs")
        self.ask_all([topic_form("Subscribe", f"TopicArn={quote_plus(TOPIC_ARN)}&Protocol=sqs&Endpoint={queue_arn}")])

    def ask_all(self, requests: list[bytes]) -> list[bytes]:
        """Send requests, each followed by a turn of the loop; return their answers."""
        self.line.written.clear()
        receive, turn = self.connection.data_received, self.loop.turn
        for number, request in enumerate(requests):
            if number % REQUESTS_PER_MS == 0:
                self.now_ms += 1
            receive(request)
            turn()
        answers = self.line.written.copy()
        assert len(answers) == len(requests)
        assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers), answers
        return answers


def _broken(failure: BaseException) -> None:
    raise failure


# --- requests -----------------------------------------------------------------------


def request(kind: str, body: str) -> bytes:
    head = f"POST / HTTP/1.1\r\nHost: {HOST}\r\nAccept-Encoding: identity\r\n{kind}Content-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def json_request(action: str, body: str) -> bytes:
    kind = f"Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.{action}\r\n"
    return request(kind, body)


def boto3_request(action: str, body: str, number: int) -> bytes:
    return request(BOTO3.format(action=action, invocation=UUID(int=number)), body)


def of_row(row: str, requests: list[bytes]) -> list[bytes]:
    """Return the requests as the client of the row sends them: boto3's each have another head."""
    if row != "boto3 cycle":
        return requests
    parts = (request.split(b"\r\n\r\n") for request in requests)
    actions = ((head.partition(b"AmazonSQS.")[2].partition(b"\r")[0].decode(), body.decode()) for head, body in parts)
    return [boto3_request(action, body, next(NUMBERS)) for action, body in actions]


def form(action: str, members: str) -> bytes:
    body = f"Action={action}&QueueUrl={quote_plus(URL)}&{members}&Version=2012-11-05"
    return request("Content-Type: application/x-www-form-urlencoded\r\n", body)


def topic_form(action: str, members: str) -> bytes:
    body = f"Action={action}&{members}&Version=2010-03-31"
    return request("Content-Type: application/x-www-form-urlencoded\r\n", body)


def sends(row: str) -> bytes:
    if row == "publish":
        return topic_form("Publish", f"TopicArn={quote_plus(TOPIC_ARN)}&Message={BODY}")
    if row == "query cycle":
        return form("SendMessage", f"MessageBody={BODY}")
    if row in ("cycle", "boto3 cycle"):
        return json_request("SendMessage", f'{{"QueueUrl":"{URL}","MessageBody":"{BODY}"}}')
    entries = ",".join(f'{{"Id":"m{at}","MessageBody":"{BODY}"}}' for at in range(BATCH))
    return json_request("SendMessageBatch", f'{{"QueueUrl":"{URL}","Entries":[{entries}]}}')


def receives(row: str) -> bytes:
    count = BATCH if row == "cycle by 10" else 1
    if row == "query cycle":
        return form("ReceiveMessage", f"MaxNumberOfMessages={count}")
    return json_request("ReceiveMessage", f'{{"QueueUrl":"{URL}","MaxNumberOfMessages":{count}}}')


def deletes(row: str, answer: bytes) -> bytes:
    handles = [(first or second).decode() for first, second in HANDLE.findall(answer)]
    if row == "query cycle":
        return form("DeleteMessage", f"ReceiptHandle={quote_plus(handles[0])}")
    if row in ("cycle", "boto3 cycle"):
        return json_request("DeleteMessage", f'{{"QueueUrl":"{URL}","ReceiptHandle":"{handles[0]}"}}')
    entries = ",".join(f'{{"Id":"d{at}","ReceiptHandle":"{handle}"}}' for at, handle in enumerate(handles))
    return json_request("DeleteMessageBatch", f'{{"QueueUrl":"{URL}","Entries":[{entries}]}}')


# --- the two processes ----------------------------------------------------------------


def told(line: str) -> None:
    """Report a point to the parent process, and wait until it has acted on it."""
    print(line, flush=True)
    sys.stdin.readline()


def load(rows: list[str], requests: int) -> None:
    """Send all requests. Report the beginning and end of each part to the parent process.

    Each row runs once before that, to warm up.
    """
    from elasticq.server import collector

    port = Port()
    collector.tame()

    def counted(title: str, asked: list[bytes]) -> list[bytes]:
        told(title)
        answers = port.ask_all(asked)
        told("")
        return answers

    for row in rows:
        times = requests_of(row, requests)
        for ask in (lambda title, asked: port.ask_all(asked), counted):
            ask(f"{row}: send", of_row(row, [sends(row)] * times))
            if row == "publish":
                continue
            received = ask(f"{row}: receive", of_row(row, [receives(row)] * times))
            ask(f"{row}: delete", of_row(row, [deletes(row, answer) for answer in received]))


def requests_of(row: str, requests: int) -> int:
    """Return the number of requests of a row.

    A row of batches has fewer, so that its messages fit into the server's caches of the newest messages, too.
    """
    return requests // 4 if row == "cycle by 10" else requests


def measure(rows: list[str], requests: int) -> None:
    sums = dict.fromkeys(rows, 0.0)
    with tempfile.TemporaryDirectory() as directory:
        counts = Path(directory, "counts")
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", sys.executable]
        command += [str(Path(__file__).parent), "instructions", "--load"]
        child = subprocess.Popen(
            [*command, "--requests", str(requests), "--rows", ",".join(rows)],
            env=os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert child.stdin
        assert child.stdout
        title, parts = "", 0
        for line in child.stdout:
            is_end = not line.strip()
            control(child.pid, "--dump" if is_end else "--zero")
            if is_end:
                parts += 1
                row = title.partition(":")[0]
                messages = requests_of(row, requests) * (BATCH if row == "cycle by 10" else 1)
                each = instructions(Path(f"{counts}.{parts}")) / messages
                sums[row] += each
                print(f"{title:24}{each:10,.0f}", flush=True)
            title = line.strip()
            child.stdin.write("\n")
            child.stdin.flush()
        if child.wait():
            raise SystemExit("the measured process failed; run it with --load to see why")
    for row, sum_ in sums.items():
        print(f"{row:24}{sum_:10,.0f}")


def control(pid: int, what: str) -> None:
    subprocess.run(["callgrind_control", what, str(pid)], capture_output=True, check=True)


def instructions(dump: Path) -> int:
    return int(TOTAL.findall(dump.read_text())[0])


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--requests", type=int, default=200, help="requests in each part of a row (200)")
    parser.add_argument("--rows", default=",".join(ROWS), help="rows, separated by commas (%(default)s)")
    parser.add_argument("--load", action="store_true", help=argparse.SUPPRESS)


def main(options: argparse.Namespace) -> None:
    rows = options.rows.split(",")
    if options.load:
        load(rows, options.requests)
    elif shutil.which("valgrind") is None:
        raise SystemExit("valgrind is not installed")
    else:
        from elasticq import BUILD

        print(f"instructions a message, {'compiled' if BUILD.is_compiled else 'pure'}")
        measure(rows, options.requests)
