"""Keeps messages that could not be sent: one file of JSON lines for each task, which is whole or not there at all."""

import base64
import json
from datetime import date
from pathlib import Path
from typing import Any

from elasticq.spark.entries import Row


def file_system(location: str) -> tuple[Any, str]:
    """Return pyarrow's file system for a path or a URL, and the path in it."""
    from pyarrow.fs import FileSystem

    uri = location if "://" in location or location.startswith("file:") else Path(location).absolute().as_uri()
    files, path = FileSystem.from_uri(uri)
    return files, path


class Rejects:
    """The file of one task; it appears when the task has ended well, and never if nothing was rejected.

    A task that runs again writes the same name, so no reject is listed twice.
    """

    def __init__(self, location: str, name: str) -> None:
        self._location = location
        self._name = name
        self._lines: Any = None
        self._files: Any = None
        self._directory = ""

    def add(self, row: Row, code: str, message: str) -> None:
        if self._lines is None:
            self._files, self._directory = file_system(self._location)
            self._files.create_dir(self._directory, recursive=True)
            self._lines = self._files.open_output_stream(f"{self._directory}/.{self._name}.unfinished")
        line = json.dumps({"error": code, "message": message, "row": row}, default=plain, ensure_ascii=False)
        self._lines.write(line.encode() + b"\n")

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
            self._files.move(f"{self._directory}/.{self._name}.unfinished", f"{self._directory}/{self._name}.jsonl")
            self._lines = None


def plain(value: object) -> object:
    """Return a value that JSON can hold for one of a type that it cannot."""
    match value:
        case bytes() | bytearray():
            return {"base64": base64.b64encode(value).decode()}
        case date():  # datetime is a date, too
            return value.isoformat()
        case _:
            return str(value)
