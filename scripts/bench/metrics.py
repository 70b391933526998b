"""CPU time of the metrics in a request: reading the clock at its beginning, and counting at its end.

It is the median of five runs over 1,000 queues, without the measuring loop itself. CPU time of the thread excludes
other work of the machine. The goal is 0.3 us, including two reads of the clock, which have a line of their own. The
program checks no goal.

The last line is a scrape of a server with 10,000 queues, in CPU time too: the whole scrape, and the longest turn of the
loop, during which no other request is served. The goals are 100 ms and 10 ms; the median of five scrapes counts.
"""

import argparse
import statistics
from time import perf_counter, thread_time

from states import TURNS, Server

from elasticq.model.commands import Command, CreateQueue, DeleteMessage, ReceiveMessage, SendMessage
from elasticq.model.results import EmptyResult, ReceivedMessage, ReceiveMessageResult, Result, SendMessageResult
from elasticq.runtime.meter import Count, Meter
from elasticq.wire.operations import OPERATIONS

QUEUES = 1_000
SCRAPED_QUEUES = 10_000
ACCOUNT = "000000000000"
RUNS = 5
CALLS: dict[str, tuple[type[Command], Result]] = {
    "SendMessage": (SendMessage, SendMessageResult("id")),
    "ReceiveMessage": (ReceiveMessage, ReceiveMessageResult([ReceivedMessage("id", "handle", "body")])),
    "DeleteMessage": (DeleteMessage, EmptyResult()),
}


def commands_of(kind: type[Command]) -> list[Command]:
    """Return a command for each queue, as after decoding: each URL is a text of its own with a cached hash."""
    commands = [kind(queue_url=f"http://127.0.0.1:9324/000000000000/queue-{at}") for at in range(QUEUES)]  # type: ignore[call-arg]
    for command in commands:
        hash(command.queue_url)  # type: ignore[attr-defined]
    return commands


def bare_s(commands: list[Command], rounds: int) -> float:
    began_s = thread_time()
    for _ in range(rounds):
        for command in commands:  # noqa: B007
            pass
    return thread_time() - began_s


def counted_s(count: Count, commands: list[Command], result: Result, rounds: int) -> float:
    began_s = thread_time()
    for _ in range(rounds):
        for command in commands:
            request_began_s = perf_counter()
            if count(command, "000000000000", result, request_began_s):
                print("slow")
    return thread_time() - began_s


def clocks_s(commands: list[Command], rounds: int) -> float:
    began_s = thread_time()
    for _ in range(rounds):
        for command in commands:  # noqa: B007
            perf_counter()
            perf_counter()
    return thread_time() - began_s


def clocks_ns(calls: int) -> float:
    commands, rounds = commands_of(DeleteMessage), calls // QUEUES
    runs = [clocks_s(commands, rounds) - bare_s(commands, rounds) for _ in range(RUNS)]
    return statistics.median(runs) / (rounds * QUEUES) * 1e9


def cost_ns(meter: Meter, action: str, calls: int) -> float:
    kind, result = CALLS[action]
    first, again = commands_of(kind), commands_of(kind)
    count, rounds = meter.counts[action], calls // QUEUES
    counted_s(count, first, result, 1)
    runs = [counted_s(count, again, result, rounds) - bare_s(again, rounds) for _ in range(RUNS)]
    return statistics.median(runs) / (rounds * QUEUES) * 1e9


def scraped(queues: int) -> tuple[float, float, int]:
    """Return (whole scrape, longest turn of the loop, size of the page), in ms of CPU time and in bytes."""
    TURNS.watch()
    server = Server()
    try:
        names = [f"a-queue-of-many-{number}" for number in range(queues)]
        server.fill(iter([kind for name in names for kind in (CreateQueue(name), SendMessage(name, "hello"))]))
        whole, longest, size_bytes = [], [], 0
        for _ in range(RUNS + 1):  # the first one imports the library
            TURNS.take_ms()
            began_s = server.thread.ask(thread_time)
            size_bytes = len(server.page("/metrics"))
            whole.append((server.thread.ask(thread_time) - began_s) * 1e3)
            longest.append(TURNS.take_ms())
    finally:
        server.stop()
    return statistics.median(whole[1:]), statistics.median(longest[1:]), size_bytes


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--calls", type=int, default=1_000_000, help="requests in a run (1000000)")


def main(options: argparse.Namespace) -> None:
    calls = options.calls
    print(f"{'two clock reads':16} {clocks_ns(calls):6.0f} ns")
    meter = Meter(OPERATIONS)
    for action in CALLS:
        print(f"{action:16} {cost_ns(meter, action, calls):6.0f} ns a request")
    whole_ms, longest_ms, size_bytes = scraped(SCRAPED_QUEUES)
    told = f"{whole_ms:.0f} ms, longest turn of the loop {longest_ms:.1f} ms, {size_bytes:,} bytes"
    print(f"a scrape of {SCRAPED_QUEUES:,} queues: {told}")
