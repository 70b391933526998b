"""CPU time and latency of a message, next to a bare echo server in the same run. It prints goals but checks none.

The server runs on core 0 and the generator on core 1 if the machine allows it. There are 16 connections (64 in the row
@64) and 256-byte bodies, and the median of several runs counts. Messages are in memory. The durable rows have a data
directory and a sync before each reply; --directory names the disk. The load comes from sqsload (Go) if it can be
built, else from scripts/bench/loadgen.py.

If there are compiled modules (make native), each row of elasticq also runs with them. Variables add other servers
under the same load: ELASTICMQ_LIB (a folder of ElasticMQ's jars), GOAWS_BIN (GoAWS's program) and LOCALSTACK_PYTHON (a
Python that has LocalStack). ElasticMQ is warmed up first, because Java compiles the code that it runs often.
"""

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import measure

from elasticq import BUILD

HERE = Path(__file__).resolve().parent
SQSLOAD_SOURCE = measure.ROOT.parent / "shared" / "tools" / "sqsload"
PATHS = re.compile(r"^elasticq_http_(hot|slow)_requests_total (\S+)$", re.MULTILINE)
SERVER = measure.server_command("--memory")
CONNECTIONS = 16
WAKE_PAIRS = 4


class Row(NamedTuple):
    """One line of the table: the server, the load, the goal, and the row to compare it with (``beside``)."""

    title: str
    server: str  # a key of SERVERS
    flags: tuple[str, ...]
    goal: str = ""
    beside: str = ""
    connections: int = CONNECTIONS


DIRECTORY = "DIRECTORY"  # in a command: stands for a new directory, which is removed after the run
SERVERS = {
    "elasticq": SERVER,
    "durable": measure.server_command("--data-dir", DIRECTORY),
    "floor": [sys.executable, str(HERE / "echo.py"), "protocol"],
    "aiohttp": [sys.executable, str(HERE / "echo.py"), "aiohttp"],
}
OWN = ("elasticq", "durable")
"""Servers of elasticq, which can run compiled or not."""
WARM_S = 30
PEER_START_S = 120
GOAWS_SETTINGS = """\
Local:
  Host: 127.0.0.1
  Port: {port}
  Region: us-east-1
  AccountId: "000000000000"
  LogToFile: false
"""


LOCALSTACK_SETTINGS = (
    ("GATEWAY_LISTEN", "127.0.0.1:{port}"),
    ("SERVICES", "sqs,sns"),
    ("EAGER_SERVICE_LOADING", "1"),
    ("DNS_ADDRESS", "0"),
    ("SKIP_SSL_CERT_DOWNLOAD", "1"),
    ("DISABLE_EVENTS", "1"),
)


class Way(NamedTuple):
    """One variant of the measurement: a build of elasticq, or another server.

    servers: the servers (keys of SERVERS) whose rows it measures.
    goes_by: the end of its rows' titles.
    environment, peer: variables, and the command of another server. Both may contain {port} and {directory}.
    warm_s: seconds of load before the measurement.
    """

    servers: tuple[str, ...]
    goes_by: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    peer: tuple[str, ...] = ()
    warm_s: int = 0
    has_topics: bool = True


def ways() -> list[Way]:
    """Return all variants that can be measured here."""
    found = [Way(tuple(SERVERS), environment=(("ELASTICQ_PURE", "1"),))]
    if BUILD.is_compiled:
        found.append(Way(OWN, ", compiled"))
    if jars := os.environ.get("ELASTICMQ_LIB"):
        options = ("-Drest-sqs.bind-hostname=127.0.0.1", "-Drest-sqs.bind-port={port}", "-Drest-stats.enabled=false")
        command = ("java", "-cp", f"{jars}/*", *options, "org.elasticmq.server.Main")
        found.append(Way(("elasticq",), ", ElasticMQ warm", peer=command, warm_s=WARM_S, has_topics=False))
    if program := os.environ.get("GOAWS_BIN"):
        command = (program, "-config", "{directory}/goaws.yaml", "Local")
        found.append(Way(("elasticq",), ", GoAWS", peer=command))
    if python := os.environ.get("LOCALSTACK_PYTHON"):
        command = (python, "-m", "localstack.runtime.main")
        found.append(Way(("elasticq",), ", LocalStack", LOCALSTACK_SETTINGS, peer=command))
    return found


