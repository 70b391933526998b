"""House rules as tests: what points where, what the pure rooms may not touch, what no file may hold."""

import ast
import configparser
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PURE_ROOMS = ("model", "wire", "engine", "replication", "node", "checks")
CONTRACT = configparser.ConfigParser()
CONTRACT.read(ROOT / "setup.cfg")
BANNED_MODULES = frozenset(CONTRACT["importlinter:contract:pure"]["forbidden_modules"].split())
BANNED_NAMES = frozenset(["uuid1", "uuid4", "urandom", "monotonic", "perf_counter", "getrandbits", "token_bytes"])
# hash() of a string differs from process to process; the others are I/O.
BANNED_BUILTINS = frozenset(["hash", "open", "print", "input", "breakpoint"])
DYNAMIC_IMPORTS = frozenset(["__import__", "import_module"])
ASYNC_NODES = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
UNSAFE_MODULES = frozenset(["pickle", "cPickle", "marshal", "dill", "shelve"])
UNSAFE_BUILTINS = frozenset(["eval", "exec"])
FILE_LINES_MAX, CLASS_METHODS_MAX = 600, 40
# Written so that neither pattern matches its own text.
MACHINE_PATH = re.compile(r"(?<![\w.$)}-])/(?:work|root|tmp|mnt|home/[\w-]+|Users/[\w-]+)/(?=[\w.])")
REGISTRY = re.compile(r"pypi\.org|pythonhosted\.org|npmjs\.org|maven\.org|proxy\.golang\.org|crates\.io", re.IGNORECASE)
PAGE = re.compile(r"(?<![\w.*{}-])(?:\w[\w./-]*/)?[a-z][\w-]*\.md\b|docs/adr/\d{4}")
TEXT_SUFFIXES = frozenset(["", ".py", ".md", ".cfg", ".toml", ".txt", ".ini", ".json", ".sh", ".yml", ".yaml", ".html"])


def imported_modules(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, top-level module) of each absolute import, also those inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.lineno, node.module.split(".")[0]


def called_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of each call of a bare name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.lineno, node.func.id


def mentioned_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of each name read and each attribute taken."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr


def impurities(source: str) -> list[str]:
    """What a source text of a pure room does that only a shell may do, as ``line: what``."""
    tree = ast.parse(source)
    found = [(line, f"imports {name}") for line, name in imported_modules(tree) if name in BANNED_MODULES]
    found += [(line, f"calls {name}()") for line, name in called_names(tree) if name in BANNED_BUILTINS]
    found += [(line, f"uses {name}") for line, name in mentioned_names(tree) if name in BANNED_NAMES]
    found += [(line, f"imports by {name}") for line, name in mentioned_names(tree) if name in DYNAMIC_IMPORTS]
    found += [(node.lineno, "says async") for node in ast.walk(tree) if isinstance(node, ASYNC_NODES)]
    return [f"{line}: {what}" for line, what in sorted(found)]


def unsafe_uses(source: str) -> list[str]:
    """Ways by which bytes of others become code, as ``line: what``."""
    tree = ast.parse(source)
    found = [(line, f"imports {name}") for line, name in imported_modules(tree) if name in UNSAFE_MODULES]
    found += [(line, f"calls {name}()") for line, name in called_names(tree) if name in UNSAFE_BUILTINS]
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="yaml"), attr="load" | "unsafe_load" | "full_load" as loader):
                found.append((node.lineno, f"uses yaml.{loader}"))
    return [f"{line}: {what}" for line, what in sorted(found)]


def excesses(source: str) -> list[str]:
    """What of a source text has grown too large to be read as one: the file, or a class of it."""
    lines = len(source.splitlines())
    found = [f"{lines} lines"] if lines > FILE_LINES_MAX else []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            methods = sum(isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)) for member in node.body)
            if methods > CLASS_METHODS_MAX:
                found.append(f"{methods} methods in {node.name}")
    return found


