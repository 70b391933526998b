"""The builder of what people install: wheels, sdist, elasticq.pyz (one file that Python runs), elasticq_spark.zip.

The wheels are built from the sdist, which proves that the sdist is complete. One wheel is pure Python for every
platform. If there is a C compiler, scripts/native.py compiles modules, and a second wheel has them for this platform.
The tool shiv makes the pyz from the last wheel and its requirements, in the versions that are installed and tested
here. That needs no network. The pyz fits one platform and one minor version of Python, as C extensions do.
Two builds of one commit with the same tools are equal: all times are the commit's, names are sorted, modes are fixed,
and the libraries contain no path.
"""

import argparse
import gzip
import hashlib
import io
import os
import py_compile
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import cache_from_source
from pathlib import Path

import native
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("elasticq", "conf", "deploy", "docs", "examples", "scripts", "tests")
SINGLE_FILES = ("*.py", "*.md", "*.cfg", "*.toml", "*.yml", "MANIFEST.in", "Makefile", ".gitignore", "LICENSE*")
LEFTOVERS = shutil.ignore_patterns(
    "__pycache__", "*.py[co]", native.FOLDER, native.STAMP, "*.egg-info", ".*_cache", "target", "node_modules"
)
EPOCH_S = 315_532_800  # 1980, the oldest time that a zip can store: for sources that are not in git
PYZ_EXTRAS = frozenset(("speed", "hocon"))
PYZ_ENTRY = "elasticq.__main__:main"  # not elasticq.cli:main: a module has that name too, and shiv would try to call it
# rich needs pygments only for coloured source code, which no command prints. It is half of all files to unpack.
NOT_IN_PYZ = frozenset(("pygments",))
FOR_COMPILERS = frozenset((".pyi", ".pyx", ".pxd", ".pxi", ".h", ".c", ".pyc", ".typed"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "dist", metavar="DIR", help="folder of the results (dist)")
    into: Path = parser.parse_args().into
    into.mkdir(parents=True, exist_ok=True)
    epoch_s = source_date_s()
    with tempfile.TemporaryDirectory(prefix="elasticq-dist-") as work:
        made = [*build_packages(Path(work), epoch_s)]
        if lack := native.missing():
            print(f"no wheel with compiled modules is built, and the pyz has none: {lack}.", file=sys.stderr)
        else:
            made.append(build_native_wheel(made[0], Path(work), epoch_s))
        made += [build_pyz(made[-1], Path(work), epoch_s), build_spark_zip(Path(work), epoch_s)]
        for path in made:
            target = into / path.name
            shutil.copy(path, target)
            print(f"{hashlib.sha256(target.read_bytes()).hexdigest()}  {target.stat().st_size:>10,}  {target.name}")
    return 0


def source_date_s() -> int:
    """Return the time of all files: SOURCE_DATE_EPOCH, else the commit's, else EPOCH_S."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    command = ["git", "log", "-1", "--format=%ct"]
    try:
        shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return EPOCH_S
    return int(shown.stdout or EPOCH_S)


def run(*command: str | Path, cwd: Path, epoch_s: int, is_native: bool = False) -> None:
    """Run a command. If it fails, print its output and exit."""
    more = {"SOURCE_DATE_EPOCH": str(epoch_s), "PYTHONHASHSEED": "0", "ELASTICQ_NATIVE": "1" if is_native else ""}
    environment = os.environ | more
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}{command[0]} ended with {done.returncode}")


# --- wheels and sdist ---------------------------------------------------------------


def build_packages(work: Path, epoch_s: int) -> tuple[Path, Path]:
    """Build the sdist and the pure wheel; return their paths.

    They come from a copy of the tree, because setuptools would include files that an earlier build left in the tree.
    """
    tree, built = work / "tree", work / "built"
    copy_sources(tree)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", built, tree, cwd=work, epoch_s=epoch_s)
    sdist, wheel = next(built.glob("*.tar.gz")), next(built.glob("*.whl"))
    even_out(sdist, epoch_s)
    return sdist, wheel


def build_native_wheel(sdist: Path, work: Path, epoch_s: int) -> Path:
    """Build a wheel from the sdist with the same libraries that this repository's tests use; return its path."""
    unpacked, built = work / "unpacked", work / "native"
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (tree,) = unpacked.iterdir()
    made = native.build(ROOT)
    shutil.copytree(made, tree / made.relative_to(ROOT))
    command = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", built, tree)
    run(*command, cwd=work, epoch_s=epoch_s, is_native=True)
    return next(built.glob("*.whl"))


def copy_sources(tree: Path) -> None:
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=LEFTOVERS)
    for pattern in SINGLE_FILES:
        for path in ROOT.glob(pattern):
            shutil.copy(path, tree)
    for path in tree.rglob("*"):
        path.chmod(mode_of(path))


