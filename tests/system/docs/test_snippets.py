"""Every block of the documentation runs, or says why it does not."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from elasticq.cli.main import _parser
from tests.server.process import Server
from tests.system.docs.snippets import PAGES, RUN, SHELLS, SHOWN, Block, Stage, blocks_of, commands_of

BLOCKS = [block for page in PAGES for block in blocks_of(page)]
ELSEWHERE = {("spark.md", "python")}
RUNNING = {
    page.name: [
        block
        for block in blocks_of(page)
        if block.language in RUN and not block.reason and (page.name, block.language) not in ELSEWHERE
    ]
    for page in PAGES
}
EXCUSED = [block for block in BLOCKS if block.reason]
EXCUSED_MAX = 28
"""Few blocks need machines, a cluster or root; a new one that does not run is a decision."""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Server("--memory") as server:
        yield Stage(tmp_path, server.url, server.admin())


@pytest.mark.parametrize("page", [page for page, blocks in RUNNING.items() if blocks])
def test_every_block_of_the_page_runs(page: str, stage: Stage) -> None:
    for block in RUNNING[page]:
        stage.run(block)


def test_a_block_is_of_a_kind_that_runs_or_only_shows_something() -> None:
    assert [block.place for block in BLOCKS if block.language not in RUN | SHOWN and not block.reason] == []


def test_blocks_that_do_not_run_say_why_and_are_few() -> None:
    listed = [f"{block.place} {block.language}: {block.reason}" for block in EXCUSED]
    print(f"{len(listed)} of {len(BLOCKS)} blocks do not run:", *listed, sep="\n  ")
    assert [block.place for block in EXCUSED if len(block.reason.split()) < 2] == []
    assert len(EXCUSED) <= EXCUSED_MAX, listed


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language in SHELLS], ids=lambda block: block.place)
def test_shell_blocks_have_commands_that_there_are(block: Block) -> None:
    lines = block.code.splitlines()
    code = "\n".join(line[2:] for line in lines if line.startswith("$ ")) if block.language == "console" else block.code
    subprocess.run(["bash", "-n", "-c", code], check=True, timeout=30)
    for arguments in commands_of(block):
        _parse(block, arguments)


def _parse(block: Block, arguments: list[str]) -> None:
    if arguments[:1] == ["sim"]:
        return
    words = arguments if not arguments[0].startswith("-") else ["server", *arguments]
    try:
        _parser().parse_args(words)
    except SystemExit as error:
        if error.code:
            pytest.fail(f"{block.place}: elasticq {' '.join(arguments)}")


def test_the_first_examples_receive_what_they_sent(stage: Stage) -> None:
    [program] = [block for block in RUNNING["README.md"] if block.language == "python" and "boto3" in block.code]
    assert stage.run(program) == "hello\n"
    [script] = [block for block in RUNNING["README.md"] if "sqs receive-message" in block.code]
    assert '"Body": "hello"' in stage.run(script)


def test_a_block_that_fails_is_found(stage: Stage) -> None:
    for language, code in (
        ("python", "raise ValueError"),
        ("sh", "false\ntrue"),
        ("toml", "[http]\nprot = 1"),
        ("sh", "make none"),
    ):
        with pytest.raises(AssertionError, match="exits with"):
            stage.run(Block("page.md", 1, language, "", code))
    assert "elasticq listening" in stage.run(Block("page.md", 1, "sh", "", "elasticq --memory"))
    assert stage.run(Block("page.md", 1, "console", "", "$ echo a\nb\n")) == "a\n"


def test_excuses_and_languages_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "text\n\n```sh no-run: needs root\nsudo x\n```\n\n- a\n\n  ```python\n  if True:\n      pass\n  ```\n"
    )
    first, second = blocks_of(page)
    assert (first.line, first.language, first.reason, first.code) == (3, "sh", "needs root", "sudo x\n")
    assert (second.language, second.code) == ("python", "if True:\n    pass\n")
