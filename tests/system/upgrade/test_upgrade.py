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
from tests.system.upgrade.contents import Caller, check

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "upgrade.md"
RICH = sorted(Path(__file__).parent.glob("format-*.tar.gz"))
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
    return int(json.loads((data / "format.json").read_text())["elasticq"])


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


def test_there_is_a_directory_of_each_format() -> None:
    """Whoever raises the format keeps the directories of the formats before; contents.py makes a new one."""
    assert [path.name for path in RICH] == [f"format-{number}.tar.gz" for number in range(1, FORMAT + 1)]


def test_the_page_lists_the_formats_of_this_version() -> None:
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
