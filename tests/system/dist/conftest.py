"""What make dist makes, made once, and a virtual environment that has nothing but the wheel and what it asks for.

The requirements are those that are installed here, copied: no network is needed, and what is not asked for is missing.
"""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import Distribution, distribution
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXTRAS = frozenset(("speed", "hocon", "test"))
BUILD_S, PATIENCE_S = 300, 120
LISTENING = re.compile(r"elasticq listening on (http://127\.0\.0\.1:\d+)\n")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory."""
    into = tmp_path_factory.mktemp("made")
    run(sys.executable, str(ROOT / "scripts" / "dist.py"), "--into", str(into), cwd=ROOT, environment=dict(os.environ))
    return into


@pytest.fixture(scope="session")
def programs(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of the virtual environment."""
    place = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", "--without-pip", str(place), cwd=place)
    python = place / "bin" / "python"
    (wheel,) = made.glob("*-none-any.whl")
    pip = (sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index")
    run(*pip, str(wheel), cwd=place)
    (context,) = place.glob("lib/python*/site-packages")
    scripts = scripts_dist()
    (information,) = context.glob("elasticq-*.dist-info")
    xdist = distribution("pytest-xdist")
    wanted = [*scripts.requirements(Distribution.at(information), EXTRAS), xdist, *scripts.requirements(xdist)]
    for one in {found.metadata["Name"]: found for found in wanted}.values():
        scripts.copy_distribution(one, context)
    return place / "bin"


def scripts_dist() -> ModuleType:
    """Which knows what of a distribution is needed."""
    made = importlib.util.spec_from_file_location("elasticq_scripts_dist", ROOT / "scripts" / "dist.py")
    assert made is not None
    assert made.loader is not None
    module = importlib.util.module_from_spec(made)
    sys.path.insert(0, str(ROOT / "scripts"))  # it imports its neighbour
    try:
        made.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return module


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first start of the one file unpacks it, once for all tests."""
    return tmp_path_factory.mktemp("unpacked")


def bare_environment(home: Path, **more: str) -> dict[str, str]:
    """Nothing of this repository's; variables of servers and clients are left out, too."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", **more}


def run(*command: str, cwd: Path, environment: dict[str, str] | None = None) -> str:
    """Its standard output; fails with all that it said."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment or bare_environment(cwd),
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def serving(*command: str, cwd: Path, environment: dict[str, str]) -> Iterator[str]:
    """Its URL. Terminated at the end, which must go well."""
    ports = ("--port", "0", "--admin-port", "0")
    said = cwd / "stderr"
    with (
        said.open("wb") as stderr,
        subprocess.Popen(
            [*command, *ports], cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as server,
    ):
        try:
            assert server.stdout is not None
            found = LISTENING.fullmatch(server.stdout.readline())
            assert found is not None, said.read_text()
            yield found[1]
            server.terminate()
            server.communicate(timeout=PATIENCE_S)
            assert server.returncode == 0, said.read_text()
        finally:
            server.kill()
