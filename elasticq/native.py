"""The choice between compiled modules and sources, before any other module of elasticq is imported.

mypyc can compile the modules of ``[elasticq:native]`` in setup.cfg (``make native``, or a wheel for the platform).
Their libraries are next to their sources, and Python's import prefers them. All of them are parts of one library and
know each other's memory layout, so a process runs all of them or none.

The process runs the sources if

- ``ELASTICQ_PURE=1`` asks for them: to debug, to trace, to patch in a test;
- a source differs from the compiled one. A compiled module depends on its own source and on the types and constants
  of the modules that it imports. The build writes the digests of all sources into ``native.sha256``. Without this
  check, an edited source would have no effect;
- the libraries cannot be loaded, for example because they need a newer C library.

Then a finder in front of all others offers only the sources of elasticq. If nothing is compiled for this Python, this
module only looks for one file.
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
"""The digests of all sources of the compiled modules, in the format of sha256sum, with paths from the root."""
LIBRARY = "_native__mypyc"
"""The library with the code of all compiled modules. The library of each module only refers to it."""

_PACKAGE = "elasticq"


class Build(NamedTuple):
    """How this process runs. ``reason``: why existing compiled modules are not used, else empty."""

    is_compiled: bool
    reason: str = ""

    @property
    def name(self) -> str:
        """Return one word for labels: compiled or pure."""
        return "compiled" if self.is_compiled else "pure"

    @property
    def is_unwanted(self) -> bool:
        """Return whether compiled modules are unused, although ``ELASTICQ_PURE`` does not ask for that."""
        return self.reason not in ("", VARIABLE)

    def __str__(self) -> str:
        if self.is_compiled:
            return "compiled"
        return f"pure Python ({self.reason})" if self.reason else "pure Python"


class SourceFinder:
    """A finder of ``sys.meta_path`` that finds only the sources of elasticq's modules."""

    def __init__(self) -> None:
        self._finders: dict[str, FileFinder] = {}

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a module's source. None for a module of another package, or without a source."""
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
    """Choose for the package in this folder and return the choice. Install the finder if the sources must run."""
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
    """Return how the sources differ from the compiled ones; empty if they do not."""
    from hashlib import sha256

    try:
        with open(os.path.join(package, STAMP), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return f"{_PACKAGE}/{STAMP} is missing, so it is unknown what was compiled: run make native again"
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
