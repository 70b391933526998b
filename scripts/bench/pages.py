"""CPU time of a message in pages of 1,000 next to pages of 10: server and light client, send to delete.

    python scripts/bench pages [--messages 50000] [--rounds 3]

There are one server in memory and one client; bodies have 200 bytes. The page sizes alternate, and the median of the
rounds counts.
"""

import argparse
import statistics
import time

from measure import cpu_s, server_command, serving

from elasticq.client import UNSIGNED, Sqs

BODY = ("abcdefghijklmnopqrstuvwxyz012345" * 7)[:200]
STEPS = ("send", "receive", "delete")


def run(sqs: Sqs, pid: int, page: int, messages: int) -> dict[str, tuple[float, float]]:
    """Return the CPU time of a message in us for each step, as (server, client)."""
    url = sqs.create_queue(QueueName=f"page-{page}")["QueueUrl"]
    options = {"QueueUrl": url, "ElasticqPageSize": page}
    entries = [{"Id": str(at), "MessageBody": BODY} for at in range(page)]
    received: list[list[dict[str, str]]] = []

    def receive() -> None:
        got = sqs.receive_message(**options)["Messages"]
        received.append([{"Id": str(at), "ReceiptHandle": x["ReceiptHandle"]} for at, x in enumerate(got)])

    calls = {
        "send": lambda: sqs.send_message_batch(**options, Entries=entries),
        "receive": receive,
        "delete": lambda: sqs.delete_message_batch(**options, Entries=received.pop()),
    }
    costs = {}
    for step in STEPS:
        server_s, client_s = cpu_s(pid), time.process_time()
        for _ in range(messages // page):
            calls[step]()
        costs[step] = (cpu_s(pid) - server_s) * 1e6 / messages, (time.process_time() - client_s) * 1e6 / messages
    sqs.delete_queue(QueueUrl=url)
    return costs


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, default=50_000, help="messages in a round (50000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (3)")


def main(options: argparse.Namespace) -> None:
    rounds: dict[int, list[dict[str, tuple[float, float]]]] = {10: [], 1_000: []}
    with serving(server_command("--memory")) as (server, endpoint), Sqs(endpoint, "us-east-1", UNSIGNED) as sqs:
        for _ in range(options.rounds):
            for page, measured in rounds.items():
                measured.append(run(sqs, server.pid, page, options.messages))
    print(f"CPU us a message, median of {options.rounds} rounds of {options.messages:,} messages")
    print(f"{'step':<10}{'side':<8}{'of 10':>8}{'of 1,000':>10}{'ratio':>8}")
    for step in STEPS:
        for side, name in enumerate(("server", "client")):
            small, large = (statistics.median(one[step][side] for one in rounds[page]) for page in (10, 1_000))
            print(f"{step:<10}{name:<8}{small:>8.1f}{large:>10.1f}{small / max(large, 1e-9):>8.1f}")
