"""HOCON as ElasticMQ reads it: durations, includes, and the extra that it needs."""

import builtins
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from dateutil.relativedelta import relativedelta

from elasticq.server.elasticmq import read
from elasticq.server.hocon import MigrationError, _plain


def sections(tmp_path: Path, text: str, *properties: tuple[str, str]) -> dict[str, dict[str, Any]]:
    file = tmp_path / "elasticmq.conf"
    file.write_text(text)
    return read(file, properties).sections


@pytest.mark.parametrize("value", [timedelta(minutes=2), relativedelta(minutes=2), relativedelta(seconds=120)])
def test_a_duration_is_the_same_with_dateutil_and_without(value: object) -> None:
    assert _plain({"delay": value}) == {"delay": "120000 ms"}


def test_the_environment_is_substituted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQ_PORT", "9401")
    found = sections(tmp_path, "rest-sqs.bind-port = 1\nrest-sqs.bind-port = ${?MQ_PORT}\naws.region = ${?NOT_SET}")
    assert found["http"]["port"] == 9401
    assert "region" not in found["node"]


def test_included_files_are_read_and_nothing_else_is(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "more.conf").write_text('include file("last.conf")\n')
    (tmp_path / "sub" / "last.conf").write_text("aws.region = here\n")
    text = 'include "sub/more.conf"\ninclude "missing"\ninclude classpath("reference.conf") # defaults\n'
    assert sections(tmp_path, text)["node"]["region"] == "here"
    for line in (
        'include url("http://127.0.0.1:1/x")',
        'include package("a:b")',
        'include required(file("none.conf"))',
    ):
        with pytest.raises(MigrationError, match=r"only files|is required"):
            sections(tmp_path, line)
    with pytest.raises(MigrationError, match="files deep"):
        sections(tmp_path, 'include "elasticmq.conf"')


def test_without_pyhocon_its_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *arguments: Any) -> Any:
        if name.startswith("pyhocon"):
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MigrationError, match=r"pip install --find-links dist 'elasticq\[hocon\]==.*'"):
        sections(tmp_path, "")
