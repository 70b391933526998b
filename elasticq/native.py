"""Decides, before any other module of elasticq is imported, whether this process runs compiled modules or sources.

The modules of ``[elasticq:native]`` in setup.cfg can be compiled by mypyc (``make native``, or a wheel for the
platform). Their libraries lie beside their sources, and Python's import prefers them. All of them belong to one
library and know each other's memory layout, so a process runs all of them or none.

None are used, and the sources run, if

- ``ELASTICQ_PURE=1`` asks for that: to debug, to trace, to patch in a test;
- a source is not what was compiled. A compiled module depends on its own source and on the types and constants of
  those that it imports; the build writes the digests of all of them into ``native.sha256``. This is the trap of
  libraries that lie in the tree where people edit: they would go on doing what the sources no longer say;
- the libraries cannot be loaded, as those of a newer C library on an older machine.

Then a finder in front of all others offers the sources of elasticq only. Where nothing is compiled for this Python,
nothing is done, and this module costs one look for one file.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import NamedTuple

VARIABLE = "ELASTICQ_PURE"
STAMP = "native.sha256"
"""The digests of all sources that the compiled modules were made of, as sha256sum writes them, paths from the root."""
LIBRARY = "_native__mypyc"
"""The one library that holds the code of all compiled modules; each module's own is a door to it."""

_PACKAGE = "elasticq"


class Build(NamedTuple):
    """How this process runs; ``reason``: why compiled modules that are there are not used, else empty."""

    is_compiled: bool
    reason: str = ""

    @property
    def name(self) -> str:
        """One word, for labels: compiled or pure."""
        return "compiled" if self.is_compiled else "pure"

    @property
    def is_unwanted(self) -> bool:
        """Whether compiled modules are there and nobody asked to leave them."""
        return self.reason not in ("", VARIABLE)

    def __str__(self) -> str:
        if self.is_compiled:
            return "compiled"
        return f"pure Python ({self.reason})" if self.reason else "pure Python"


class SourceFinder:
    """A finder of ``sys.meta_path`` that knows modules of elasticq by their sources only."""

    def __init__(self) -> None:
        self._finders: dict[str, FileFinder] = {}

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return where a source lies; None for what is not elasticq's or has none, which other finders may know."""
        if path is None or not name.startswith(f"{_PACKAGE}."):
            return None
        for directory in path:
            finder = self._finders.get(directory)
            if finder is None:
                finder = self._finders[directory] = FileFinder(directory, (SourceFileLoader, SOURCE_SUFFIXES))
            spec = finder.find_spec(name, target)
            if spec is not None and spec.loader is not None:  # a folder without __init__ has no loader
                return spec
        return None


def settle(package: str, environment: Mapping[str, str] = os.environ) -> Build:
    """Choose for the package in this folder, put the finder in its place if sources are to run, and tell."""
    build = _choose(package, environment)
    if build.reason:
        sys.meta_path.insert(0, SourceFinder())
    return build


def _choose(package: str, environment: Mapping[str, str]) -> Build:
    if not any(os.path.exists(os.path.join(package, LIBRARY + suffix)) for suffix in EXTENSION_SUFFIXES):
        return Build(is_compiled=False)
    if environment.get(VARIABLE, "") not in ("", "0"):
        return Build(is_compiled=False, reason=VARIABLE)
    reason = stale(package)
    if not reason:
        try:
            import_module(f"{_PACKAGE}.{LIBRARY}")
        except ImportError as error:
            reason = f"the compiled modules cannot be loaded here: {error}"
    return Build(is_compiled=not reason, reason=reason)


def stale(package: str) -> str:
    """Return how the sources differ from those that were compiled, empty if they do not."""
    from hashlib import sha256

    try:
        with open(os.path.join(package, STAMP), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return f"{_PACKAGE}/{STAMP} is missing, so nobody knows what was compiled: run make native again"
    root = os.path.dirname(package)
    for line in lines:
        digest, _, name = line.partition("  ")
        try:
            with open(os.path.join(root, name), "rb") as source:
                is_same = sha256(source.read()).hexdigest() == digest
        except OSError:
            is_same = False
        if not is_same:
            return f"{name} is not what was compiled: run make native again"
    return ""
