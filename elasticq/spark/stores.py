"""The stores of the write-ahead log: places for small files, each complete or absent.

Two tasks may read the same share: a task and its retry or speculative copy. ``create`` lets only the first one write
its file, even if tasks die. A folder does this by link(2), and S3 by a conditional put. Other file systems cannot do
it. They are enough for mode=driver, which has only one writer.
"""

import os
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit
from uuid import uuid4

from elasticq.spark.options import OptionError

TAKEN: Final = frozenset(["PreconditionFailed", "ConditionalRequestConflict"])
ABSENT: Final = frozenset(["NoSuchKey", "404", "NotFound"])


class Store(Protocol):
    """A store of files. A name is FOLDER/FILE, and content is durable when ``create`` or ``put`` returns.

    is_exclusive: whether ``create`` works.
    """

    is_exclusive: bool

    def read(self, name: str) -> bytes | None: ...

    def create(self, name: str, content: bytes) -> bool:
        """Create a file and return True; change nothing and return False if it exists.

        Raise OptionError if the store is not exclusive.
        """
        ...

    def put(self, name: str, content: bytes) -> None: ...

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        ...

    def names(self, folder: str) -> list[str]:
        """Return the sorted names of the files in a folder, without the folder; [] if the folder does not exist."""
        ...


def open_store(location: str) -> Store:
    """Return the store at a path or URL. Raise OptionError for an empty or unknown location."""
    parts = urlsplit(location)
    if not location:
        raise OptionError("option walLocation is needed: a folder that driver and executors share, or s3://bucket/path")
    if parts.scheme in ("", "file"):
        return Folder(Path(parts.path if parts.scheme else location))
    if parts.scheme in ("s3", "s3a"):
        return S3(parts.netloc, parts.path.strip("/"))
    return ArrowFolder(location)


class Folder:
    """A folder of a file system that driver and executors share."""

    is_exclusive = True

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, name: str) -> bytes | None:
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def create(self, name: str, content: bytes) -> bool:
        target = self._root / name
        draft = self._draft(target, content)
        try:
            os.link(draft, target)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        _sync_folder(target.parent)
        return True

    def put(self, name: str, content: bytes) -> None:
        target = self._root / name
        self._draft(target, content).replace(target)
        _sync_folder(target.parent)

    def _draft(self, target: Path, content: bytes) -> Path:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{uuid4().hex}.tmp")
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return draft

    def remove(self, name: str) -> None:
        (self._root / name).unlink(missing_ok=True)

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(entry.name for entry in (self._root / folder).iterdir() if not entry.name.startswith("."))
        except FileNotFoundError:
            return []


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class S3:
    """Objects under a prefix in S3. boto3 takes the endpoint and the key from the environment."""

    is_exclusive = True

    def __init__(self, bucket: str, prefix: str) -> None:
        import boto3
        from botocore.exceptions import ClientError

        self._s3 = boto3.client("s3")
        self._error = ClientError
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""

    def read(self, name: str) -> bytes | None:
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=self._prefix + name)
        except self._error as error:
            if _code(error) in ABSENT:
                return None
            raise
        content: bytes = answer["Body"].read()
        return content

    def create(self, name: str, content: bytes) -> bool:
        try:
            self._s3.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content, IfNoneMatch="*")
        except self._error as error:
            if _code(error) in TAKEN:
                # After a lost answer botocore repeats the put, which then finds its own object.
                return self.read(name) == content
            raise
        return True

    def put(self, name: str, content: bytes) -> None:
        self._s3.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content)

    def remove(self, name: str) -> None:
        self._s3.delete_object(Bucket=self._bucket, Key=self._prefix + name)

    def names(self, folder: str) -> list[str]:
        prefix = f"{self._prefix}{folder}/"
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        return sorted(entry["Key"][len(prefix) :] for page in pages for entry in page.get("Contents", ()))


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


class ArrowFolder:
    """A folder of another file system of pyarrow (hdfs, gs, abfs), without exclusive creation."""

    is_exclusive = False

    def __init__(self, location: str) -> None:
        from pyarrow import ArrowException, fs

        try:
            self._files, self._root = fs.FileSystem.from_uri(location)
        except (ArrowException, OSError, ValueError) as error:
            raise OptionError(f"option walLocation: {error}") from error
        self._selector = fs.FileSelector

    def read(self, name: str) -> bytes | None:
        try:
            with self._files.open_input_stream(f"{self._root}/{name}") as file:
                content: bytes = file.read()
                return content
        except FileNotFoundError:
            return None

    def create(self, name: str, content: bytes) -> bool:
        raise OptionError("option walLocation: mode=wal needs a shared folder or s3://; this one fits mode=driver only")

    def put(self, name: str, content: bytes) -> None:
        target = f"{self._root}/{name}"
        self._files.create_dir(target.rpartition("/")[0], recursive=True)
        draft = f"{target}.{uuid4().hex}.tmp"
        with self._files.open_output_stream(draft) as file:
            file.write(content)
        self._files.move(draft, target)

    def remove(self, name: str) -> None:
        if self.read(name) is not None:
            self._files.delete_file(f"{self._root}/{name}")

    def names(self, folder: str) -> list[str]:
        found = self._files.get_file_info(self._selector(f"{self._root}/{folder}", allow_not_found=True))
        return sorted(entry.base_name for entry in found if not entry.base_name.endswith(".tmp"))