FLOOR, WAKE_FLOOR = "echo: bare protocol", "echo: wake-up"
ROWS = (
    Row(FLOOR, "floor", ("-workload", "raw")),
    Row("echo: aiohttp web.Server", "aiohttp", ("-workload", "raw"), beside=FLOOR),
    Row(WAKE_FLOOR, "floor", ("-workload", "wake")),
    Row("send", "elasticq", ("-workload", "send"), "20 µs", FLOOR),
    Row("send, boto3's shape", "elasticq", ("-workload", "send", "-shape", "boto3"), "24 µs", FLOOR),
    Row("send by 10", "elasticq", ("-workload", "send-batch10"), "6 µs", FLOOR),
    Row("cycle", "elasticq", ("-workload", "cycle"), "50 µs", FLOOR),
    Row("cycle, boto3's shape", "elasticq", ("-workload", "cycle", "-shape", "boto3"), "", "cycle"),
    Row("cycle by 10", "elasticq", ("-workload", "cycle10"), "12 µs", FLOOR),
    Row("query send", "elasticq", ("-workload", "send", "-proto", "query"), "1.2x", "send"),
    Row("query cycle", "elasticq", ("-workload", "cycle", "-proto", "query"), "1.2x", "cycle"),
    Row("empty receive", "elasticq", ("-workload", "empty"), "", FLOOR),
    Row("send durable @16", "durable", ("-workload", "send"), "50 µs", FLOOR),
    Row("send durable @64", "durable", ("-workload", "send"), "28 µs", FLOOR, 64),
    Row("send by 10 durable", "durable", ("-workload", "send-batch10"), "9 µs", FLOOR),
    Row("cycle durable", "durable", ("-workload", "cycle"), "", FLOOR),
    Row("wake-up", "elasticq", ("-workload", "wake"), "0.3 / 1 ms", WAKE_FLOOR),
)
WARMING = Row("warm-up", "elasticq", ("-workload", "cycle"))


class Figures(NamedTuple):
    """The figures of one measurement of a row. CPU times (us) are the server's."""

    message_us: float | None
    request_us: float | None
    messages_a_s: float | None
    p50_ms: float
    p99_ms: float


class Start(NamedTuple):
    wall_s: float
    cpu_s: float
    rss_mb: float


def build_generator(directory: Path) -> list[str]:
    """Return the command of the load generator: sqsload if Go and its source are there, else loadgen.py."""
    binary = directory / "sqsload"
    if shutil.which("go") and SQSLOAD_SOURCE.is_dir():
        environment = os.environ | {"GOCACHE": str(directory / "cache"), "GOFLAGS": "-buildvcs=false"}
        built = subprocess.run(
            ["go", "build", "-o", str(binary), "."], cwd=SQSLOAD_SOURCE, env=environment, check=False
        )
        if built.returncode == 0:
            return [str(binary)]
    return [sys.executable, str(HERE / "loadgen.py")]


