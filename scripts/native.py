"""Compiler of the hot path. mypyc translates the modules of [elasticq:native] in setup.cfg to C; gcc makes libraries.

``make native`` puts the libraries next to their sources, where Python prefers them. If ELASTICQ_NATIVE is 1, setup.py
puts them into a wheel. Both take them from the folder build/native/KEY. KEY is a digest of everything that the
libraries depend on. So nothing is compiled twice, and the tested libraries are the ones that are shipped. The module
elasticq/native.py decides at the import of elasticq whether Python uses them.
"""

import argparse
import ast
import configparser
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "elasticq"
GROUP = "elasticq._native"
"""mypyc's name for the library that holds all code: elasticq/_native__mypyc and the platform's suffix."""
STAMP = "native.sha256"
WORK = "work"
"""The folder of C files and objects, next to the folder of unfinished libraries."""
OPTIMIZATION = "3"
"""gcc's level. With 1, compiling takes three quarters of the time; a send costs the same, a cycle about 10 % more."""
# One source serves every version of Python, so mypy checks it for the oldest one, as make check does.
CHECKED_AS = ("--strict", "--python-version", "3.11")
SYSTEM_LIBRARIES = re.compile(r"(libc|libm|libpthread|libdl|librt)\.so\.\d+|ld-linux[\w-]*\.so\.\d+")
"""Libraries that a wheel for any Linux with a certain C library may need."""
OLDEST_GLIBC = (2, 17)
"""The C library of the oldest manylinux tag in use. Libraries that need an older one get this tag."""


# --- the list -----------------------------------------------------------------------


def modules(root: Path = ROOT) -> list[str]:
    """Return the sources that are compiled, as paths from the root."""
    return _listed(root, "modules")


def interpreted(root: Path = ROOT) -> list[str]:
    """Return the sources that could be compiled and are not, as paths from the root."""
    return _listed(root, "interpreted")


def _listed(root: Path, name: str) -> list[str]:
    config = configparser.ConfigParser()
    config.read(root / "setup.cfg", encoding="utf-8")
    return config["elasticq:native"][name].split()


def sources(root: Path = ROOT) -> list[str]:
    """Return the compiled modules and all modules of elasticq that they import, directly or not.

    mypyc uses types and constants of the imported ones.
    """
    found: set[str] = set()
    unread = set(modules(root))
    while unread:
        path = unread.pop()
        found.add(path)
        unread |= set(imported(root, path)) - found
    return sorted(found)