def foreign_addresses(text: str) -> list[str]:
    """Paths of one machine and addresses of package registries in a text."""
    return [match.group() for pattern in (MACHINE_PATH, REGISTRY) for match in pattern.finditer(text)]


def tracked_files() -> list[Path]:
    """What git tracks or would track; without git (a source archive) all but what .gitignore names."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listing.returncode == 0:
        paths = [ROOT / name for name in listing.stdout.splitlines()]
    else:
        hidden = {".venv", ".git", "build", "dist", "data", "__pycache__"}
        paths = [path for path in ROOT.rglob("*") if not hidden & set(path.relative_to(ROOT).parts)]
    return sorted(path for path in paths if path.is_file())


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


PYTHON_FILES = [path for path in tracked_files() if path.suffix == ".py"]
PACKAGE_FILES = [path for path in PYTHON_FILES if path.relative_to(ROOT).parts[0] == "elasticq"]
PURE_FILES = [
    path for path in PYTHON_FILES if path.relative_to(ROOT).parts[:2] in {("elasticq", r) for r in PURE_ROOMS}
]
TEXT_FILES = [path for path in tracked_files() if path.suffix in TEXT_SUFFIXES]


def lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--config", "setup.cfg"]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False, timeout=120)


def test_every_pure_room_has_files() -> None:
    seen = {path.relative_to(ROOT).parts[1] for path in PURE_FILES}
    assert seen == set(PURE_ROOMS)


@pytest.mark.parametrize("path", PURE_FILES, ids=name_of)
def test_pure_room_stays_pure(path: Path) -> None:
    assert impurities(path.read_text()) == []


@pytest.mark.parametrize("path", PYTHON_FILES, ids=name_of)
def test_no_bytes_of_others_become_code(path: Path) -> None:
    assert unsafe_uses(path.read_text()) == []


@pytest.mark.parametrize("path", TEXT_FILES, ids=name_of)
def test_file_names_no_machine_and_no_registry(path: Path) -> None:
    assert foreign_addresses(path.read_text()) == []


@pytest.mark.parametrize("path", PACKAGE_FILES, ids=name_of)
def test_module_tells_its_duty(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), "the first line of a module's docstring names its duty"


@pytest.mark.parametrize("path", PACKAGE_FILES, ids=name_of)
def test_no_file_and_no_class_is_too_large(path: Path) -> None:
    assert excesses(path.read_text()) == []


def missing_pages(source: str) -> list[str]:
    """Pages that a text cites and that the repository does not have, be it in its root, in docs/ or in docs/adr/."""
    found = []
    for cited in sorted(set(PAGE.findall(source))):
        if cited.startswith("docs/adr/") and not cited.endswith(".md"):
            exists = any((ROOT / "docs" / "adr").glob(f"{cited[-4:]}-*.md"))
        else:
            exists = any((folder / cited).is_file() for folder in (ROOT, ROOT / "docs", ROOT / "docs" / "adr"))
        if not exists:
            found.append(cited)
    return found


@pytest.mark.parametrize("path", PACKAGE_FILES, ids=name_of)
def test_cited_pages_are_in_the_repository(path: Path) -> None:
    assert missing_pages(path.read_text()) == []


def test_page_of_somewhere_else_is_found() -> None:
    assert missing_pages("see wisdom.md, docs/aws.md, docs/adr/9999 and docs/adr/0003") == [
        "docs/adr/9999",
        "wisdom.md",
    ]


def test_imports_keep_their_contracts() -> None:
    verdict = lint_imports(ROOT)
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr


@pytest.mark.parametrize(
    ("module", "planted", "contract"),
    [
        ("model/limits.py", "import asyncio", "Pure packages"),
        ("engine/__init__.py", "from time import monotonic_ns", "Pure packages"),
        ("model/names.py", "import elasticq.node.effects", "Imports point down only"),
        ("replication/records.py", "import elasticq.engine", "Imports point down only"),
        ("sim/__init__.py", "import elasticq.runtime", "The simulator drives Node"),
    ],
)
def test_contract_catches_a_planted_import(tmp_path: Path, module: str, planted: str, contract: str) -> None:
    shutil.copytree(ROOT / "elasticq", tmp_path / "elasticq", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    with (tmp_path / "elasticq" / module).open("a") as source:
        source.write(f"\n{planted}\n")
    verdict = lint_imports(tmp_path)
    assert verdict.returncode == 1
    broken = [line for line in verdict.stdout.splitlines() if line.rstrip().endswith("BROKEN")]
    assert any(line.startswith(contract) for line in broken), verdict.stdout + verdict.stderr


@pytest.mark.parametrize(
    ("source", "offence"),
    [
        ("import time", "1: imports time"),
        ("def now():\n    from time import time_ns\n    return time_ns()", "2: imports time"),
        ("import os.path", "1: imports os"),
        ("from uuid import uuid4", "1: imports uuid"),
        ("def make(uuid):\n    return uuid.uuid4()", "2: uses uuid4"),
        ("def make(source):\n    return source.urandom(16)", "2: uses urandom"),
        ("async def serve(): ...", "1: says async"),
        ("async def serve(other):\n    await other", "2: says async"),
        ("clock = __import__('time')", "1: imports by __import__"),
        ("place = hash('queue') % 16", "1: calls hash()"),
        ("open('file')", "1: calls open()"),
    ],
)
def test_planted_impurity_is_found(source: str, offence: str) -> None:
    assert offence in impurities(source)


@pytest.mark.parametrize(
    ("source", "offence"),
    [
        ("import pickle", "1: imports pickle"),
        ("from marshal import loads", "1: imports marshal"),
        ("eval('1 + 1')", "1: calls eval()"),
        ("exec('pass')", "1: calls exec()"),
        ("import yaml\nyaml.load('a: 1')", "2: uses yaml.load"),
    ],
)
def test_planted_unsafe_use_is_found(source: str, offence: str) -> None:
    assert offence in unsafe_uses(source)


METHOD, PROPERTY = "    async def f(self): ...\n", "    @property\n    def p(self): ...\n"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("x = 1\n" * 600, []),
        ("x = 1\n" * 600 + "# end", ["601 lines"]),
        ("class A:\n" + METHOD * 39 + PROPERTY + "    x = 1\ndef f(): ...", []),
        ("class A:\n" + METHOD * 39 + PROPERTY * 2, ["41 methods in A"]),
        ("class A:\n" + METHOD * 21 + "class B:\n" + METHOD * 20, []),
        ("def f():\n  class A:\n" + METHOD * 41, ["41 methods in A"]),
    ],
)
def test_planted_excess_is_found(source: str, found: list[str]) -> None:
    assert excesses(source) == found


@pytest.mark.parametrize("parts", [("/", "work/main"), ("/", "root/.venv"), ("/", "home/someone/elasticq")])
def test_planted_machine_path_is_found(parts: tuple[str, str]) -> None:
    assert foreign_addresses("see " + "".join(parts)) != []


def test_what_serves_is_pinned_with_its_hashes() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pins = dict(re.findall(r"^([\w-]+)==(\S+) \\\n    --hash=sha256:", lock, re.MULTILINE))
    extras = CONTRACT["options.extras_require"]
    options = CONTRACT["options"]["install_requires"] + extras["speed"] + extras["hocon"]
    wanted = [Requirement(line) for line in options.split("\n") if line]
    assert "pyhocon" in {requirement.name for requirement in wanted}
    assert len(wanted) > 6
    for requirement in wanted:
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), requirement


def test_planted_registry_address_is_found() -> None:
    assert foreign_addresses("https://" + "pypi" + ".org/simple") == ["pypi" + ".org"]


@pytest.mark.parametrize(
    "source", ["def send(now_ms: int) -> int:\n    return now_ms", "import re\nfrom msgspec import Struct"]
)
def test_plain_source_has_no_offence(source: str) -> None:
    assert impurities(source) == []
    assert unsafe_uses(source) == []
