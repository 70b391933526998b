"""The wheel with compiled modules, where a C compiler is: what it says it fits, and what runs where it does not fit."""

import re
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from elasticq import __version__
from tests.system.dist.conftest import bare_environment, run, serving
from tests.system.native.lists import listed, scripts_native

LACK = scripts_native().missing()
"""Without a C compiler make dist says so and makes the rest: one wheel, which the tests beside this one install."""


@pytest.fixture
def native(made: Path, tmp_path: Path) -> Path:
    """The wheel's content; without a C compiler the pure one's."""
    (wheel,) = made.glob("*-none-any.whl" if LACK else "*-cp3*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    return tmp_path / "site"


def version_of(programs: Path, site: Path, **more: str) -> str:
    environment = bare_environment(site, PYTHONPATH=str(site), **more)
    return run(str(programs / "python"), "-m", "elasticq", "--version", cwd=site, environment=environment)


def test_wheel_holds_a_library_for_each_folder_and_every_source(native: Path) -> None:
    libraries = {path.name for path in (native / "elasticq" / "_native").glob("*/*.so")}
    expected = {f"{scripts_native().part_of(path)}__mypyc{EXTENSION_SUFFIXES[0]}" for path in listed()}
    assert libraries == (set() if LACK else expected | {f"load{EXTENSION_SUFFIXES[0]}"})
    assert [path for path in listed() if not (native / path).is_file()] == []


def test_wheel_names_its_platform(made: Path) -> None:
    tags = {wheel.name.removesuffix(".whl").split("-", 2)[2] for wheel in made.glob("*.whl")}
    tags.remove("py3-none-any")
    assert len(tags) == (0 if LACK else 1)
    assert all(re.fullmatch(r"cp3\d+-cp3\d+-(manylinux_2_\d+|linux|macosx_\d+_\d+)_\w+", tag) for tag in tags)


def test_wheel_runs_compiled_and_pure_where_it_is_asked(programs: Path, native: Path) -> None:
    assert version_of(programs, native) == f"elasticq {__version__}, {'pure Python' if LACK else 'compiled'}\n"
    assert version_of(programs, native, ELASTICQ_PURE="1").startswith(f"elasticq {__version__}, pure Python")


def test_another_python_takes_the_sources(programs: Path, native: Path, tmp_path: Path) -> None:
    """Libraries of another version or platform have another suffix; Python passes over them."""
    for library in native.rglob("*.so"):
        library.rename(library.with_name(library.name.replace(EXTENSION_SUFFIXES[0], ".cpython-399-other.so")))
    assert version_of(programs, native) == f"elasticq {__version__}, pure Python\n"
    environment = bare_environment(tmp_path, PYTHONPATH=str(native))
    command = (str(programs / "python"), "-m", "elasticq", "--memory")
    with serving(*command, cwd=tmp_path, environment=environment) as url:
        run(str(programs / "elasticq"), "health", url, cwd=tmp_path)


def test_edited_source_is_what_runs(programs: Path, native: Path) -> None:
    with (native / listed()[0]).open("a") as source:
        source.write("# edited\n")
    expected = "pure Python" if LACK else f"pure Python ({listed()[0]} is not what was compiled"
    assert version_of(programs, native).startswith(f"elasticq {__version__}, {expected}")
