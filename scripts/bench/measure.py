"""Servers to measure, and CPU time, memory and core of other processes, as the kernel counts them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LISTENING = re.compile(r"(?:elasticq|echo) listening on (http://\S+)")
ADMIN = re.compile(r"admin listening on (http://\S+)")
SERVER_CORE, GENERATOR_CORE = 0, 1
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
PROC = Path("/") / "proc"


def family(pid: int) -> list[int]:
    """Return the ids of the process and its descendants."""
    parents: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            fields = stat_fields(int(entry.name))
            if fields:
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for member in found:
        found.extend(parents.get(member, []))
    return found


def stat_fields(pid: int) -> list[str]:
    """Return the fields of ``stat`` after the name, which may contain blanks; [] if the process has ended."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def cpu_s(pid: int) -> float:
    """Return the user and system time of the process and its descendants, in seconds."""
    fields = [stat_fields(member) for member in family(pid)]
    return sum(int(one[11]) + int(one[12]) for one in fields if one) / TICKS_A_SECOND


def rss_bytes(pid: int) -> int:
    """Return the resident memory of the process and its descendants, in bytes."""
    pages = [int(fields[21]) for fields in map(stat_fields, family(pid)) if fields]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE")


def pin(pid: int, core: int) -> bool:
    """Pin the process to one core; return False if the system or the number of cores does not allow it."""
    if not hasattr(os, "sched_setaffinity") or core not in os.sched_getaffinity(0):
        return False
    os.sched_setaffinity(pid, {core})
    return True


def server_command(*options: str) -> list[str]:
    """Return the command of a server on free ports."""
    return [sys.executable, "-m", "elasticq", "server", *options, "--port", "0", "--admin-port", "0"]


def address(process: subprocess.Popen[str], pattern: re.Pattern[str] = LISTENING) -> str:
    """Return the URL that the server prints when it listens. Exit if the server ends before."""
    assert process.stdout
    for line in process.stdout:
        if match := pattern.search(line):
            return match[1]
    raise SystemExit(f"the server ended before it listened: {process.wait()}")


def stop(process: subprocess.Popen[str]) -> None:
    """End a process within 10 s."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def serving(
    command: list[str], cwd: Path = ROOT, environment: dict[str, str] | None = None, core: int | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server, on one core if given; yield its process and its URL when it listens."""
    process = subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        if core is not None:
            pin(process.pid, core)
        yield process, address(process)
    finally:
        stop(process)
