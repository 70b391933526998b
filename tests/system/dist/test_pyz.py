"""elasticq.pyz: run by a Python that has nothing installed, asked by clients of the clean environment."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from elasticq import __version__
from tests.system.dist.conftest import ROOT, bare_environment, run, serving
from tests.system.docs.snippets import Block, blocks_of
from tests.system.native.lists import scripts_native

README = "http://127.0.0.1:9324"
PYTHON = (sys.executable, "-I")
EXAMPLES = [
    block
    for block in blocks_of(ROOT / "README.md")
    if block.language in ("python", "sh") and not block.reason and not block.code.startswith("make")
]


@pytest.fixture(scope="module")
def served(made: Path, unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("served")
    environment = bare_environment(directory, SHIV_ROOT=str(unpacked))
    with serving(*PYTHON, str(made / "elasticq.pyz"), "--memory", cwd=directory, environment=environment) as url:
        yield url


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.place)
def test_examples_of_the_readme_run_against_it(
    example: Block, served: str, programs: Path, tmp_path: Path
) -> None:
    path = f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin"
    environment = bare_environment(tmp_path, AWS_ENDPOINT_URL_SQS=served, AWS_PAGER="") | {"PATH": path}
    code = example.code.replace(README, served)
    command = [str(programs / "python"), "-c", code] if example.language == "python" else ["bash", "-euc", code]
    run(*command, cwd=tmp_path, environment=environment)


def test_elasticmqs_configuration_is_served_as_java_served_it(made: Path, unpacked: Path, tmp_path: Path) -> None:
    (tmp_path / "elasticmq.conf").write_text('queues { "orders" { delay = 2 seconds }, dead { } }\n')
    environment = bare_environment(tmp_path, SHIV_ROOT=str(unpacked))
    pyz, file = str(made / "elasticq.pyz"), "-Dconfig.file=elasticmq.conf"
    bind = "-Drest-sqs.bind-hostname=127.0.0.1"
    with serving(*PYTHON, pyz, file, bind, cwd=tmp_path, environment=environment) as url:
        ls = (*PYTHON, pyz, "queues", "ls", "--url", url)
        found = run(*ls, cwd=tmp_path, environment=environment)
    assert "orders" in found
    assert "dead" in found


def test_unpacked_file_is_only_read_at_later_starts(made: Path, unpacked: Path, served: str, tmp_path: Path) -> None:
    """A container's root may be read-only."""
    before = {path: path.stat().st_mtime_ns for path in unpacked.rglob("*") if path.is_file()}
    environment = bare_environment(tmp_path, SHIV_ROOT=str(unpacked))
    del environment["PYTHONDONTWRITEBYTECODE"]
    said = run(*PYTHON, str(made / "elasticq.pyz"), "--version", cwd=tmp_path, environment=environment)
    assert said == f"elasticq {__version__}, {'pure Python' if scripts_native().missing() else 'compiled'}\n"
    assert {path: path.stat().st_mtime_ns for path in unpacked.rglob("*") if path.is_file()} == before
