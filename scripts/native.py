"""Compiler of the hot path. mypyc translates the modules of [elasticq:native] in setup.cfg to C; gcc makes libraries.

``make native`` puts the libraries into elasticq/_native. If ELASTICQ_NATIVE is 1, setup.py puts them into a wheel. Both
take them from the folder build/native/KEY. KEY is a digest of everything that the libraries depend on. So nothing is
compiled twice, and the tested libraries are the ones that are shipped. The module elasticq/native.py decides at the
import of elasticq whether Python uses them.

Each folder of the package becomes one C file and one library. The next build reuses mypy's cache, the C files and the
objects of folders that did not change. They are in build/native, too.
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "elasticq"
FOLDER = "_native"
"""The folder of the package with the libraries. Each build has its own subfolder, because a server may run an older."""
STAMP = "native.sha256"
LOADER = "load"
"""The library, made of native_load.c, that starts compiled modules."""
LOG = "log"
"""The output of the last build in the background."""
FAILED = "failed"
"""The key of the build that failed in the background. It is not tried again before something changes."""
HINTS = "hints.h"
WORK = "work"
"""The folder of mypy's cache, C files and objects. They are kept for the next build."""
LEVEL = "-O1"
"""gcc's level for the modules. -O2 takes 1.6 times as long."""
RUNTIME_LEVEL = "-O2"
# One source serves every version of Python, so mypy checks it for the oldest one, as make check does.
CHECKED_AS = ("--strict", "--python-version", "3.11")
# Nothing but its start function is visible outside of a library. So gcc binds calls within it when it compiles.
# A function that is unknown at its call would return an int, which cuts off half of a pointer.
FLAGS = ("-fvisibility=hidden", "-Werror=implicit-function-declaration")
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
    if find_spec("mypyc") is None or find_spec("setuptools") is None:
        return "mypy and setuptools are not installed for this Python: make native and make dist install them"
    return missing_on_machine()


def missing_on_machine() -> str:
    """Return the same without what pip can install."""
    if os.name != "posix":
        return f"{platform.system()} is not supported, only Linux and macOS are"
    if shutil.which(compiler()) is None:
        return f"there is no C compiler ({compiler()}); Debian and Ubuntu have it in the package gcc"
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.is_file():
        return f"there is no {header}; Debian and Ubuntu have it in the package python3-dev"
    return ""


def compiler() -> str:
    return (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]


# --- compile ------------------------------------------------------------------------


def stamp(root: Path, build_key: str) -> str:
    """Return what elasticq/native.py compares: the key of the build, then a line for each source with its digest.

    The lines have the format of sha256sum. A star marks a compiled module.
    """
    compiled = set(modules(root))
    marked = ((name, "*" if name in compiled else " ") for name in sources(root))
    digests = (f"{hashlib.sha256((root / name).read_bytes()).hexdigest()} {mark}{name}\n" for name, mark in marked)
    return "".join([f"# {build_key}\n", *digests])


def key(root: Path) -> str:
    """Return a digest of everything that the libraries depend on: sources, list, this program, and the tools."""
    said = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    program = (Path(__file__), loader_source())
    parts = [
        stamp(root, ""), *(path.read_text(encoding="utf-8") for path in program), sys.version,
        sysconfig.get_platform(), version("mypy"), version("setuptools"), said, os.environ.get("CFLAGS", ""),
    ]  # fmt: skip
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def build(root: Path = ROOT) -> Path:
    """Compile unless that was done before; return the folder with libraries and stamp, laid out like the package.

    Wait for another build of this folder. Exit the process if the compilation fails or a source changes meanwhile.
    """
    with only_build(root) as lock:
        return _build(root, key(root), lock)


