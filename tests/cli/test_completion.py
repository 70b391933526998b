"""Completion in a real bash, and what the scripts of all shells hold."""

import argparse
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from elasticq.cli import main
from elasticq.cli.completion import Command, commands_of
from elasticq.cli.main import _parser
from tests.server.process import PATIENCE_S

ASK = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); cd {directory}
_elasticq; printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def commands() -> dict[tuple[str, ...], Command]:
    return {each.path: each for each in commands_of(_parser())}


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["completion", "bash"]) == 0
    file = tmp_path / "script"
    file.write_text(capsys.readouterr().out)
    return file


def complete(script: Path, *words: str) -> set[str]:
    """What bash offers for the last word, in a folder with the file messages.jsonl."""
    (script.parent / "messages.jsonl").touch()
    program = ASK.format(script=script, words=shlex.join(["elasticq", *words]), directory=script.parent)
    done = subprocess.run(
        ["bash", "--norc", "-u", "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["que"], {"queues"}),
        (["queues", "re"], {"receive", "redrive", "reprioritise", "reschedule"}),
        (["queues", "receive", "--v"], {"--visibility-timeout"}),
        (["queues", "receive", "jobs", "--del"], {"--delete"}),
        (["queues", "peek", "jobs", "--state", ""], {"visible", "inflight", "delayed"}),
        (["--mem"], {"--memory"}),
        (["server", "--auth", "s"], {"strict"}),
        (["server", "--config", "m"], {"messages.jsonl"}),
        (["server", "--port", ""], set()),
        (["cluster", "t"], {"transfer"}),
        (["cluster", "status", "que"], set()),
        (["completion", ""], {"bash", "zsh", "fish", "-h", "--help"}),
        (["config", "check", "--h"], {"--help"}),
    ],
)
def test_bash_completes(script: Path, words: list[str], offered: set[str]) -> None:
    assert complete(script, *words) == offered


def test_bash_offers_each_command_and_option(script: Path, commands: dict[tuple[str, ...], Command]) -> None:
    assert len(commands) > 40
    program = "\n".join(
        ASK.format(script=script, words=shlex.join(["elasticq", *path, ""]), directory=script.parent) + "echo ."
        for path in commands
    )
    done = subprocess.run(["bash", "--norc", "-u", "-c", program], capture_output=True, text=True, check=True)
    answers = [set(each.split()) for each in done.stdout.split("\n.\n")]
    for command, offered in zip(commands.values(), answers, strict=False):
        wanted = {*command.commands, *(name for option in command.options for name in option.names)}
        assert wanted <= offered, command.path


def walk(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Each path with its options, as argparse itself knows them."""
    yield path, set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action.choices, dict):
            for name, below in action.choices.items():
                yield from walk(below, (*path, name))


def test_all_of_the_parser_s_options_are_known(commands: dict[tuple[str, ...], Command]) -> None:
    for path, options in walk(_parser()):
        assert options <= {name for option in commands[path].options for name in option.names}, path


@pytest.mark.tools
@pytest.mark.parametrize(
    ("shell", "program"),
    [
        ("fish", "source {script}; cd {directory}; complete -C 'elasticq {words}'"),
        (
            "zsh",
            "autoload -U compinit; compinit -u -D; source {script}; cd {directory}; words=(elasticq {words});"
            "CURRENT=$#words; compadd() {{ shift; print -l -- $@ }}; _describe() {{ print -l -- ${{found%%:*}} }};"
            "_files() {{ print -l -- * }}; _elasticq",
        ),
    ],
)
def test_other_shells_complete(shell: str, program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    (tmp_path / "messages.jsonl").touch()

    def offered(words: str) -> set[str]:
        text = program.format(script=script, words=words, directory=tmp_path)
        done = subprocess.run([shell, "-c", text], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return {line.split("\t")[0] for line in done.stdout.splitlines()}

    assert {"receive", "redrive"} <= offered("queues re")
    assert "server" not in offered("queues re")
    assert offered("server --auth ''" if shell == "zsh" else "server --auth ") == {"off", "lax", "strict"}
    assert "messages.jsonl" in offered("server --config m")
    assert "--visibility-timeout" in offered("queues receive --v")
