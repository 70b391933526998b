"""What a durable log entry costs: append-only segments beside a SQLite table, both synced (ADR 0006)."""

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from elasticq.replication.records import Entry
from elasticq.storage.files import DirectoryFiles
from elasticq.storage.log.records import encode_batch
from elasticq.storage.log.segments import SegmentLog

Append = Callable[[list[Entry]], None]


def segments(directory: Path) -> Append:
    log = SegmentLog(DirectoryFiles(directory))
    log.load()

    def append(entries: list[Entry]) -> None:
        log.append(list(entries))
        log.sync()

    return append


def table(directory: Path) -> Append:
    connection = sqlite3.connect(directory / "log.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE entries (number INTEGER PRIMARY KEY, record BLOB)")

    def append(entries: list[Entry]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO entries VALUES (?, ?)", [(entry.index, encode_batch([entry])) for entry in entries]
        )
        connection.execute("COMMIT")

    return append


def measure(append: Append, batch: int, seconds: float) -> tuple[float, float, float]:
    """(CPU µs an entry, wall ms a sync, entries a second)."""
    payload = bytes(range(256)) + bytes(60)
    index, syncs = 0, 0
    begin_s, begin_cpu_s = time.perf_counter(), time.process_time()
    while time.perf_counter() - begin_s < seconds:
        append([Entry(index + at, 1, 1_700_000_000_000, payload) for at in range(1, batch + 1)])
        index, syncs = index + batch, syncs + 1
    wall_s, cpu_s = time.perf_counter() - begin_s, time.process_time() - begin_cpu_s
    return cpu_s / index * 1e6, wall_s / syncs * 1e3, index / wall_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--directory", type=Path, help="on the disk to be measured (a temporary one)")
    options = parser.parse_args()
    print(f"{'log':<10} {'entries a sync':>14} {'CPU µs an entry':>16} {'ms a sync':>10} {'entries/s':>10}")
    for batch in (1, 16, 64, 512):
        for name, make in (("segments", segments), ("SQLite", table)):
            with tempfile.TemporaryDirectory(dir=options.directory) as directory:
                cpu_us, sync_ms, rate = measure(make(Path(directory)), batch, options.seconds)
            print(f"{name:<10} {batch:>14} {cpu_us:>16.1f} {sync_ms:>10.2f} {rate:>10,.0f}")


if __name__ == "__main__":
    main()