def _build(root: Path, build_key: str, lock: int) -> Path:
    folder = root / "build" / "native"
    made = folder / build_key
    if made.is_dir():
        return made
    before = stamp(root, build_key)
    unfinished = folder / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    (unfinished / PACKAGE / FOLDER / build_key).mkdir(parents=True)
    started_s = time.monotonic()
    print(f"compiling {len(modules(root))} modules, which takes a minute or two", file=sys.stderr)
    into = unfinished / PACKAGE / FOLDER / build_key
    done = subprocess.run(
        [sys.executable, __file__, "--compile-into", into.relative_to(root)],
        cwd=root, env=os.environ | {"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=False,
        pass_fds=[lock],  # so the lock is held until it has ended, even if this process is killed
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}the compilation failed; see above")
    if stamp(root, build_key) != before:
        sys.exit("a source was changed during the compilation; run it again")
    (unfinished / PACKAGE / STAMP).write_text(before, encoding="utf-8")
    for old in folder.iterdir():
        if re.fullmatch("[0-9a-f]{16}", old.name):
            shutil.rmtree(old)
    unfinished.rename(made)
    print(f"compiled in {time.monotonic() - started_s:.0f} s", file=sys.stderr)
    return made


def part_of(path: str) -> str:
    """Return the name of a module's part: that of its folder. The modules of a part share a C file and a library."""
    return "_".join(Path(path).parts[1:-1])


def loader_source() -> Path:
    return Path(__file__).with_name("native_load.c")


def compile_into(folder: Path) -> None:
    """Compile into the folder. Run it in a process of its own, because mypyc and setuptools change global state.

    The working directory is the root. All paths are relative, so the libraries neither contain nor depend on the place
    where they were made.
    """
    import setuptools  # noqa: F401 - it replaces distutils, which mypyc uses
    from mypyc.build import mypycify

    work = Path("build", "native", WORK, version("mypy"))
    parts: dict[str, list[str]] = {}
    for path in modules(Path()):
        parts.setdefault(f"{PACKAGE}.{FOLDER}.{part_of(path)}", []).append(path)
    extensions = mypycify(
        [*CHECKED_AS, "--cache-dir", str(work / "types"), *modules(Path())],
        debug_level="0",
        separate=[(paths, name) for name, paths in parts.items()],
        target_dir=str(work / "c"),
        include_runtime_files=False,
    )
    write_hints(work / "c" / HINTS)
    # The other extensions would be a library for each module, which only calls that of its part. native_load.c does.
    libraries_of_parts = [extension for extension in extensions if extension.name.startswith(f"{PACKAGE}.{FOLDER}.")]
    # mypyc copies the files of its runtime that the new C files need, and those of older C files are still there.
    runtime = sorted(map(str, (work / "c").glob("*.c")))
    for extension in libraries_of_parts:
        extension.sources = [source for source in extension.sources if source not in runtime]
    Toolchain(work / "objects").make(libraries_of_parts, runtime, folder)
    load_all(folder)


def load_all(folder: Path) -> None:
    """Load each library of a finished build. Raise ImportError if one lacks a symbol."""
    for path in sorted(folder.iterdir()):
        spec = spec_from_file_location(f"{PACKAGE}.{FOLDER}.{path.name.partition('.')[0]}", path)
        assert spec is not None
        module_from_spec(spec)


def write_hints(header: Path) -> None:
    """Write declarations that stop gcc from optimizing the code of each module's body, which runs once.

    These functions are large: a table of all actions is one. They take an eighth of the time of a compilation. If mypyc
    names them differently one day, the declarations have no effect.
    """
    names = [path.removesuffix(".py").replace("/", "___") for path in modules(Path())]
    lines = [f'__attribute__((cold, optimize("O0"))) char CPyDef_{name}_____top_level__(void);' for name in names]
    text = "\n".join(["#if defined(__GNUC__) && !defined(__clang__)", *lines, "#endif", ""])
    header.write_text(text, encoding="utf-8")


class Toolchain:
    """The C compiler and linker of this Python, with a store of the objects that they made."""

    def __init__(self, store: Path) -> None:
        from distutils import ccompiler
        from distutils.sysconfig import customize_compiler

        tools: Any = ccompiler.new_compiler()
        customize_compiler(tools)
        self._compile: list[str] = [*tools.compiler_so, f"-ffile-prefix-map={sysconfig.get_path('platlib')}=."]
        # Without the paths of this Python's own libraries.
        self._link = [word for word in tools.linker_so if not word.startswith(("-L", "-Wl,-rpath"))]
        self._store = store
        self._used: set[Path] = set()
        store.mkdir(parents=True, exist_ok=True)

    def make(self, extensions: list[Any], runtime: list[str], folder: Path) -> None:
        """Compile and link mypyc's extensions and the loader. Remove the objects that no library needs any more.

        ``runtime``: the sources that every extension needs.
        """
        shared = [(source, extensions[0], RUNTIME_LEVEL) for source in runtime]
        own = [(source, one, LEVEL) for one in extensions for source in one.sources]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            largest_first = sorted([*shared, *own], key=lambda job: -os.path.getsize(job[0]))
            made = dict(pool.map(lambda job: (job[0], self._object(*job)), largest_first))
            needed = {one.name.split(".")[-1]: [*one.sources, *runtime] for one in extensions}
            linked = ((name, [made[source] for source in sources]) for name, sources in needed.items())
            list(pool.map(lambda job: self._library(folder, *job), linked))
        include = f"-I{sysconfig.get_path('include')}"
        loader = self._compiled([RUNTIME_LEVEL, include], str(loader_source().relative_to(Path.cwd())), [])
        self._library(folder, LOADER, [loader])
        for path in self._store.iterdir():
            if path not in self._used:
                path.unlink()

    def _object(self, source: str, extension: Any, level: str) -> Path:
        places = (sysconfig.get_path("include"), *extension.include_dirs)
        hints = str(self._store.parent / "c" / HINTS)
        options = [*(f"-I{place}" for place in places), "-include", hints, *extension.extra_compile_args, *FLAGS, level]
        return self._compiled(options, source, [*extension.depends, hints])

    def _compiled(self, options: list[str], source: str, headers: list[str]) -> Path:
        """Return the object of a source. It is only compiled if source, headers or options changed."""
        digest = hashlib.sha256("\0".join([*self._compile, *options]).encode())
        for path in (source, *headers):
            digest.update(Path(path).read_bytes())
        made = self._store / f"{digest.hexdigest()}.o"
        self._used.add(made)
        if not made.is_file():
            fresh = made.with_suffix(f".{os.getpid()}")
            run([*self._compile, *options, "-c", source, "-o", str(fresh)])
            fresh.rename(made)
        return made

    def _library(self, folder: Path, name: str, objects: list[Path]) -> None:
        strip = ["-Wl,-s"] if sys.platform == "linux" else []
        target = folder / (name + str(sysconfig.get_config_var("EXT_SUFFIX")))
        run([*self._link, *map(str, objects), *strip, "-o", str(target)])


def run(command: list[str]) -> None:
    """Run a program. If it fails, print its output and exit."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}{command[0]} ended with {done.returncode}")


# --- install ------------------------------------------------------------------------


def libraries(folder: Path) -> list[Path]:
    """Return the libraries of a built or installed package, sorted by name."""
    return sorted((folder / PACKAGE / FOLDER).rglob("*.so"))


def install(made: Path, root: Path = ROOT) -> None:
    """Put the libraries into the package. The next process uses them, because the stamp is replaced last.

    The libraries of the build before stay, because a server that runs them may load more of them.
    """
    installed, current = root / PACKAGE / FOLDER, root / PACKAGE / STAMP
    target, fresh = installed / made.name, installed / f".{made.name}.fresh"
    before = current.read_text(encoding="utf-8").split(maxsplit=2)[1] if current.is_file() else ""
    for old in installed.iterdir() if installed.is_dir() else ():
        if old.name not in (made.name, before):
            shutil.rmtree(old)
    if not target.is_dir():
        shutil.copytree(made / PACKAGE / FOLDER / made.name, fresh)
        fresh.rename(target)
    shutil.copy(made / PACKAGE / STAMP, current.with_suffix(".fresh"))
    current.with_suffix(".fresh").replace(current)


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


# --- in the background --------------------------------------------------------------


@contextmanager
def only_build(root: Path, *, is_patient: bool = True) -> Iterator[int]:
    """Hold the lock of this folder's builds; yield its file descriptor. Raise BlockingIOError if not patient.

    The system releases it at the end of the last process that has the descriptor.
    """
    import fcntl  # which Windows lacks

    (root / "build" / "native").mkdir(parents=True, exist_ok=True)
    with (root / "build" / "native" / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not is_patient:
                raise
            print("waiting for another compilation of this folder", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def start_in_background(root: Path = ROOT) -> str:
    """Start a compilation for later processes, if it is needed and possible. Return a line about it for people."""
    sys.path.insert(0, str(root))
    from elasticq import BUILD

    if BUILD.is_compiled or not BUILD.is_unwanted:
        return ""
    folder = root / "build" / "native"
    try:
        if lack := missing_on_machine():
            return f"elasticq runs as pure Python, which takes up to twice the CPU time: {lack}. Then run make native."
        with only_build(root, is_patient=False):
            failed = folder / FAILED
            if failed.is_file() and failed.read_text(encoding="utf-8") == stamp(root, ""):
                return (
                    f"elasticq runs as pure Python: its compilation failed ({folder / LOG}). Run make native to retry."
                )
        with (folder / LOG).open("w") as log:
            command = [sys.executable, __file__, "--background"]
            subprocess.Popen(
                command, cwd=root, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
    except BlockingIOError:
        return "elasticq runs as pure Python until the compilation in the background ends; the next start is faster."
    except OSError as error:
        return f"elasticq runs as pure Python, because it cannot be compiled in {folder}: {error.strerror}."
    return "elasticq is being compiled in the background, for about two minutes; the next start is faster."


def in_background(root: Path = ROOT) -> None:
    """Compile with low priority, and install the result. Do nothing if another process compiles."""
    os.nice(19)
    failed = root / "build" / "native" / FAILED
    before = stamp(root, "")
    try:
        with only_build(root, is_patient=False) as lock:
            install_tools(root)
            try:
                made = _build(root, key(root), lock)
            except SystemExit:
                failed.write_text(before, encoding="utf-8")
                raise
            install(made, root)
            failed.unlink(missing_ok=True)
    except BlockingIOError:
        print("another process compiles here", file=sys.stderr)


def install_tools(root: Path) -> None:
    """Install mypy and setuptools into a folder of the builds, unless this Python has them.

    They stay out of .venv, where make may install something at the same time.
    """
    if not missing():
        return
    tools = root / "build" / "native" / "tools"
    config = configparser.ConfigParser()
    config.read(root / "setup.cfg", encoding="utf-8")
    wanted = config["options.extras_require"]["native"].split()
    if not tools.is_dir():
        fresh = tools.with_name("unfinished-tools")
        shutil.rmtree(fresh, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, "--target", str(fresh), *wanted])
        fresh.rename(tools)
    os.environ["PYTHONPATH"] = str(tools)
    sys.path.append(str(tools))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--where-possible", action="store_true", help="print what is missing, and end with status 0")
    parser.add_argument(
        "--start", action="store_true", help="compile in the background, if that is needed and possible"
    )
    parser.add_argument("--background", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--compile-into", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.compile_into is not None:
        compile_into(options.compile_into)
        return 0
    if options.start:
        if line := start_in_background():
            print(line, file=sys.stderr)
        return 0
    if options.background:
        in_background()
        return 0
    if lack := missing():
        print(f"elasticq cannot be compiled here and runs as pure Python: {lack}.", file=sys.stderr)
        return 0 if options.where_possible else 1
    install(build())
    print(f"{len(modules())} modules are compiled; ELASTICQ_PURE=1 runs their sources all the same.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
