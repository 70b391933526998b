"""CPU time of the metrics in a request: reading the clock at its beginning, and counting at its end.

It is the median of five runs over 1,000 queues, without the measuring loop itself. CPU time of the thread excludes
other work of the machine. The goal is 0.3 us, including two reads of the clock, which have a line of their own. The
program checks no goal.

The last line is a scrape of a server with 10,000 queues, in CPU time too: the whole scrape, and the longest turn of the
loop, during which no other request is served. The goals are 100 ms and 10 ms; the median of five scrapes counts.
"""

import argparse
import asyncio
import statistics
import urllib.request
from time import perf_counter, thread_time

import stalls
from aiohttp import web

from elasticq.admin.app import make_app
from elasticq.model.commands import Command, CreateQueue, DeleteMessage, ReceiveMessage, SendMessage
from elasticq.model.results import EmptyResult, ReceivedMessage, ReceiveMessageResult, Result, SendMessageResult
from elasticq.runtime.meter import Count, Meter
from elasticq.server import collector
from elasticq.server.events import EventKeeper
from elasticq.server.life import make_context
from elasticq.server.settings import load
from elasticq.server.view import View
from elasticq.testing.member import EmbeddedMember
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


async def scraped(queues: int) -> tuple[float, float, int]:
    """Return (whole scrape, longest turn of the loop, size of the page), in ms of CPU time and in bytes."""
    collector.tame()
    settings = load(None, {}, {"http": {"port": 0}, "storage": {"memory": True}})
    member = EmbeddedMember(settings)
    await member.start()
    view = View(settings, "OK", member.url, EventKeeper())
    view.open(member.member, make_context(settings, member.runtime, asyncio.get_running_loop()))
    for number in range(queues):
        await view.execute(CreateQueue(f"a-queue-of-many-{number}"), ACCOUNT)
        await view.execute(SendMessage(f"a-queue-of-many-{number}", "hello"), ACCOUNT)
    runner = web.AppRunner(make_app(view))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/metrics"

    def read() -> int:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return len(answer.read())

    whole, longest, size_bytes = [], [], 0
    for _ in range(RUNS + 1):  # the first one imports the library
        stalls.longest_s, began_s = 0.0, thread_time()
        size_bytes = await asyncio.to_thread(read)
        whole.append((thread_time() - began_s) * 1e3)
        longest.append(stalls.longest_s * 1e3)
    await runner.cleanup()
    await member.stop()
    return statistics.median(whole[1:]), statistics.median(longest[1:]), size_bytes


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--calls", type=int, default=1_000_000, help="requests in a run (1000000)")


def main(options: argparse.Namespace) -> None:
    calls = options.calls
    print(f"{'two clock reads':16} {clocks_ns(calls):6.0f} ns")
    meter = Meter(OPERATIONS)
    for action in CALLS:
        print(f"{action:16} {cost_ns(meter, action, calls):6.0f} ns a request")
    stalls.watch_the_loop()
    whole_ms, longest_ms, size_bytes = asyncio.run(scraped(SCRAPED_QUEUES))
    told = f"{whole_ms:.0f} ms, longest turn of the loop {longest_ms:.1f} ms, {size_bytes:,} bytes"
    print(f"a scrape of {SCRAPED_QUEUES:,} queues: {told}")
