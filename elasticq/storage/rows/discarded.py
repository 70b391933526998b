"""The discarded entries, kept for people: they were acknowledged to clients, but a newer master did not have them.

There is one file for each term in which entries were made, with one line of JSON for each entry.
No code ever sends them again.
"""

import os
from pathlib import Path
from typing import Any

import msgspec

from elasticq.engine.stored.mutations import Mutation, decode
from elasticq.replication.records import Entry
from elasticq.storage.directory import sync_directory


class Discarded:
    """The files of one directory, which is made with the first file. Calls block. count: entries in all files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.count = sum(_whole_lines(file) for file in directory.glob("*.jsonl"))

    def append(self, entries: list[Entry]) -> None:
        """Append the entries durably. Raise OSError if that fails."""
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
    """Return the number of lines. Cut off an unfinished last line, which a crash may have left."""
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
    """Return the mutation's name and its fields, for JSON with bytes in base64."""
    return {"mutation": type(mutation).__name__, **msgspec.structs.asdict(mutation)}