def imported(root: Path, path: str) -> Iterator[str]:
    """Yield the sources of elasticq that a source imports, and the ``__init__.py`` of their packages."""
    for node in ast.walk(ast.parse((root / path).read_bytes())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            parts = name.split(".")
            for length in range(1, len(parts) + 1) if parts[0] == PACKAGE else ():
                stem = "/".join(parts[:length])
                yield from (one for one in (f"{stem}.py", f"{stem}/__init__.py") if (root / one).is_file())


# --- what is needed -----------------------------------------------------------------


def missing() -> str:
    """Return a sentence about what this machine lacks to compile, or an empty text if it lacks nothing."""
    if os.name != "posix":
        return f"{platform.system()} is not supported, only Linux and macOS are"
    if find_spec("mypyc") is None or find_spec("setuptools") is None:
        return "mypy and setuptools are not installed for this Python: make native and make dist install them"
    if shutil.which(compiler()) is None:
        return f"there is no C compiler ({compiler()}); Debian and Ubuntu have it in the package gcc"
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.is_file():
        return f"there is no {header}; Debian and Ubuntu have it in the package python3-dev"
    return ""


def compiler() -> str:
    return (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]


# --- compile ------------------------------------------------------------------------


def stamp(root: Path) -> str:
    """Return the digests of all sources, in the form that elasticq/native.py compares."""
    return "".join(f"{hashlib.sha256((root / name).read_bytes()).hexdigest()}  {name}\n" for name in sources(root))


def key(root: Path) -> str:
    """Return a digest of everything that the libraries depend on: sources, list, this program, and the tools."""
    said = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    parts = [
        stamp(root), *modules(root), Path(__file__).read_text(encoding="utf-8"), sys.version,
        sysconfig.get_platform(), version("mypy"), version("setuptools"), said, os.environ.get("CFLAGS", ""),
    ]  # fmt: skip
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def build(root: Path = ROOT) -> Path:
    """Compile unless that was done before; return the folder with libraries and stamp, laid out like the package.

    Exit the process if the compilation fails or a source changes meanwhile.
    """
    folder = root / "build" / "native"
    made = folder / key(root)
    if made.is_dir():
        return made
    before = stamp(root)
    shutil.rmtree(folder, ignore_errors=True)
    unfinished = folder / "unfinished"
    (unfinished / PACKAGE).mkdir(parents=True)
    started_s = time.monotonic()
    print(f"compiling {len(modules(root))} modules, which takes a minute or two", file=sys.stderr)
    done = subprocess.run(
        [sys.executable, __file__, "--compile-into", unfinished.relative_to(root)],
        cwd=root, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}the compilation failed; see above")
    if stamp(root) != before:
        sys.exit("a source was changed during the compilation; run it again")
    (unfinished / PACKAGE / STAMP).write_text(before, encoding="utf-8")
    unfinished.rename(made)
    shutil.rmtree(folder / WORK)
    print(f"compiled in {time.monotonic() - started_s:.0f} s", file=sys.stderr)
    return made


def environment() -> dict[str, str]:
    """Return the environment of the compilation.

    It fixes the order of hashes, and keeps the paths of this Python's own libraries out of ours.
    """
    linker = str(sysconfig.get_config_var("LDSHARED")).split()
    without_paths = [word for word in linker if not word.startswith(("-L", "-Wl,-rpath"))]
    return {"LDSHARED": " ".join(without_paths)} | os.environ | {"PYTHONHASHSEED": "0"}


def compile_into(folder: Path) -> None:
    """Compile into the folder. Run it in a process of its own, because mypyc and setuptools change global state.

    The working directory is the root. All paths are relative, so the libraries neither contain nor depend on the place
    where they were made.
    """
    from mypyc.build import mypycify
    from setuptools import setup

    work = folder.parent / WORK
    extensions = mypycify(
        [*CHECKED_AS, *modules(Path())],
        opt_level=OPTIMIZATION,
        debug_level="0",
        group_name=GROUP,
        target_dir=str(work / "c"),
        include_runtime_files=True,
    )
    for extension in extensions:
        given = extension.extra_compile_args  # one list for all of them
        extension.extra_compile_args = [*given, "-g0", f"-ffile-prefix-map={sysconfig.get_path('platlib')}=."]
        extension.extra_link_args = [*extension.extra_link_args, *(["-Wl,-s"] if sys.platform == "linux" else [])]
    arguments = ["--quiet", "build_ext", "--build-lib", str(folder), "--build-temp", str(work / "o")]
    setup(name=PACKAGE, ext_modules=extensions, packages=[], py_modules=[], script_args=arguments)


# --- install ------------------------------------------------------------------------


def libraries(folder: Path) -> list[Path]:
    """Return the libraries of a built or installed package. The one that holds the code is the first."""
    own = GROUP.rpartition(".")[2]
    return sorted((folder / PACKAGE).rglob("*.so"), key=lambda path: (not path.name.startswith(own), str(path)))


def install(made: Path, root: Path = ROOT) -> None:
    """Put the libraries next to their sources. Replace older ones, even if a server runs them.

    The stamp is removed first and written last, so no process uses an incomplete set. A library's file is replaced,
    never written into, because a server may have loaded it.
    """
    (root / PACKAGE / STAMP).unlink(missing_ok=True)
    wanted = [path.relative_to(made) for path in libraries(made)]
    for old in reversed(libraries(root)):
        if old.relative_to(root) not in wanted:
            old.unlink()
    for name in [*wanted, Path(PACKAGE, STAMP)]:
        fresh = root / name.parent / f".{name.name}.fresh"
        shutil.copy(made / name, fresh)
        fresh.replace(root / name)


def platform_tag(folder: Path, otherwise: str) -> str:
    """Return the platform tag of a wheel with these libraries, or ``otherwise`` if it cannot be found out.

    The tag names the C library that they need.
    """
    if not otherwise.startswith("linux_") or platform.libc_ver()[0] != "glibc" or not shutil.which("readelf"):
        return otherwise
    command = ["readelf", "--wide", "--dynamic", "--version-info", *map(str, libraries(folder))]
    return tag_of(subprocess.run(command, capture_output=True, text=True, check=True).stdout, otherwise)


def tag_of(said: str, otherwise: str) -> str:
    """Return the platform tag that follows from readelf's output, or ``otherwise`` if there is none."""
    asked_for: Iterable[str] = re.findall(r"\(NEEDED\)\s+Shared library: \[([^]]+)\]", said)
    if not all(SYSTEM_LIBRARIES.fullmatch(name) for name in asked_for):
        return otherwise
    found = re.findall(r"\bGLIBC_(\d+)\.(\d+)", said)
    needed = max([OLDEST_GLIBC, *((int(major), int(minor)) for major, minor in found)])
    return f"manylinux_{needed[0]}_{needed[1]}_{otherwise.removeprefix('linux_')}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--where-possible", action="store_true", help="print what is missing, and end with status 0")
    parser.add_argument("--compile-into", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.compile_into is not None:
        compile_into(options.compile_into)
        return 0
    if lack := missing():
        print(f"elasticq cannot be compiled here and runs as pure Python: {lack}.", file=sys.stderr)
        return 0 if options.where_possible else 1
    install(build())
    print(f"{len(modules())} modules are compiled; ELASTICQ_PURE=1 runs their sources all the same.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
