"""The command ``elasticq bench``: it sends and receives at any SQS endpoint, and shows rates and latencies.

Each connection is a thread with a loop: senders send batches, receivers receive and delete them. Latencies are those
that a client sees, with the work of this client. So the CPU time of the bench itself is part of its report.
"""

import argparse
import resource
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from elasticq.cli import carry
from elasticq.cli.queues import Failure, Misuse, run_with, with_endpoint
from elasticq.cli.show import Interrupt, count, json_lines, report, table

if TYPE_CHECKING:
    from elasticq.client import Sqs

SHOW_S: Final = 1.0
LOOK_S: Final = 0.05
WAIT_S: Final = 1
"""The wait time of a receive, in seconds: a receiver notices the end after at most so long."""
DRAIN_S: Final = 30.0
"""Receivers have so long, after the last send, to receive the rest."""
STAMP: Final = 20
"""The first characters of a body: when it was sent, in ns of this process's monotonic clock."""
BUSY: Final = 0.9
PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


def add_bench(parser: argparse.ArgumentParser) -> None:
    with_endpoint(parser)
    parser.add_argument("--connections", type=int, default=4, metavar="N", help="so many send, as many receive (4)")
    parser.add_argument("--size", type=int, default=1_000, metavar="BYTES", help="length of a body (1000)")
    parser.add_argument("--batch", type=int, default=10, metavar="N", help="messages a call, 1 to 10 (10)")
    parser.add_argument("--queues", type=int, default=1, metavar="N", help="divide the messages among so many (1)")
    parser.add_argument("--fifo", action="store_true", help="FIFO queues, with a message group for each connection")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--duration", type=float, default=10.0, metavar="S", help="send for so long (10)")
    length.add_argument("--count", type=int, metavar="N", help="send so many messages")
    parser.add_argument("--no-receive", action="store_true", help="only send")
    parser.set_defaults(run=lambda options: run_with("Sqs", _bench, options))


class Timings:
    """Durations in seconds, which several threads note."""

    def __init__(self) -> None:
        self._values = array("d")

    def note(self, seconds: float) -> None:
        self._values.append(seconds)

    def percentiles_ms(self) -> dict[str, float]:
        """Return the percentiles in milliseconds, empty without durations."""
        ordered = sorted(self._values)
        if not ordered:
            return {}
        last = len(ordered) - 1
        return {name: round(ordered[round(last * part)] * 1_000, 3) for name, part in PERCENTILES.items()}


class Run:
    """What the threads of one run share. sent_s, received_s: from the start to the last message of the kind."""

    def __init__(self, client: "Sqs", urls: list[str], options: argparse.Namespace) -> None:
        self.client = client
        self.urls = urls
        self.options = options
        self.sent = self.received = 0
        self.start_s = time.monotonic()
        self.sent_s = self.received_s = 0.0
        self.timings = {name: Timings() for name in ("send", "delete", "end to end")}
        self.failure: BaseException | None = None
        self.no_more_sends = threading.Event()
        self.end = threading.Event()
        self._claimed = 0
        self._lock = threading.Lock()

    def claim(self) -> int:
        """Return how many messages the caller sends next, 0 at the end."""
        if self.no_more_sends.is_set():
            return 0
        limit, batch = self.options.count, self.options.batch
        if limit is None:
            return int(batch)
        with self._lock:
            number = min(batch, limit - self._claimed)
            self._claimed += number
            return int(number)

    def add(self, sent: int = 0, received: int = 0) -> None:
        passed_s = time.monotonic() - self.start_s
        with self._lock:
            self.sent += sent
            self.received += received
            if sent:
                self.sent_s = passed_s
            if received:
                self.received_s = passed_s

    def guard(self, work: Callable[[int], None], number: int) -> None:
        """Run the loop of a thread. Its error ends the run."""
        try:
            work(number)
        except BaseException as error:
            self.failure = self.failure or error
            self.no_more_sends.set()
            self.end.set()

    def send(self, number: int) -> None:
        url, padding = self.urls[number % len(self.urls)], "x" * (self.options.size - STAMP)
        group: dict[str, Any] = {"MessageGroupId": f"g{number}"} if self.options.fifo else {}
        while size := self.claim():
            start_ns = time.perf_counter_ns()
            body = f"{start_ns:0{STAMP}}{padding}"
            entries = [{"Id": str(at), "MessageBody": body, **group} for at in range(size)]
            if group:
                for entry in entries:
                    entry["MessageDeduplicationId"] = uuid4().hex
            carry.check_taken(self.client.send_message_batch(QueueUrl=url, Entries=entries), entries, self.sent)
            self.timings["send"].note((time.perf_counter_ns() - start_ns) / 1e9)
            self.add(sent=size)

    def receive(self, number: int) -> None:
        url, batch = self.urls[number % len(self.urls)], self.options.batch
        while not self.end.is_set():
            answer = self.client.receive_message(QueueUrl=url, MaxNumberOfMessages=batch, WaitTimeSeconds=WAIT_S)
            messages = answer.get("Messages", [])
            if not messages:
                continue
            now_ns = time.perf_counter_ns()
            for message in messages:
                self.timings["end to end"].note((now_ns - int(message["Body"][:STAMP])) / 1e9)
            handles = [{"Id": str(at), "ReceiptHandle": each["ReceiptHandle"]} for at, each in enumerate(messages)]
            failed = self.client.delete_message_batch(QueueUrl=url, Entries=handles).get("Failed", [])
            if failed:
                raise carry.Stopped(f"a message was received but not deleted: {failed[0].get('Message', '')}")
            self.timings["delete"].note((time.perf_counter_ns() - now_ns) / 1e9)
            self.add(received=len(messages))


