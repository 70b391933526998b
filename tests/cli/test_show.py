"""How commands talk where there is no terminal, and what Ctrl-C means between two steps."""

import ast
import json
import re
import signal
from itertools import pairwise
from pathlib import Path

import pytest

from elasticq.cli.show import Interrupt, bar, count, json_lines, one_line, outcome, table, table_lines

SOURCES = Path(__file__).parents[2] / "elasticq"


def test_columns_stand_under_their_heads(capsys: pytest.CaptureFixture[str]) -> None:
    table(("NAME", "MESSAGES"), [("jobs", "12"), ("a-longer-name", "3")])
    assert capsys.readouterr().out == "NAME           MESSAGES\njobs                 12\na-longer-name         3\n"


def test_texts_are_shortened_in_their_middle_until_a_table_fits() -> None:
    rows = [("a" * 60 + ".fifo", "1234567890", "b" * 36, "c" * 60), ("short", "1", "b", "")]
    heads = ("NAME", "SEQUENCE", "ID", "BODY")
    lines = table_lines(heads, rows, 80, ("ID",))
    assert max(map(len, lines)) == 80
    assert "b" * 36 in lines[1]
    assert "1234567890" in lines[1]
    assert re.search(r"a…a*\.fifo ", lines[1])
    assert [line.split() for line in table_lines(heads, rows)] == [list(heads), list(rows[0]), ["short", "1", "b"]]
    assert all(len(line) <= 10 for line in table_lines(("A", "B"), [("x" * 30, "y" * 30)], 10))
    assert table_lines(("LONG", "N"), [("x" * 30, "12345")], 5) == ["LONG      N", "xx…x  12345"]


def test_empty_columns_are_left_out_unless_there_are_no_rows() -> None:
    assert table_lines(("A", "B", "C"), [("1", "", "x"), ("2", "", "")]) == ["A  C", "1  x", "2"]
    assert table_lines(("A", "B"), []) == ["A  B"]


def test_one_thing_is_in_the_singular() -> None:
    assert [count(number, "message") for number in (0, 1, 2)] == ["0 messages", "1 message", "2 messages"]


PLURAL = re.compile(r"^ (?:\w+ )?(?:messages|queues|members|entries|consumers|topics|lines|groups|copies|votes)\b")


def test_no_command_writes_a_number_before_a_plural_by_itself() -> None:
    """So "1 messages" cannot come back: a number and its thing are written by ``count``."""
    found, seen = [], 0
    for file in sorted([*SOURCES.glob("cli/*.py"), *SOURCES.glob("storage/offline/*.py")]):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.JoinedStr):
                continue
            for before, after in pairwise(node.values):
                seen += 1
                if isinstance(before, ast.FormattedValue) and isinstance(after, ast.Constant):
                    found += [f"{file.name}:{node.lineno}"] * bool(PLURAL.match(str(after.value)))
    assert seen > 200
    assert found == []


def test_nothing_of_a_message_moves_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    assert one_line("ä \x1b[2J\r\n\u202e") == "ä \\x1b[2J\\r\\n\\u202e"
    table(("BODY",), [("a\x1b[1mb",)])
    assert "\x1b" not in capsys.readouterr().out


def test_documents_are_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    json_lines([{"a": "1\n2"}, {"b": None}])
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [{"a": "1\n2"}, {"b": None}]


def test_a_short_command_tells_nothing_of_its_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with bar("sending", None) as done:
        done(3)
    assert capsys.readouterr() == ("", "")


def test_a_long_command_tells_in_lines_how_much_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [100.0]
    monkeypatch.setattr("elasticq.cli.show.time.monotonic", lambda: now_s[0])
    with bar("sending", 1_000) as show, bar("looking", None) as look:
        for done in (10, 20, 30, 40):
            now_s[0] += 3
            show(done)
        look(7)
    assert capsys.readouterr() == (
        "",
        "elasticq: sending: 20 of 1000 done, 980 left\n"
        "elasticq: sending: 40 of 1000 done, 960 left\n"
        "elasticq: looking: 7 done\n",
    )


def test_the_first_interrupt_asks_and_the_second_one_ends() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        signal.raise_signal(signal.SIGTERM)
        assert interrupt.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_outcome_is_a_value_or_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    outcome(False, "deleted", "workers")
    outcome(True, "deleted", "workers")
    assert capsys.readouterr().out == 'workers\n{"deleted": "workers"}\n'
