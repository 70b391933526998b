"""Compiled modules are used where they are what their sources say, and nowhere else; the sources run then."""

import importlib.util
import sys
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path

import pytest

import elasticq
from elasticq.native import LIBRARY, STAMP, VARIABLE, Build, SourceFinder, settle, stale

SUFFIX = EXTENSION_SUFFIXES[0]
HOT = "engine/hot.py"


@pytest.fixture(autouse=True)
def _finders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """One compiled module beside its source. The libraries are empty: they are found, and cannot be loaded."""
    folder = tmp_path / "elasticq"
    source = folder / HOT
    source.parent.mkdir(parents=True)
    source.write_text("WHAT = 'source'\n")
    for library in (folder / f"{LIBRARY}{SUFFIX}", source.with_name(f"hot{SUFFIX}")):
        library.touch()
    (folder / STAMP).write_text(f"{sha256(source.read_bytes()).hexdigest()}  elasticq/{HOT}\n")
    return folder


def test_finder_offers_the_source_that_lies_beside_a_library(package: Path) -> None:
    place = [str(package / "engine")]
    usual = PathFinder.find_spec("elasticq.engine.hot", place)
    assert usual is not None
    assert usual.origin == str(package / f"engine/hot{SUFFIX}")
    found = SourceFinder().find_spec("elasticq.engine.hot", place)
    assert found is not None
    assert found.origin == str(package / HOT)
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    assert module.WHAT == "source"


def test_finder_leaves_other_packages_and_what_has_no_source_to_others(package: Path) -> None:
    finder = SourceFinder()
    assert finder.find_spec("other.engine.hot", [str(package / "engine")]) is None
    assert finder.find_spec("elasticq", None) is None
    assert finder.find_spec("elasticq.engine.missing", [str(package / "engine")]) is None
    assert finder.find_spec("elasticq.engine", [str(package)]) is None, "a folder without __init__"


def test_nothing_is_done_where_nothing_is_compiled_for_this_python(package: Path) -> None:
    """Another platform, or another minor version, has libraries with another suffix."""
    before = list(sys.meta_path)
    (package / f"{LIBRARY}{SUFFIX}").rename(package / f"{LIBRARY}.cpython-399-other.so")
    for environment in ({}, {VARIABLE: "1"}):
        build = settle(str(package), environment)
        assert build == Build(is_compiled=False)
        assert str(build) == "pure Python"
    assert sys.meta_path == before


def test_variable_asks_for_the_sources(package: Path) -> None:
    build = settle(str(package), {VARIABLE: "1"})
    assert str(build) == "pure Python (ELASTICQ_PURE)"
    assert not build.is_unwanted
    assert isinstance(sys.meta_path[0], SourceFinder)


@pytest.mark.parametrize("value", ["", "0"])
def test_variable_that_is_empty_or_0_asks_for_nothing(package: Path, value: str) -> None:
    assert settle(str(package), {VARIABLE: value}).reason != VARIABLE


def test_library_that_cannot_be_loaded_leaves_the_sources(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that wants a newer C library."""
    monkeypatch.setattr(elasticq, "__path__", [str(package)])
    monkeypatch.delitem(sys.modules, f"elasticq.{LIBRARY}", raising=False)
    build = settle(str(package), {})
    assert build.reason.startswith("the compiled modules cannot be loaded here: ")
    assert build.is_unwanted
    assert isinstance(sys.meta_path[0], SourceFinder)


def test_changed_source_is_not_what_was_compiled(package: Path) -> None:
    assert stale(str(package)) == ""
    (package / HOT).write_text("WHAT = 'edited'\n")
    build = settle(str(package), {})
    assert str(build) == f"pure Python (elasticq/{HOT} is not what was compiled: run make native again)"
    assert build.is_unwanted
    assert isinstance(sys.meta_path[0], SourceFinder)


def test_removed_source_is_not_what_was_compiled(package: Path) -> None:
    (package / HOT).unlink()
    assert stale(str(package)).startswith(f"elasticq/{HOT} is not what was compiled")


def test_libraries_without_their_stamp_are_not_used(package: Path) -> None:
    """A build that was cut off leaves none."""
    (package / STAMP).unlink()
    assert "native.sha256 is missing" in settle(str(package), {}).reason


def test_names_of_builds() -> None:
    assert str(Build(is_compiled=True)) == "compiled"
    assert Build(is_compiled=True).name == "compiled"
    assert Build(is_compiled=False, reason="x").name == "pure"
