"""No import circles: two modules that import each other can only be understood, tested and compiled together.

Imports for types only and imports inside functions count, too: they hide a circle from Python, not from the reader.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "elasticq"


def names_imported(tree: ast.AST, name: str, *, is_package: bool) -> Iterator[str]:
    """The full name of everything that the module ``name`` imports, at any place in its text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                parents = name.split(".")
                kept = len(parents) - node.level + is_package
                origin = ".".join([*parents[:kept], *filter(None, [origin])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def module_names(package: Path) -> dict[str, Path]:
    """Each module of the package by its full name, which ``__init__.py`` shares with its folder."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def import_graph(package: Path) -> dict[str, set[str]]:
    """Module -> the modules of the same package that it imports: the deepest one that each imported name leads to."""
    paths = module_names(package)
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        graph[name] = set()
        for imported in names_imported(ast.parse(path.read_text()), name, is_package=path.name == "__init__.py"):
            target = imported
            while target and target not in paths:
                target = target.rpartition(".")[0]
            graph[name] |= {target} - {name, ""}
    return graph


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules of which each reaches each other one by imports (strongly connected components)."""
    reached = {module: _reachable(graph, module) for module in graph}
    groups = {tuple(sorted(other for other in reached[module] if module in reached[other])) for module in graph}
    return sorted(list(group) for group in groups if group)


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Every module that ``start`` imports, directly or through others; ``start`` itself only through a circle."""
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += graph[module]
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = import_graph(PACKAGE)
    assert len(graph) > 100
    assert circles(graph) == []


def write_package(folder: Path, modules: dict[str, str]) -> Path:
    """A package named tiny that holds these files."""
    package = folder / "tiny"
    for name, text in {"__init__.py": "", **modules}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return package


def test_circle_of_plain_type_only_and_lazy_imports_is_found(tmp_path: Path) -> None:
    modules = {
        "plain.py": "from tiny.typed import a",
        "typed.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tiny import lazy",
        "lazy.py": "def later():\n    import tiny.plain\n    return tiny.plain",
        "outside.py": "from tiny import plain, typed",
        "below.py": "import json",
    }
    assert circles(import_graph(write_package(tmp_path, modules))) == [["tiny.lazy", "tiny.plain", "tiny.typed"]]


def test_circle_by_relative_imports_through_a_package_is_found(tmp_path: Path) -> None:
    modules = {
        "room/__init__.py": "from .inner import a",
        "room/inner.py": "from ..other import b",
        "other.py": "from . import room",
    }
    assert circles(import_graph(write_package(tmp_path, modules))) == [["tiny.other", "tiny.room", "tiny.room.inner"]]


def test_two_circles_are_told_apart(tmp_path: Path) -> None:
    modules = {
        "a.py": "import tiny.b",
        "b.py": "import tiny.a",
        "c.py": "import tiny.d, tiny.a",
        "d.py": "import tiny.c",
    }
    assert circles(import_graph(write_package(tmp_path, modules))) == [["tiny.a", "tiny.b"], ["tiny.c", "tiny.d"]]


def test_imports_in_one_direction_are_no_circle(tmp_path: Path) -> None:
    modules = {"a.py": "from tiny import b\nfrom tiny.c import x", "b.py": "import tiny.c", "c.py": "import json, tiny"}
    assert circles(import_graph(write_package(tmp_path, modules))) == []