@contextmanager
def running(command: list[str], way: Way) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server on its core; yield the process and its URL."""
    if way.peer:
        with peer(way) as found:
            yield found
        return
    environment = {name: value for name, value in os.environ.items() if name != "ELASTICQ_PURE"} | dict(way.environment)
    with tempfile.TemporaryDirectory(prefix="elasticq-bench-") as directory:
        filled_in = [f"{directory}/data" if part == DIRECTORY else part for part in command]
        with measure.serving(filled_in, environment=environment, core=measure.SERVER_CORE) as found:
            yield found


@contextmanager
def peer(way: Way) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run another server; yield its process and URL when it accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="elasticq-bench-") as directory:
        Path(directory, "goaws.yaml").write_text(GOAWS_SETTINGS.format(port=port))

        def filled_in(part: str) -> str:
            return part.replace("{port}", str(port)).replace("{directory}", directory)

        environment = os.environ | {name: filled_in(value) for name, value in way.environment}
        process = subprocess.Popen(
            [filled_in(part) for part in way.peer],
            cwd=directory,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            measure.pin(process.pid, measure.SERVER_CORE)
            wait_until_it_takes(port, process)
            yield process, f"http://127.0.0.1:{port}"
        finally:
            measure.stop(process)


def wait_until_it_takes(port: int, process: subprocess.Popen[str]) -> None:
    until_s = time.monotonic() + PEER_START_S
    while time.monotonic() < until_s and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"{process.args} does not listen on port {port}")


def load(generator: list[str], row: Row, url: str, pid: int, seconds: float) -> Figures:
    connections = WAKE_PAIRS if "wake" in row.flags else row.connections
    timing = ["-c", str(connections), "-d", f"{seconds}s", "-warm", "1s"]
    process = subprocess.Popen(
        [*generator, "-endpoint", url, "-pid", str(pid), *timing, *row.flags], stdout=subprocess.PIPE, text=True
    )
    measure.pin(process.pid, measure.GENERATOR_CORE)
    output, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"the generator failed at {row.title!r}")
    return read_figures(row, json.loads(output))


def read_figures(row: Row, answer: dict[str, Any]) -> Figures:
    figures = answer.get("r") or answer["wake"]
    if figures["errors"]:
        print(f"  {row.title}: {figures['errors']} errors, first: {figures.get('first_error', '')[:200]}")
    if "wake" in answer:
        waking = figures["send_to_wake_ms"]
        return Figures(None, None, None, waking["p50"], waking["p99"])
    return Figures(
        figures["server_cpu_s_per_1k_msgs"] * 1000,
        figures["server_cpu_s_per_1k_reqs"] * 1000,
        figures["msgs_per_s"],
        figures["p50_ms"],
        figures["p99_ms"],
    )


def median(values: list[Figures]) -> Figures:
    """Return the median of each field; a field that the row does not have stays None."""
    columns = zip(*values, strict=True)
    return Figures(*(None if column[0] is None else statistics.median(column) for column in columns))


def post(url: str, action: str) -> bytes:
    headers = {"X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": "application/x-amz-json-1.0"}
    request = urllib.request.Request(url, b'{"QueueName":"first"}', headers)
    with urllib.request.urlopen(request, timeout=20) as response:
        return bytes(response.read())


def measure_start(way: Way) -> Start:
    """Return the cost of a start, from the fork to the first answered CreateQueue."""
    started = time.perf_counter()
    with running(SERVER, way) as (process, url):
        post(url, "CreateQueue")
        wall_s = time.perf_counter() - started
        return Start(wall_s, measure.cpu_s(process.pid), measure.rss_bytes(process.pid) / 1e6)


def path_counts(admin_url: str) -> tuple[int, int]:
    """Return the numbers of (hot, slow) requests since the start."""
    with urllib.request.urlopen(f"{admin_url}/metrics", timeout=20) as response:
        found = dict(PATHS.findall(response.read().decode()))
    return int(float(found["hot"])), int(float(found["slow"]))


def one_round(generator: list[str], seconds: float) -> tuple[dict[str, Figures], float]:
    """Measure every row once in every variant, with fresh servers.

    Return the figures by title, and the share of the boto3-shaped requests that took the hot path.
    """
    figures: dict[str, Figures] = {}
    hot = slow = 0
    for way, name in [(each, name) for each in ways() for name in each.servers]:
        with running(SERVERS[name], way) as (process, url):
            admin_url = measure.address(process, measure.ADMIN) if name in OWN and not way.peer else ""
            if way.warm_s:
                load(generator, WARMING, url, process.pid, way.warm_s)
            for row in (row for row in ROWS if row.server == name):
                counts_paths = "boto3" in row.flags and not way.peer
                before = path_counts(admin_url) if counts_paths else (0, 0)
                figures[row.title + way.goes_by] = load(generator, row, url, process.pid, seconds)
                if counts_paths:
                    after = path_counts(admin_url)
                    hot, slow = hot + after[0] - before[0], slow + after[1] - before[1]
    return figures, hot / max(1, hot + slow)


def cell(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def ratio(figures: Figures, beside: Figures | None) -> str:
    """Return the ratio to the other row: of the CPU time of a message, or of the two latencies of a wake-up."""
    if beside is None:
        return "-"
    if figures.message_us is None or not beside.message_us:
        return f"{figures.p50_ms / beside.p50_ms:.2f}x / {figures.p99_ms / beside.p99_ms:.2f}x"
    return f"{figures.message_us / beside.message_us:.2f}x"


def print_table(medians: dict[str, Figures]) -> None:
    print(f"{'':36}{'µs/message':>11}{'µs/request':>11}{'msgs/s':>9}{'p50 ms':>8}{'p99 ms':>8}  {'ratio':15} goal")
    for row, way in [(row, each) for row in ROWS for each in ways() if row.server in each.servers]:
        title = row.title + way.goes_by
        one = medians[title]
        beside = row.beside if row.beside in (FLOOR, WAKE_FLOOR) else row.beside + way.goes_by
        against = f"{ratio(one, medians.get(beside)):15}  {'' if way.peer else row.goal}"
        print(
            f"{title:36}{cell(one.message_us, '11.1f'):>11}{cell(one.request_us, '11.1f'):>11}"
            f"{cell(one.messages_a_s, '9.0f'):>9}{one.p50_ms:8.2f}{one.p99_ms:8.2f}  {against}"
        )
    print("ratio: Query to JSON, boto3's cycle to the plain one, all others to the bare echo; goals are maxima")


def print_start(starts: list[Start], way: Way) -> None:
    wall_s, cpu_s, rss_mb = (statistics.median(column) for column in zip(*starts, strict=True))
    print(f"{'start to first answer' + way.goes_by:36}{cpu_s:.2f} CPU s (goal 0.3), {wall_s:.2f} s (goal 0.4)")
    print(f"{'idle resident memory' + way.goes_by:36}{rss_mb:.0f} MB (goal 64)")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=3, help="runs of all rows (3)")
    parser.add_argument("--seconds", type=float, default=3.0, help="measured time of a row, after 1 s of warm-up (3)")
    parser.add_argument("--directory", help="folder for the durable server's data (the system's temporary folder)")
    parser.add_argument(
        "--own-generator", action="store_true", help="use scripts/bench/loadgen.py even if Go is installed"
    )


def main(options: argparse.Namespace) -> None:
    tempfile.tempdir = options.directory or tempfile.tempdir
    with tempfile.TemporaryDirectory() as directory:
        own = [sys.executable, str(HERE / "loadgen.py")]
        generator = own if options.own_generator else build_generator(Path(directory))
        pinned = hasattr(os, "sched_getaffinity") and {
            measure.SERVER_CORE,
            measure.GENERATOR_CORE,
        } <= os.sched_getaffinity(0)
        load_1 = os.getloadavg()[0]
        print(
            f"{Path(generator[-1]).name}, {CONNECTIONS} connections, 256 B, median of {options.runs}, "
            f"{'pinned' if pinned else 'not pinned'}, load {load_1:.1f}"
        )
        rounds = [one_round(generator, options.seconds) for _ in range(options.runs)]
        both = [way for way in ways() if "elasticq" in way.servers and not way.peer]
        starts = {way: [measure_start(way) for _ in range(options.runs)] for way in both}
    print_table({title: median([figures[title] for figures, _ in rounds]) for title in rounds[0][0]})
    share = statistics.median(share for _, share in rounds)
    print(f"boto3's calls on the hot path {share:.1%} (goal 95%)")
    for way, found in starts.items():
        print_start(found, way)
