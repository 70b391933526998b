"""The list of compiled modules keeps its rules: each would break silently, in the layout of what is stored or sent."""

import ast
from abc import ABCMeta
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from msgspec import Struct

from tests.system.native.lists import ROOT, listed, scripts_native

ROOMS = ("engine", "node", "replication", "wire", "runtime", "http", "model")
"""Whose every module is compiled, or is not for a reason."""
ENDLESS = {"count", "cycle", "repeat"}
MODULES, INTERPRETED = listed(), scripts_native().interpreted(ROOT)


def imported(path: str) -> object:
    return import_module(path.removesuffix(".py").replace("/", "."))


def structs(path: str) -> list[str]:
    """The classes of a module that inherit from msgspec.Struct."""
    module = imported(path)
    own = (each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__)
    return [each.__name__ for each in own if issubclass(each, Struct)]


def classes_with_keywords(source: str) -> list[str]:
    return [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef) and node.keywords]


def abstract(path: str) -> set[str]:
    """The classes of a module whose metaclass is ABCMeta."""
    module = imported(path)
    return {name for name, each in vars(module).items() if type(each) is ABCMeta and each.__module__ == module.__name__}


def asked_by_isinstance(source: str) -> set[str]:
    """The names of the classes that a module asks for by isinstance or issubclass."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    asked = (node for node in calls if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"))
    names = (name for node in asked for name in ast.walk(node.args[1]))
    return {ast.unparse(name).rpartition(".")[2] for name in names if isinstance(name, (ast.Name, ast.Attribute))}


def modules_with_functions() -> Iterator[str]:
    """Those of the rooms; a module that only declares is neither fast nor slow."""
    for room in ROOMS:
        for path in sorted((ROOT / "elasticq" / room).rglob("*.py")):
            nodes = ast.walk(ast.parse(path.read_text()))
            if any(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) for node in nodes):
                yield str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES)
def test_compiled_module_has_no_struct_and_no_class_with_keywords(path: str) -> None:
    assert structs(path) == []
    assert classes_with_keywords((ROOT / path).read_text()) == []


@pytest.mark.parametrize("path", MODULES)
def test_compiled_module_has_no_endless_generator(path: str) -> None:
    """mypyc makes a list of a generator expression at once, which for an endless one takes all memory."""
    found = [node for node in ast.walk(ast.parse((ROOT / path).read_text())) if isinstance(node, ast.GeneratorExp)]
    assert [ast.unparse(each) for each in found if ENDLESS & names_in(each)] == []


def names_in(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def test_no_module_that_is_not_compiled_asks_for_a_compiled_abstract_class() -> None:
    """Compiled subclasses share what ABCMeta remembers of their base, so that isinstance mixes them up there."""
    unsafe = set().union(*map(abstract, MODULES))
    assert {"FifoOrder", "SharedOrder", "SqsProtocol"} <= unsafe
    others = [path for path in (ROOT / "elasticq").rglob("*.py") if str(path.relative_to(ROOT)) not in MODULES]
    assert {str(path): found for path in others if (found := unsafe & asked_by_isinstance(path.read_text()))} == {}


@pytest.mark.parametrize("path", list(modules_with_functions()))
def test_module_of_these_rooms_is_compiled_or_says_why_not(path: str) -> None:
    assert (path in MODULES) + (path in INTERPRETED) + bool(structs(path)) == 1


def test_lists_name_each_module_once_and_none_that_is_gone() -> None:
    names = [*MODULES, *INTERPRETED]
    assert len(names) == len(set(names))
    assert [name for name in names if not (ROOT / name).is_file()] == []


def test_planted_struct_and_keywords_are_found() -> None:
    assert "SendMessage" in structs("elasticq/model/commands.py")
    assert asked_by_isinstance("isinstance(a, (B, c.D))\nissubclass(e, F)\nf(a, G)") == {"B", "c", "D", "F"}
    assert classes_with_keywords("class A(Base, frozen=True): ...\nclass B(Base): ...") == ["A"]


def test_sources_hold_what_the_compiled_modules_import_and_their_packages(tmp_path: Path) -> None:
    for name, text in {
        "elasticq/__init__.py": "", "elasticq/a/__init__.py": "", "elasticq/a/hot.py": "from elasticq.b import deep\n",
        "elasticq/b/__init__.py": "", "elasticq/b/deep.py": "def f():\n    import elasticq.c\n", "elasticq/c.py": "",
        "elasticq/d.py": "", "setup.cfg": "[elasticq:native]\nmodules =\n    # why\n    elasticq/a/hot.py\n",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = scripts_native().sources(tmp_path)
    assert found == [
        "elasticq/__init__.py", "elasticq/a/hot.py", "elasticq/b/__init__.py", "elasticq/b/deep.py", "elasticq/c.py",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "tag"),
    [
        ("(NEEDED) Shared library: [libc.so.6]\n Name: GLIBC_2.14 x\n Name: GLIBC_2.2.5", "manylinux_2_17_x86_64"),
        ("(NEEDED) Shared library: [libc.so.6]\n Name: GLIBC_2.34  Flags: none", "manylinux_2_34_x86_64"),
        ("(NEEDED) Shared library: [libpython3.11.so.1.0]\n Name: GLIBC_2.14", "linux_x86_64"),
    ],
)
def test_tag_of_a_wheel_is_the_newest_c_library_that_it_needs(said: str, tag: str) -> None:
    assert scripts_native().tag_of(said, "linux_x86_64") == tag
