"""docs/configuration.md: its tables are made from the settings, their comments in conf/elasticq.toml, and the options.

With ELASTICQ_WRITE_DOCS set they are written, else they must say the same.
"""

import argparse
import os
import re
from pathlib import Path
from typing import Any

import msgspec

from elasticq.cli.main import _parser
from elasticq.server.settings import SECTIONS, Settings

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "configuration.md"
TABLES = {"queues", "topics"}
"""Sections of tables with names of the user's own; the page tells of them in its text."""
SETTING = re.compile(r"# ([a-z_]+) = (.+)")


def comments() -> dict[str, str]:
    """What conf/elasticq.toml says of each setting, by section.key; a paragraph may be about several."""
    found: dict[str, str] = {}
    section, words, names = "", [], []
    for line in [*(ROOT / "conf" / "elasticq.toml").read_text().splitlines(), ""]:
        if header := re.fullmatch(r"\[([a-z_]+)\]", line):
            section = header[1]
        elif setting := SETTING.fullmatch(line):
            names.append(f"{section}.{setting[1]}")
        elif line.startswith("#"):
            words.append(line.removeprefix("#").strip())
        else:
            found |= dict.fromkeys(names, " ".join(words))
            words, names = [], []
    return found


def settings_table() -> str:
    told, defaults = comments(), msgspec.to_builtins(Settings())
    parts = []
    for section in SECTIONS:
        if section in TABLES:
            continue
        rows = [
            f"| `{key}` | `{msgspec.json.encode(value).decode()}` | {_cell(told[f'{section}.{key}'])} |"
            for key, value in defaults[section].items()
        ]
        parts.append(
            "\n".join([f"### [{section}]", "", "| setting | default | meaning |", "| --- | --- | --- |", *rows])
        )
    return "\n\n".join(parts)


def options_table() -> str:
    server = _commands(_parser())["server"]
    rows = [
        f"| `{', '.join(action.option_strings)}{_value(action)}` | {_cell(action.help or '')} |"
        for action in server._actions
        if action.option_strings and not isinstance(action, argparse._HelpAction)
    ]
    return "\n".join(["| option | meaning (default) |", "| --- | --- |", *rows])


def _commands(parser: argparse.ArgumentParser) -> dict[str, Any]:
    [choices] = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(choices)


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    value = action.metavar or "\\|".join(map(str, action.choices or [action.dest.upper()]))
    return f" {value}"


def _cell(text: str) -> str:
    """A table's cell: a bar would end it, and Markdown would take brackets for links and angles for tags."""
    return text.replace("|", "\\|").replace("[[", "\\[[").replace("<", "&lt;")


def with_tables(text: str) -> str:
    for name, table in (("options", options_table()), ("settings", settings_table())):
        begin, end = f"<!-- {name}: made by tests/system/docs/test_configuration.py -->", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        assert found, f"{DOCUMENT.name} has no place for its {name}"
        text = f"{before}{begin}\n\n{table}\n\n{end}{after}"
    return text


def test_every_setting_is_explained_once() -> None:
    expected = {
        f"{section}.{key}"
        for section, kind in SECTIONS.items()
        if section not in TABLES
        for key in kind.__struct_fields__
    }
    assert {name for name, told in comments().items() if told} == expected


def test_the_page_says_what_the_settings_are() -> None:
    text = with_tables(DOCUMENT.read_text())
    if os.environ.get("ELASTICQ_WRITE_DOCS"):
        DOCUMENT.write_text(text)
    assert DOCUMENT.read_text() == text, "ELASTICQ_WRITE_DOCS=1 pytest tests/system/docs/test_configuration.py"
