"""Time until elasticq.pyz listens, next to Python's import of aiohttp.web, and its idle memory; status 1 above goals.

Each round measures all of them one after the other, so other work on the machine affects them equally. The best of the
rounds counts. ``first`` unpacks the file, and ``warm`` finds it unpacked. The goals are factors of the import's time.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

from measure import ADMIN, ROOT, address, rss_bytes, serving

ROUNDS = 5
START_S = 120
BARE = (sys.executable, "-I")
FIRST_FACTOR_MAX, WARM_FACTOR_MAX, IDLE_RSS_MB_MAX = 4.0, 1.8, 72.0


class Cost(NamedTuple):
    """The cost of a process until it listens or ends."""

    wall_s: float
    cpu_s: float


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pyz", type=Path, default=ROOT / "dist" / "elasticq.pyz", help="file to measure (dist/elasticq.pyz)"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"rounds ({ROUNDS})")


def main(options: argparse.Namespace) -> int:
    if not options.pyz.is_file():
        print(f"{options.pyz} is missing: make dist", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="elasticq-start-") as work:
        return _report(*_measure(options.pyz.resolve(), options.rounds, Path(work)))


def _measure(pyz: Path, rounds: int, work: Path) -> tuple[dict[str, list[Cost]], float]:
    root = work / "root"
    environment = os.environ | {"SHIV_ROOT": str(root)}
    serve = [*BARE, str(pyz), "--memory", "--port", "0", "--admin-port", "0"]
    costs: dict[str, list[Cost]] = {"aiohttp": [], "first": [], "warm": []}
    for _ in range(rounds):
        costs["aiohttp"].append(_import_cost())
        shutil.rmtree(root, ignore_errors=True)
        costs["first"].append(_start_cost(serve, environment, work))
        costs["warm"].append(_start_cost(serve, environment, work))
    return costs, _idle_rss_bytes(serve, environment, work)


def _import_cost() -> Cost:
    started_s = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", "import aiohttp.web"])
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - started_s
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit("aiohttp cannot be imported here")
    return Cost(wall_s, used.ru_utime + used.ru_stime)


def _start_cost(command: list[str], environment: dict[str, str], work: Path) -> Cost:
    """Return the cost until the server prints its port. Later imports do not count."""
    started_s = time.perf_counter()
    with serving(command, work, environment) as (process, _):
        return Cost(time.perf_counter() - started_s, _cpu_s(process.pid))


def _cpu_s(pid: int) -> float:
    """Return CPU seconds by the scheduler's clock in nanoseconds. /proc/PID/stat counts only hundredths of a second."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def _idle_rss_bytes(command: list[str], environment: dict[str, str], work: Path) -> float:
    """Return the server's memory after the admin port has answered its pages, with all that they import."""
    with serving(command, work, environment) as (process, _):
        admin = address(process, ADMIN)
        for page in ("/ready", "/cluster", "/metrics"):
            with urllib.request.urlopen(f"{admin}{page}", timeout=START_S) as answer:
                answer.read()
        return rss_bytes(process.pid)


def _report(costs: dict[str, list[Cost]], rss: float) -> int:
    best = {name: Cost(*map(min, zip(*found, strict=True))) for name, found in costs.items()}
    base = best["aiohttp"]
    goals = {"aiohttp": 1.0, "first": FIRST_FACTOR_MAX, "warm": WARM_FACTOR_MAX}
    print(f"best of {len(costs['warm'])}           wall ms   factor    cpu ms   factor      goal")
    for name, cost in best.items():
        factors = f"{cost.wall_s / base.wall_s:8.2f}", f"{cost.cpu_s / base.cpu_s:8.2f}"
        goal = "" if name == "aiohttp" else f"{goals[name]:>10.1f}"
        print(f"{name:16} {cost.wall_s * 1e3:11.0f} {factors[0]} {cost.cpu_s * 1e3:9.0f} {factors[1]}{goal}")
    print(f"idle RSS with the admin port in use: {rss / 1e6:.1f} MB, goal {IDLE_RSS_MB_MAX:.0f}")
    met = all(best[name].wall_s <= goals[name] * base.wall_s for name in best) and rss <= IDLE_RSS_MB_MAX * 1e6
    print("goals met" if met else "GOALS MISSED")
    return 0 if met else 1
