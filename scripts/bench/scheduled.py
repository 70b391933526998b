"""Costs of scheduled messages: private memory of each, time of a start, and size of the index of their times.

A server makes the queue and gets the first thousand messages. The program writes the others into its rows while it is
down. With ``--sent`` it sends them in batches of 10, which takes minutes for a million. All are due at random times of
the next year. Then the server starts. The figures are the time until its first answer, and the memory of a message:
the difference to a start with only the first thousand.
"""

import argparse
import json
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from deep import BATCH, CONNECTIONS, Link, Server, served_link

from elasticq.engine.ordering.delays import Delays
from elasticq.engine.stored.mutations import MessageStored
from elasticq.model.commands import MessageAttributeValue
from elasticq.node.outputs import Committed
from elasticq.storage.directory import DataDirectory
from elasticq.storage.rows.rows import Rows
from elasticq.storage.snapshot import flush
from elasticq.storage.sqlite import open_rows

QUEUE = "scheduled"
FIRST = 1_000
PART = 8_192
BODY = "x" * 100
YEAR_MS = 365 * 86_400_000
MESSAGE_BYTES_MAX, INDEX_BYTES_MAX, START_S_MAX = 64, 24, 15


def random_ms(now_ms: int) -> int:
    return now_ms + 86_400_000 + random.randrange(YEAR_MS)


def send(server: Server, count: int, url: str) -> None:
    links = [Link(server.port) for _ in range(CONNECTIONS)]
    now_ms = int(time.time() * 1_000)
    for at in range(0, count, BATCH * CONNECTIONS):
        busy = links[: -(-min(BATCH * CONNECTIONS, count - at) // BATCH)]
        for link in busy:
            entries = [
                {
                    "Id": str(number),
                    "MessageBody": BODY,
                    "MessageAttributes": {
                        "ElasticqDeliverAt": {"DataType": "Number", "StringValue": str(random_ms(now_ms))}
                    },
                }
                for number in range(BATCH)
            ]
            link.send("SendMessageBatch", json.dumps({"QueueUrl": url, "Entries": entries}).encode())
        for link in busy:
            link.read()


def write(directory: Path, count: int) -> None:
    """Write so many messages into the rows of a server that is down."""
    opened = DataDirectory(directory)
    connection = open_rows(opened)
    try:
        rows = Rows()
        base, restored = rows.load(connection)
        newest, queue_id = 0, 0
        for mutation in restored:
            newest = max([newest, *getattr(mutation, "sequences", ())])
            queue_id = max(queue_id, getattr(mutation, "queue_id", 0))
        for part in parts(queue_id, newest + 1, count):
            rows.take_part(Committed(base.index, base.term, base.time_ms, part, base.voters))
            flush(connection, rows)
    finally:
        connection.close()
        opened.close()


def parts(queue_id: int, first: int, count: int) -> Iterator[list[MessageStored]]:
    now_ms = int(time.time() * 1_000)
    for begin in range(first, first + count, PART):
        part = []
        for sequence in range(begin, min(begin + PART, first + count)):
            due_ms = random_ms(now_ms)
            attributes = {"ElasticqDeliverAt": MessageAttributeValue("Number", str(due_ms))}
            part.append(MessageStored(queue_id, sequence, BODY, now_ms, "AIDA", due_ms, attributes))
        yield part


def started(server: Server) -> tuple[float, Link]:
    """Start the server; return the seconds until its first answer, and the connection of that answer."""
    begin_s = time.monotonic()
    server.start()
    link = served_link(server)
    return time.monotonic() - begin_s, link


def index_bytes(count: int) -> float:
    """Return the bytes of the index of times for each message: its arrays, and the objects for the near times."""
    delays = Delays()
    for sequence in range(1, count + 1):
        delays.add((1 << 40) + sequence, random_ms(0))
    return delays.size_bytes() / count


def report(title: str, value: float, unit: str, goal: float) -> bool:
    is_met = value <= goal
    print(f"{title:52}{value:10.1f} {unit} (goal {goal:g}){'' if is_met else '  MISSED'}", flush=True)
    return is_met


def run(messages: int, directory: Path, *, is_sent: bool) -> bool:
    server = Server(directory)
    try:
        link = served_link(server)
        url = json.loads(link.call("CreateQueue", QueueName=QUEUE, Attributes={"ElasticqSchedule": "true"}))["QueueUrl"]
        send(server, FIRST, url)
        server.end(signal.SIGTERM)
        few_s, _ = started(server)
        server.settle()
        before_bytes = server.private_bytes()
        if is_sent:
            send(server, messages - FIRST, url)
            server.settle()
            sent_bytes = (server.private_bytes() - before_bytes) / (messages - FIRST)
            told = "memory a message, after they were sent"  # with contents, up to the setting memory_mb
            print(f"{told:52}{sent_bytes:10.1f} B", flush=True)
        server.end(signal.SIGTERM)
        if not is_sent:
            write(directory, messages - FIRST)
        start_s, link = started(server)
        start_cpu_s = server.cpu_s()
        server.settle()
        asked = ["ApproximateNumberOfMessagesDelayed"]
        counted = json.loads(link.call("GetQueueAttributes", QueueUrl=url, AttributeNames=asked))["Attributes"]
        if counted != {asked[0]: str(messages)}:
            raise SystemExit(f"{messages} messages were scheduled, but the server counts {counted}")
        each_bytes = (server.private_bytes() - before_bytes) / (messages - FIRST)
        print(f"{messages:,} messages, a start with {FIRST:,} of them takes {few_s:.2f} s")
        is_met = report("memory a message, after a start", each_bytes, "B", MESSAGE_BYTES_MAX)
        is_met &= report("start until the first answer", start_s, "s", START_S_MAX)
        print(f"{'  CPU time of that':52}{start_cpu_s:10.1f} s", flush=True)
        return is_met
    finally:
        server.end(signal.SIGKILL)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, default=1_000_000, help="scheduled messages (1000000)")
    parser.add_argument("--sent", action="store_true", help="send them instead of writing them into the rows")
    parser.add_argument("--directory", help="folder for the data (the system's temporary folder)")


def main(options: argparse.Namespace) -> int:
    messages = max(options.messages, 2 * FIRST)
    with tempfile.TemporaryDirectory(prefix="elasticq-scheduled-", dir=options.directory) as directory:
        is_met = run(messages, Path(directory) / "data", is_sent=options.sent)
    is_met &= report("the index of times alone", index_bytes(min(messages, 1_000_000)), "B", INDEX_BYTES_MAX)
    return 0 if is_met else 1


if __name__ == "__main__":
    raise SystemExit(main())
