"""CPU time of a call in its client: the light client next to boto3, with canned answers from another process.

    python scripts/bench client [--calls 2000] [--rounds 5] [--page 1000]

Bodies have 200 bytes, and batches have 10 entries. The clients alternate, and the median of the rounds counts.
"""

import argparse
import hashlib
import json
import multiprocessing
import socket
import statistics
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import boto3
from botocore.config import Config

from elasticq.client import Credentials, Sqs

BODY = ("abcdefghijklmnopqrstuvwxyz012345" * 7)[:200]
MD5 = hashlib.md5(BODY.encode()).hexdigest()
BATCH = 10
QUEUE = "orders"


def response(document: object) -> bytes:
    body = json.dumps(document, separators=(",", ":")).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def message(number: int) -> dict[str, str]:
    handle = f"AQAAAQAAAAABAAABAAAAAAEAAAABAAAAARo2W4gdmNvAPdzZ1ATi{number:04}"
    return {"MessageId": f"4d83099c-7572-ebeb-6a55-{number:012}", "ReceiptHandle": handle} | {
        "MD5OfBody": MD5,
        "Body": BODY,
    }


def answers(page: int) -> dict[bytes, bytes]:
    sent = [{"Id": str(at), "MessageId": message(at)["MessageId"], "MD5OfMessageBody": MD5} for at in range(BATCH)]
    return {
        b"AmazonSQS.ReceiveMessage": response({"Messages": [message(at) for at in range(BATCH)]}),
        b"AmazonSQS.SendMessageBatch": response({"Successful": sent}),
        b"AmazonSQS.DeleteMessageBatch": response({"Successful": [{"Id": str(at)} for at in range(BATCH)]}),
        b"page": response({"Messages": [message(at) for at in range(page)]}),
    }


def serve(port: Connection, page: int) -> None:
    """Serve one connection after another, in a process of its own that ends with its parent. Send its port first."""
    canned = answers(page)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port.send(listener.getsockname()[1])
        while True:
            client, _ = listener.accept()
            with client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                answer_all(client, canned)


def answer_all(client: socket.socket, canned: dict[bytes, bytes]) -> None:
    data = b""
    while more := client.recv(262_144):
        data += more
        while (end := data.find(b"\r\n\r\n")) >= 0:
            lines = dict(line.partition(b":")[::2] for line in data[:end].split(b"\r\n")[1:])
            headers = {name.lower(): value.strip() for name, value in lines.items()}
            whole = end + 4 + int(headers.get(b"content-length", b"0"))
            if len(data) < whole:
                break
            name = b"page" if b"ElasticqPageSize" in data[end:whole] else headers[b"x-amz-target"]
            data = data[whole:]
            client.sendall(canned[name])


def calls_of(client: Any, url: str) -> dict[str, Callable[[], object]]:
    entries = [{"Id": str(at), "MessageBody": BODY} for at in range(BATCH)]
    handles = [{"Id": str(at), "ReceiptHandle": message(at)["ReceiptHandle"]} for at in range(BATCH)]
    return {
        f"receive of {BATCH}": lambda: client.receive_message(QueueUrl=url, MaxNumberOfMessages=BATCH),
        f"send batch of {BATCH}": lambda: client.send_message_batch(QueueUrl=url, Entries=entries),
        f"delete batch of {BATCH}": lambda: client.delete_message_batch(QueueUrl=url, Entries=handles),
    }


def cpu_us(call: Callable[[], object], count: int) -> float:
    """Return the CPU time of a call in us, user and system time of this process."""
    call()
    started_s = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - started_s) * 1e6 / count


def boto3_client(endpoint: str) -> Any:
    config = Config(retries={"total_max_attempts": 1}, max_pool_connections=1)
    session = boto3.session.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
    return session.client("sqs", endpoint_url=endpoint, config=config)


def measure(endpoint: str, options: argparse.Namespace) -> None:
    url = f"{endpoint}/000000000000/{QUEUE}"
    rounds: dict[str, list[tuple[float, float]]] = {}
    pages = []
    for _ in range(options.rounds):
        # The clients take turns, because the server serves one connection at a time.
        with Sqs(endpoint, "us-east-1", Credentials("AKIDEXAMPLE", "secret")) as light:
            fast = {name: cpu_us(call, options.calls) for name, call in calls_of(light, url).items()}
            page = partial(light.receive_message, QueueUrl=url, ElasticqPageSize=options.page)
            pages.append(cpu_us(page, options.calls // 50 + 1))
        other = boto3_client(endpoint)
        slow = {name: cpu_us(call, options.calls // 4 + 1) for name, call in calls_of(other, url).items()}
        other.close()
        for name, light_us in fast.items():
            rounds.setdefault(name, []).append((light_us, slow[name]))
    print(f"CPU us a call, median of {options.rounds} rounds of {options.calls:,} calls")
    print(f"{'call':<24}{'light':>8}{'boto3':>8}{'ratio':>7}")
    for name, pairs in rounds.items():
        light_us, boto3_us = (statistics.median(values) for values in zip(*pairs, strict=True))
        ratio = statistics.median([slow_us / fast_us for fast_us, slow_us in pairs])
        print(f"{name:<24}{light_us:>8.0f}{boto3_us:>8.0f}{ratio:>7.1f}")
    page_us = statistics.median(pages)
    print(f"light, page of {options.page:,}: {page_us:.0f} us, {page_us / options.page:.1f} us a message")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--calls", type=int, default=2_000, help="calls in a round (2000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (5)")
    parser.add_argument("--page", type=int, default=1_000, help="messages in a page (1000)")


def main(options: argparse.Namespace) -> None:
    near, far = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(far, options.page), daemon=True)
    server.start()
    try:
        measure(f"http://127.0.0.1:{near.recv()}", options)
    finally:
        server.terminate()
        server.join()
