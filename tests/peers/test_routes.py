"""Detours that partition tests put between two members."""

import json
from pathlib import Path

import pytest

from elasticq.peers.addresses import VARIABLE, route


def test_only_what_the_file_names_takes_another_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert route("a:1") == "a:1"
    file = tmp_path / "routes.json"
    file.write_text(json.dumps({"a:1": "b:2"}))
    monkeypatch.setenv(VARIABLE, str(file))
    assert [route("a:1"), route("c:3")] == ["b:2", "c:3"]
    file.write_text("{}")
    assert route("a:1") == "a:1", "read at each dial"
