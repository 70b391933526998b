"""Compiled modules are used where they are what their sources say, and nowhere else; the sources run then."""

import sys
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import elasticq
from elasticq.native import FOLDER, LOADER, STAMP, VARIABLE, Build, CompiledFinder, settle

SUFFIX = EXTENSION_SUFFIXES[0]
HOT = "engine/hot.py"
KEY = "0123456789abcdef"


@pytest.fixture(autouse=True)
def _finders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [one for one in sys.meta_path if not isinstance(one, CompiledFinder)])
    for name in [name for name in sys.modules if name.startswith(f"elasticq.{FOLDER}")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(elasticq, FOLDER, raising=False)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """One compiled module and one that it imports. The library is empty: it is found, and cannot be loaded."""
    folder = tmp_path / "elasticq"
    (folder / "engine").mkdir(parents=True)
    (folder / HOT).write_text("from elasticq import cold\n")
    (folder / "cold.py").write_text("WHAT = 1\n")
    (folder / FOLDER / KEY).mkdir(parents=True)
    (folder / FOLDER / KEY / f"{LOADER}{SUFFIX}").touch()
    digests = [sha256((folder / name).read_bytes()).hexdigest() for name in (HOT, "cold.py")]
    stamp = f"# {KEY}\n{digests[0]} *elasticq/{HOT}\n{digests[1]}  elasticq/cold.py\n"
    (folder / STAMP).write_text(stamp)
    return folder


def test_finder_offers_no_other_modules() -> None:
    finder = CompiledFinder("/nowhere", frozenset(["elasticq.engine.hot"]))
    for name in ("elasticq", "elasticq.engine", "elasticq.engine.cold", "engine.hot"):
        assert finder.find_spec(name, None) is None


def test_finder_offers_the_folder_of_the_libraries_as_a_namespace(package: Path) -> None:
    spec = CompiledFinder(str(package / FOLDER / KEY), frozenset()).find_spec(f"elasticq.{FOLDER}", None)
    assert spec is not None
    assert spec.submodule_search_locations == [str(package / FOLDER / KEY)]


def test_nothing_is_done_where_nothing_is_compiled_for_this_python(package: Path) -> None:
    """Another platform, or another minor version, has libraries with another suffix."""
    before = list(sys.meta_path)
    (package / FOLDER / KEY / f"{LOADER}{SUFFIX}").rename(package / FOLDER / KEY / f"{LOADER}.cpython-399-other.so")
    build = settle(str(package), {})
    assert build == Build(is_compiled=False)
    assert str(build) == "pure Python"
    assert build.is_unwanted
    assert sys.meta_path == before


def test_variable_asks_for_the_sources(package: Path) -> None:
    before = list(sys.meta_path)
    build = settle(str(package), {VARIABLE: "1"})
    assert str(build) == "pure Python (ELASTICQ_PURE)"
    assert not build.is_unwanted
    assert sys.meta_path == before


@pytest.mark.parametrize("value", ["", "0"])
def test_variable_that_is_empty_or_0_asks_for_nothing(package: Path, value: str) -> None:
    assert settle(str(package), {VARIABLE: value}).reason != VARIABLE


def test_library_that_cannot_be_loaded_leaves_the_sources(package: Path) -> None:
    """As one that wants a newer C library."""
    before = list(sys.meta_path)
    build = settle(str(package), {})
    assert build.reason.startswith("the compiled modules cannot be loaded here: ")
    assert build.is_unwanted
    assert sys.meta_path == before


@pytest.mark.parametrize("name", [HOT, "cold.py"])
def test_changed_source_is_not_what_was_compiled(package: Path, name: str) -> None:
    (package / name).write_text("WHAT = 2\n")
    build = settle(str(package), {})
    assert str(build) == f"pure Python (elasticq/{name} is not what was compiled: run make native again)"
    assert build.is_unwanted


def test_removed_source_is_not_what_was_compiled(package: Path) -> None:
    (package / HOT).unlink()
    assert settle(str(package), {}).reason.startswith(f"elasticq/{HOT} is not what was compiled")


@pytest.mark.parametrize("content", [None, "", "# \n"])
def test_libraries_without_their_stamp_are_not_used(package: Path, content: str | None) -> None:
    """A build that was cut off leaves none."""
    (package / STAMP).unlink()
    if content is not None:
        (package / STAMP).write_text(content)
    assert settle(str(package), {}) == Build(is_compiled=False)


def test_names_of_builds() -> None:
    assert str(Build(is_compiled=True)) == "compiled"
    assert Build(is_compiled=True).name == "compiled"
    assert Build(is_compiled=False, reason="x").name == "pure"
