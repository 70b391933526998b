"""The files of rows that could not be sent: JSON lines, one complete file for each task."""

import base64
import json
from datetime import date
from pathlib import Path
from typing import Any

from elasticq.spark.entries import Row


def file_system(location: str) -> tuple[Any, str]:
    """Return pyarrow's file system for a path or a URL, and the path within it."""
    from pyarrow.fs import FileSystem

    uri = location if "://" in location or location.startswith("file:") else Path(location).absolute().as_uri()
    files, path = FileSystem.from_uri(uri)
    return files, path


class Rejects:
    """The rejects of one task. Its file appears when the task succeeds and has rejected a row.

    A retried task writes a file of the same name, so no reject is listed twice.
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
    """Return a JSON value for a value that json cannot encode: base64, an ISO 8601 time, or str(value)."""
    match value:
        case bytes() | bytearray():
            return {"base64": base64.b64encode(value).decode()}
        case date():  # datetime is a date, too
            return value.isoformat()
        case _:
            return str(value)
