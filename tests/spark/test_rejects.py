"""The file of rows that could not be sent: whole, or not there."""

import json
from pathlib import Path

from elasticq.spark.rejects import Rejects


def test_rejects_appear_whole_at_the_end_or_not_at_all(tmp_path: Path) -> None:
    Rejects(str(tmp_path), "none").close()
    rejects = Rejects(str(tmp_path / "new"), "task")
    rejects.add({"body": "ä", "binary": b"\xff"}, "Code", "why")
    assert list((tmp_path / "new").glob("*.jsonl")) == []
    rejects.close()
    (line,) = (tmp_path / "new" / "task.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "error": "Code", "message": "why", "row": {"body": "ä", "binary": {"base64": "/w=="}},
    }  # fmt: skip
