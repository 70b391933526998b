"""What is not known is told with what was likely meant."""

import argparse
from collections.abc import Iterator

import pytest

from elasticq.cli import main
from elasticq.cli.main import _parser
from elasticq.cli.parser import DESTRUCTIVE, did_you_mean

OTHER_TOOLS = ("receive", "recieve", "get", "read", "consume", "pop", "move", "add", "describe", "list", "info", "pub")
"""Commands of other queues' tools, which change nothing or take one message."""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--prot", "1"], "elasticq server: error: unknown option --prot, did you mean --port?"),
        (["--prot=1"], "unknown option --prot, did you mean --port?"),
        (["server", "--admin-prot", "1"], "unknown option --admin-prot, did you mean --admin-port?"),
        (["--xyzzy"], "unknown option --xyzzy: elasticq server --help lists all"),
        (["--memory", "stray"], "elasticq server: error: unrecognized arguments: stray"),
        (["queues", "peek", "q", "--sate", "visible"], "elasticq queues peek: error: unknown option --sate, did you"),
        (["cluster", "status", "--amdin", "x"], "unknown option --amdin, did you mean --admin?"),
        (["queus", "ls"], "invalid choice: 'queus'"),
        (["queus", "ls"], "did you mean queues?"),
        (["queues", "pek"], "did you mean peek?"),
        (["queues", "recieve", "jobs"], "did you mean receive?"),
        (["queues", "purg", "jobs"], "did you mean purge?"),
        (["--auth", "strct"], "argument --auth: invalid choice: 'strct'"),
        (["--auth", "strct"], "did you mean strict?"),
    ],
)
def test_what_is_not_known_is_told_with_what_was_meant(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert told in capsys.readouterr().err


def misspellings(name: str) -> Iterator[str]:
    """Each letter left out, each pair exchanged, each letter replaced."""
    for at in range(len(name)):
        yield name[:at] + name[at + 1 :]
        yield name[:at] + "x" + name[at + 1 :]
        yield name[:at] + name[at + 1 : at + 2] + name[at] + name[at + 2 :]


def parsers(parser: argparse.ArgumentParser) -> Iterator[tuple[list[str], list[str]]]:
    """The names of commands, and of options, of the parser and of all below it."""
    commands = {
        name: sub for each in parser._actions if isinstance(each.choices, dict) for name, sub in each.choices.items()
    }
    yield list(commands), [name for name in parser._option_string_actions if name.startswith("--")]
    for command in commands.values():
        yield from parsers(command)


def test_no_misspelling_of_a_harmless_name_suggests_a_destructive_one() -> None:
    seen = 0
    for known in (names for both in parsers(_parser()) for names in both):
        for name in [each for each in known if each not in DESTRUCTIVE]:
            for given in {*misspellings(name), *OTHER_TOOLS}:
                suggested = did_you_mean(given, known).removeprefix(", did you mean ").removesuffix("?")
                assert suggested not in DESTRUCTIVE, (given, suggested)
                seen += bool(suggested)
    assert seen > 1_000


def test_destructive_names_are_the_parser_s_own_and_are_suggested_when_misspelt() -> None:
    known = {name for both in parsers(_parser()) for names in both for name in names}
    assert known >= DESTRUCTIVE
    for name in DESTRUCTIVE:
        assert did_you_mean(name[:-2] + name[-1], [name]) == f", did you mean {name}?"


def test_what_is_like_nothing_has_no_hint(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--auth", "0"])
    assert "did you mean" not in capsys.readouterr().err
