"""Where the log lies: files that are created once, whole or not at all."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest

from elasticq.spark.options import OptionError
from elasticq.spark.stores import ArrowFolder, Folder, open_store


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if request.param == "folder":
        yield open_store(f"file://{tmp_path}")
        return
    server = request.getfixturevalue("moto_server")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.endpoint)
    bucket = f"logs-{uuid4().hex}"
    boto3.client("s3").create_bucket(Bucket=bucket)
    yield open_store(f"s3://{bucket}/of/spark")


def test_the_first_to_create_a_file_wins(store: Any) -> None:
    assert store.create("q/1-0.wal", b"first")
    assert not store.create("q/1-0.wal", b"second")
    assert store.read("q/1-0.wal") == b"first"


def test_a_put_replaces_and_a_removal_may_be_repeated(store: Any) -> None:
    store.put("q/1.ids", b"old")
    store.put("q/1.ids", b"new")
    assert store.read("q/1.ids") == b"new"
    store.remove("q/1.ids")
    store.remove("q/1.ids")
    assert store.read("q/1.ids") is None


def test_names_are_those_of_one_folder(store: Any) -> None:
    assert store.names("q") == []
    for name in ("q/2-0.wal", "q/1-0.wal", "other/1-0.wal"):
        store.create(name, b"")
    assert store.names("q") == ["1-0.wal", "2-0.wal"]


def test_of_many_writers_at_once_one_wins(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda number: store.create("q/1-0.wal", b"%d" % number), range(32)))
    assert won.count(True) == 1
    assert store.read("q/1-0.wal") == b"%d" % won.index(True)
    assert [path.name for path in (tmp_path / "q").iterdir()] == ["1-0.wal"]


def test_any_file_system_of_arrow_does_for_one_writer(tmp_path: Path) -> None:
    store = ArrowFolder(f"file://{tmp_path}")
    store.put("q/1-0.wal", b"content")
    assert store.names("q") == ["1-0.wal"]
    assert store.read("q/1-0.wal") == b"content"
    store.remove("q/1-0.wal")
    store.remove("q/1-0.wal")
    assert store.names("q") == store.names("nothing") == []
    with pytest.raises(OptionError, match="mode=driver"):
        store.create("q/1-0.wal", b"")


@pytest.mark.parametrize("location", ["", "nonsense://somewhere"])
def test_a_location_that_is_none_is_refused(location: str) -> None:
    with pytest.raises(OptionError, match="walLocation"):
        open_store(location)