def _bench(client: "Sqs", options: argparse.Namespace) -> int:
    _check(options)
    with _queues(client, options) as urls, Interrupt() as interrupt:
        run = Run(client, urls, options)
        start_cpu_s = _cpu_s()
        _go(run, interrupt)
        seconds, cpu_s = time.monotonic() - run.start_s, _cpu_s() - start_cpu_s
    if run.failure is not None:
        raise run.failure
    _report(run, seconds, cpu_s)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Raise Misuse if an option is out of its range."""
    for name, low, high in (("connections", 1, 512), ("queues", 1, 1_000), ("batch", 1, 10), ("size", STAMP, 262_144)):
        if not low <= getattr(options, name) <= high:
            raise Misuse(f"--{name} is {low} to {high}")
    if options.queues > options.connections:
        raise Misuse("--queues is at most --connections: each connection uses one queue")
    if options.count is not None and options.count < 1:
        raise Misuse("--count is at least 1")
    if options.batch * options.size > carry.BATCH_BYTES:
        raise Misuse(f"--batch times --size is at most {carry.BATCH_BYTES}")


@contextmanager
def _queues(client: "Sqs", options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield the URLs of new queues. Delete them at the end, also after an error."""
    urls: list[str] = []
    ending, attributes = (".fifo", {"FifoQueue": "true"}) if options.fifo else ("", {})
    try:
        for number in range(options.queues):
            name = f"elasticq-bench-{uuid4().hex[:12]}-{number}{ending}"
            urls.append(client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])
        yield urls
    finally:
        for url in urls:
            client.delete_queue(QueueUrl=url)


def _go(run: Run, interrupt: Interrupt) -> None:
    """Start the threads, show rates, and return when all have ended."""
    options = run.options
    works = [run.send] if options.no_receive else [run.receive, run.send]
    threads = [
        threading.Thread(target=run.guard, args=(work, number), name=f"{work.__name__}-{number}", daemon=True)
        for work in works
        for number in range(options.connections)
    ]
    senders = threads[-options.connections :]
    for thread in threads:
        thread.start()
    rates = _Rates(run.start_s)
    while any(thread.is_alive() for thread in senders):
        if interrupt.asked or (options.count is None and time.monotonic() - run.start_s >= options.duration):
            run.no_more_sends.set()
        time.sleep(LOOK_S)
        rates.show(run)
    deadline_s = time.monotonic() + DRAIN_S
    while not options.no_receive and run.received < run.sent and not interrupt.asked and not run.end.is_set():
        if time.monotonic() > deadline_s:
            run.failure = Failure(f"{count(run.sent - run.received, 'message')} not received within {DRAIN_S:g} s")
            break
        time.sleep(LOOK_S)
        rates.show(run)
    run.end.set()
    for thread in threads:
        thread.join()
    rates.clear()


class _Rates:
    """The rates of the last second, on stderr: one line that is redrawn on a terminal, else a line each second."""

    def __init__(self, start_s: float) -> None:
        self._start_s = self._at_s = start_s
        self._seen = (0, 0)

    def show(self, run: Run) -> None:
        now_s = time.monotonic()
        if now_s - self._at_s < SHOW_S:
            return
        now, passed_s = (run.sent, run.received), now_s - self._at_s
        sent, received = ((after - before) / passed_s for after, before in zip(now, self._seen, strict=True))
        self._at_s, self._seen = now_s, now
        line = f"{now_s - self._start_s:4.0f} s  sent {sent:,.0f}/s  received {received:,.0f}/s"
        if sys.stderr.isatty():
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            report(line.strip())

    def clear(self) -> None:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _rate(number: int, seconds: float) -> float:
    return number / seconds if seconds else 0.0


def _report(run: Run, seconds: float, cpu_s: float) -> None:
    options = run.options
    latencies = {name: each.percentiles_ms() for name, each in run.timings.items()}
    if options.json:
        fields = ("connections", "size", "batch", "queues", "fifo")
        document = {
            "endpoint": options.url,
            **{name: getattr(options, name) for name in fields},
            "seconds": round(seconds, 3),
            "sent": run.sent,
            "received": run.received,
            "sent_per_s": round(_rate(run.sent, run.sent_s), 1),
            "received_per_s": round(_rate(run.received, run.received_s), 1),
            "cpu_s": round(cpu_s, 3),
            **{f"{name.replace(' ', '_')}_ms": values for name, values in latencies.items()},
        }
        json_lines([document])
    else:
        kinds = (("sent", run.sent, run.sent_s), ("received and deleted", run.received, run.received_s))
        for name, number, passed_s in kinds:
            rate = _rate(number, passed_s)
            amount = f"{count(number, 'message')} {name} in {passed_s:.1f} s"
            print(f"{amount}: {rate:,.0f}/s, {rate * options.size / 1e6:.1f} MB/s")
        rows = [[name, *(f"{value:.2f}" for value in values.values())] for name, values in latencies.items() if values]
        table(["MS", *PERCENTILES], rows)
        print(f"CPU of this bench: {cpu_s:.1f} s, {100 * cpu_s / seconds:.0f} % of a core")
    if cpu_s / seconds > BUSY:
        report("the bench itself used a whole core: run several of them, or lower --connections, to measure the server")
