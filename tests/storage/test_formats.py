"""Directories that older versions wrote are opened, brought up to date and keep what was in them."""

import json
import shutil
from pathlib import Path

import pytest

from elasticq.node.node import Node
from elasticq.node.settings import NodeSettings
from elasticq.storage.directory import FORMAT, DataDirectory
from elasticq.storage.files import DirectoryFiles
from elasticq.storage.log.segments import SegmentLog
from elasticq.storage.rows.rows import Rows
from elasticq.storage.sqlite import load

FORMATS = sorted((Path(__file__).parent / "formats").glob("format-*.tar.gz"))
WRITTEN_MS = 1_795_244_731_000  # the retention of what is in them is 14 days


@pytest.mark.parametrize("archive", FORMATS, ids=lambda path: path.name)
def test_directory_of_an_older_version_keeps_its_messages(archive: Path, tmp_path: Path) -> None:
    """Written by: 20 sends, 5 received for 12 h, 2 of them deleted, rows stored, one more send, kill -9."""
    shutil.unpack_archive(archive, tmp_path)
    path = tmp_path / "data"
    before = json.loads((path / "format.json").read_text())
    assert before["format"] < FORMAT
    directory = DataDirectory(path)
    files = DirectoryFiles(directory.log)
    loaded = load(directory, SegmentLog(files), Rows())
    settings = NodeSettings(member_id=directory.member_id, voters=(directory.member_id,))
    node = Node(settings, loaded.durable, b"e" * 32, loaded.rows)
    node.start(1, WRITTEN_MS)
    node.synced(node.effects.token, 2)
    (queue,) = node.state.queues.values()
    assert (queue.name, queue.count, len(queue.contents)) == ("old", 19, 1)
    counts = queue.order.counts(node.status(2).time_ms)
    assert (counts.visible, counts.in_flight) == (16, 3)
    assert [content.body for content in queue.contents.values()] == ["in the log only"]
    files.close()
    directory.close()
    after = json.loads((path / "format.json").read_text())
    assert (after["format"], after["member_id"]) == (FORMAT, before["member_id"])


def test_there_is_a_directory_of_each_older_format() -> None:
    assert [path.name for path in FORMATS] == [f"format-{number}.tar.gz" for number in range(1, FORMAT)]