def mode_of(path: Path) -> int:
    """Return the mode of a file or folder. It does not depend on the umask under which the sources were checked out."""
    return 0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644


def even_out(sdist: Path, epoch_s: int) -> None:
    """Replace the builder's name and the times that setuptools puts into a sdist."""
    plain = io.BytesIO()
    with tarfile.open(sdist) as given, tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as even:
        for member in sorted(given.getmembers(), key=lambda member: member.name):
            content = given.extractfile(member)
            member.mtime, member.pax_headers = epoch_s, {}
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            even.addfile(member, content)
    with sdist.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=epoch_s) as packed:
        packed.write(plain.getvalue())


def build_spark_zip(work: Path, epoch_s: int) -> Path:
    made = work / "elasticq_spark.zip"
    run(sys.executable, ROOT / "scripts" / "spark_zip.py", made, cwd=work, epoch_s=epoch_s)
    return made


# --- one file to run ----------------------------------------------------------------


def build_pyz(wheel: Path, work: Path, epoch_s: int) -> Path:
    site, pyz = work / "site", work / "elasticq.pyz"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (information,) = site.glob("elasticq-*.dist-info")
    for one in requirements(Distribution.at(information), PYZ_EXTRAS, NOT_IN_PYZ):
        copy_distribution(one, site)
    run(
        sys.executable, "-m", "shiv", "--reproducible", "--entry-point", PYZ_ENTRY,
        "--python", f"/usr/bin/env python3.{sys.version_info.minor}", "--site-packages", site, "--output-file", pyz,
        cwd=work, epoch_s=epoch_s,
    )  # fmt: skip
    add_compiled(pyz, work / "compiled")
    return pyz


def requirements(
    root: Distribution, extras: frozenset[str] = frozenset(), without: frozenset[str] = frozenset()
) -> list[Distribution]:
    """Return the installed distributions that ``root`` needs with these extras, sorted by name."""
    found: dict[str, Distribution] = {}
    open_ones = [(root, extras)]
    while open_ones:
        one, chosen = open_ones.pop()
        for line in one.requires or ():
            wanted = Requirement(line)
            name = canonicalize_name(wanted.name)
            if name in without or name in found or not applies(wanted, chosen):
                continue
            found[name] = installed(wanted)
            open_ones.append((found[name], frozenset(wanted.extras)))
    return [found[name] for name in sorted(found)]


def applies(wanted: Requirement, extras: frozenset[str]) -> bool:
    marker = wanted.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in (*extras, ""))


def installed(wanted: Requirement) -> Distribution:
    try:
        one = distribution(wanted.name)
    except PackageNotFoundError:
        sys.exit(f"{wanted.name} is not installed here; make dist installs it")
    if not wanted.specifier.contains(one.version, prereleases=True):
        sys.exit(f"{wanted.name} {one.version} is installed here, but elasticq needs {wanted}")
    return one


def copy_distribution(one: Distribution, site: Path) -> None:
    """Copy the files of a distribution that Python or its licence needs. Scripts are outside of ``site`` and stay."""
    for entry in one.files or ():
        if ".." in entry.parts or entry.suffix in FOR_COMPILERS or "tests" in entry.parts[:-1]:
            continue
        if entry.name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
            continue  # they describe this installation
        target = site / entry
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(str(one.locate_file(entry))), target)
        target.chmod(mode_of(target))


def add_compiled(pyz: Path, work: Path) -> None:
    """Add byte code for each source, including shiv's own start code, which Python would else compile at every start.

    shiv itself leaves byte code out, or compiles all of it at the first start. Python does not check it against the
    sources: the name of the cache into which shiv unpacks contains the sources' hash. Another minor version of Python
    ignores the byte code. Assertions stay in, because a failed one must stop a member.
    """
    with zipfile.ZipFile(pyz, "a", zipfile.ZIP_DEFLATED) as archive:
        for entry in sorted(archive.infolist(), key=lambda entry: entry.filename):
            if entry.filename.endswith(".py") and entry.filename != "__main__.py":
                compiled = compile_entry(entry.filename, archive.read(entry), work)
                made = zipfile.ZipInfo(place_of(entry.filename), entry.date_time)
                made.compress_type, made.external_attr = zipfile.ZIP_DEFLATED, entry.external_attr
                archive.writestr(made, compiled)


def compile_entry(name: str, source: bytes, work: Path) -> bytes:
    path = work / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(source)
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    made = py_compile.compile(str(path), str(path) + "c", dfile=name, doraise=True, invalidation_mode=mode)
    return Path(made).read_bytes()


def place_of(name: str) -> str:
    """Return the place of a source's byte code: next to the source inside a zip, in __pycache__ on a disk."""
    return cache_from_source(name) if name.startswith("site-packages/") else name + "c"


if __name__ == "__main__":
    sys.exit(main())
