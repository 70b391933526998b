"""CPU time, memory and core of other processes, as the kernel counts them."""

import os
from pathlib import Path

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
