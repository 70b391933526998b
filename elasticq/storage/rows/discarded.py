"""Keeps, for people to read, entries that clients had been told are stored but that a newer master did not have.

One file for each term in which they were made, one line of JSON for each entry.
Nothing here is ever sent again automatically.
"""

import os
from pathlib import Path
from typing import Any

import msgspec

from elasticq.engine.stored.mutations import Mutation, decode
from elasticq.replication.records import Entry
from elasticq.storage.directory import sync_directory


class Discarded:
    """The files of one directory, which is made with the first file; calls block. ``count``: entries in all files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.count = sum(_whole_lines(file) for file in directory.glob("*.jsonl"))

    def append(self, entries: list[Entry]) -> None:
        """Append the entries; they are durable when this returns. Raises OSError."""
        if not entries:
            return
        if not self._directory.exists():
            self._directory.mkdir(mode=0o700)
            sync_directory(self._directory.parent)
        for term in sorted({entry.term for entry in entries}):
            _append(self._directory / f"{term}.jsonl", [entry for entry in entries if entry.term == term])
        sync_directory(self._directory)
        self.count += len(entries)


def _whole_lines(file: Path) -> int:
    """Return the number of lines; cut the torn last line that a crash may have left, which was never counted."""
    data = file.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(file, whole)
    return data.count(b"\n")


def _append(file: Path, entries: list[Entry]) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(b"".join(_line(entry) for entry in entries))
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _line(entry: Entry) -> bytes:
    mutations = [_told(mutation) for mutation in decode(entry.payload)]
    told = {"index": entry.index, "term": entry.term, "time_ms": entry.time_ms, "mutations": mutations}
    return msgspec.json.encode(told) + b"\n"


def _told(mutation: Mutation) -> dict[str, Any]:
    """Return the mutation's name and its fields; bytes are written in base64."""
    return {"mutation": type(mutation).__name__, **msgspec.structs.asdict(mutation)}
