"""Today's server starts on the directories of older versions, and all that lies in them is there."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from elasticq.peers import frames
from elasticq.peers.messages import PROTOCOL_MAX, PROTOCOL_MIN
from elasticq.replication.messages import PROTOCOL_VERSION
from elasticq.storage.directory import FORMAT
from elasticq.storage.log import segments as log
from elasticq.storage.rows import schema
from tests.system.cluster import clocked
from tests.system.upgrade.contents import Caller, check, counts

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "upgrade.md"
RICH = sorted(Path(__file__).parent.glob("format-*.tar.gz"))
SMALL = sorted((ROOT / "tests" / "storage" / "formats").glob("format-*.tar.gz"))
SMALL_WRITTEN_MS = 1_795_244_731_000
PATIENCE_S = 60

pytestmark = pytest.mark.pure


@contextmanager
def served(data: Path, written_ms: int) -> Iterator[Caller]:
    """A server on the directory whose clock goes on when it was written: nothing in it is too old."""
    skew = clocked.Skew(wall_ahead_ms=written_ms - time.time_ns() // 1_000_000)
    clocks = clocked.Clocks.make(data.parent / "clocks", skew)
    options = ("--port", "0", "--admin-port", "-1", "--data-dir", str(data))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(clocked.__file__), str(clocks.file), "server", *options]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            listening = re.search(r"listening on (\S+)", server.stdout.readline())
            assert listening is not None
            yield Caller(listening[1])
            server.terminate()
            assert server.wait(PATIENCE_S) == 0
        finally:
            server.kill()


def format_of(data: Path) -> int:
    return int(json.loads((data / "format.json").read_text())["format"])


@pytest.mark.parametrize("archive", RICH, ids=lambda path: path.name)
def test_everything_that_an_older_version_kept_is_there(archive: Path, tmp_path: Path) -> None:
    """Queues, attributes, tags, messages of every state and kind, leases, and what deduplication remembers."""
    shutil.unpack_archive(archive, tmp_path)
    written = json.loads((tmp_path / "written.json").read_text())
    data = tmp_path / "data"
    assert f"format-{format_of(data)}." in archive.name
    with served(data, written["ms"]) as call:
        check(call, written["facts"])
    assert format_of(data) == FORMAT


@pytest.mark.parametrize("archive", SMALL, ids=lambda path: path.name)
def test_directories_of_all_older_formats_are_served(archive: Path, tmp_path: Path) -> None:
    """tests/storage/test_formats.py tells what is in them."""
    shutil.unpack_archive(archive, tmp_path)
    with served(tmp_path / "data", SMALL_WRITTEN_MS) as call:
        assert counts(call, "old") == (16, 3, 0)
    assert format_of(tmp_path / "data") == FORMAT


def test_the_newest_format_and_the_one_before_it_have_a_rich_directory() -> None:
    """Whoever changes the format makes the directory of the version before: contents.py says how."""
    assert [path.name for path in RICH][-2:] == [f"format-{FORMAT - 1}.tar.gz", f"format-{FORMAT}.tar.gz"]


def test_the_page_tells_the_formats_of_this_version() -> None:
    row = re.compile(r"^\| ([^|`]+?) \|.*\| (\d+(?: to \d+)?) \|$", re.MULTILINE)
    found = dict(row.findall(PAGE.read_text()))
    assert found == {
        "data directory": str(FORMAT),
        "log": str(log.FORMAT),
        "rows, snapshots and backups": str(schema.FORMAT),
        "frames between members": str(frames._VERSION),
        "messages in frames": str(PROTOCOL_VERSION),
        "protocol": f"{PROTOCOL_MIN} to {PROTOCOL_MAX}",
    }


def test_the_page_has_a_row_for_each_format_of_the_directory() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| ", PAGE.read_text(), re.MULTILINE)
    assert [int(directory) for directory, _ in rows] == list(range(1, FORMAT + 1))
    assert int(rows[-1][1]) == schema.FORMAT
