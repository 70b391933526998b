"""The choice between compiled modules and sources, before any other module of elasticq is imported.

mypyc can compile the modules of ``[elasticq:native]`` in setup.cfg (``make native``, or a wheel for the platform).
Their libraries are in ``elasticq/_native``. They know each other's memory layout, so a process runs all of them or
none.

The process runs the sources if

- ``ELASTICQ_PURE=1`` asks for them: to debug, to trace, to patch in a test;
- a source differs from the compiled one. A compiled module depends on its own source and on the types and constants
  of the modules that it imports. The build writes the digests of all sources into ``native.sha256``. Without this
  check, an edited source would have no effect;
- the libraries cannot be loaded, for example because they need a newer C library.

Otherwise a finder in front of all others offers the compiled modules. If nothing is compiled for this Python, this
module only looks for one file.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from types import ModuleType
from typing import NamedTuple

VARIABLE = "ELASTICQ_PURE"
STAMP = "native.sha256"
"""The key of the build, then the digests of all sources of the compiled modules, with paths from the root.

The format is that of sha256sum. A star marks a compiled module.
"""
FOLDER = "_native"
LOADER = "load"
"""The library that starts the modules in the other libraries."""

_PACKAGE = "elasticq"


class Build(NamedTuple):
    """How this process runs. ``reason``: why the sources run; empty if nothing is compiled for this Python."""

    is_compiled: bool
    reason: str = ""

    @property
    def name(self) -> str:
        """Return one word for labels: compiled or pure."""
        return "compiled" if self.is_compiled else "pure"

    @property
    def is_unwanted(self) -> bool:
        """Return whether the sources run although ``ELASTICQ_PURE`` does not ask for that."""
        return not self.is_compiled and self.reason != VARIABLE

    def __str__(self) -> str:
        if self.is_compiled:
            return "compiled"
        return f"pure Python ({self.reason})" if self.reason else "pure Python"


class CompiledFinder:
    """A finder of ``sys.meta_path`` and a loader: it offers the compiled modules, and their libraries' namespace."""

    def __init__(self, folder: str, names: frozenset[str]) -> None:
        self._folder = folder
        self._names = names
        self._namespace = f"{_PACKAGE}.{FOLDER}"

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a compiled module. None for all others."""
        if name in self._names:
            spec = ModuleSpec(name, self, origin=self._library(name).__file__)  # type: ignore[arg-type]
            spec.has_location = True
            return spec
        if name == self._namespace:
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [self._folder]
            return spec
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Run the module, as each module that is written in C runs when it is created, and return it."""
        library = self._library(spec.name)
        init = getattr(library, f"init_{spec.name.replace('.', '___')}")
        return self._start(library.ensure_deps, init)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module has run."""

    def load(self) -> None:
        """Load all libraries. Raise ImportError if one does not fit here; then no module has run yet."""
        self._start: Callable[..., ModuleType] = import_module(f"{self._namespace}.{LOADER}").start
        for name in self._names:
            self._library(name)

    def _library(self, name: str) -> ModuleType:
        """Return the library with all modules of this one's folder."""
        return import_module(f"{self._namespace}.{'_'.join(name.split('.')[1:-1])}__mypyc")


def settle(package: str, environment: Mapping[str, str] = os.environ) -> Build:
    """Choose for the package in this folder and return the choice. Install the finder if compiled modules run."""
    if environment.get(VARIABLE, "") not in ("", "0"):
        return Build(is_compiled=False, reason=VARIABLE)
    key, lines = _stamped(package)
    folder = os.path.join(package, FOLDER, key)
    if not any(os.path.exists(os.path.join(folder, LOADER + suffix)) for suffix in EXTENSION_SUFFIXES):
        return Build(is_compiled=False)
    if changed := _first_changed(package, lines):
        return Build(is_compiled=False, reason=f"{changed} is not what was compiled: run make native again")
    compiled = (name[1 : -len(".py")].replace("/", ".") for _, name in lines if name.startswith("*"))
    finder = CompiledFinder(folder, frozenset(compiled))
    sys.meta_path.insert(0, finder)
    try:
        finder.load()
    except ImportError as error:
        sys.meta_path.remove(finder)
        return Build(is_compiled=False, reason=f"the compiled modules cannot be loaded here: {error}")
    return Build(is_compiled=True)


def _stamped(package: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the key of the build, and the digest and the name of each source; the name follows a star or a space."""
    try:
        with open(os.path.join(package, STAMP), encoding="utf-8") as file:
            first, *lines = file.read().splitlines()
    except (OSError, ValueError):
        return "", []
    pairs = (line.partition(" ") for line in lines)
    return first.removeprefix("# "), [(digest, name) for digest, _, name in pairs]


def _first_changed(package: str, lines: list[tuple[str, str]]) -> str:
    """Return the name of the first source that is not what was compiled, or an empty text."""
    from hashlib import sha256

    root = os.path.dirname(package)
    for digest, marked in lines:
        name = marked[1:]
        try:
            with open(os.path.join(root, name), "rb") as source:
                is_same = sha256(source.read()).hexdigest() == digest
        except OSError:
            is_same = False
        if not is_same:
            return name
    return ""
