"""The fenced blocks of the documentation, and how each kind is run.

A page's blocks run in order, in one directory, against one server that keeps nothing. Conventions:

- a page's python blocks are programs of their own, but those of spark.md: tests/spark/test_page.py has a Spark for them
- python that begins with a line "# test_NAME.py" is run by pytest, with the plugin
- python, sh, bash, toml, hocon run; console runs what stands behind its prompts, "$ "; text, json and xml only show
- 127.0.0.1:9324 and :9325 are the server's SQS and admin port, and what commands ask when they are told nothing
- ``elasticq server`` in a shell block starts a server like that on free ports, and stops it when it listens
- ``make`` in a shell block is a dry run: the target must be there
- toml is settings, or access keys where it has [[keys]]; hocon is an elasticmq.conf: ``elasticq config check`` reads it
- ``no-run: why`` behind the language: it cannot run here; a shell's syntax and elasticq's arguments are checked
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHELLS = frozenset(("sh", "bash", "console"))
SETTINGS = frozenset(("toml", "hocon"))
RUN = SHELLS | SETTINGS | {"python"}
SHOWN = frozenset(("", "text", "json", "xml"))
TIMEOUT_S = 120

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```[ ]*$", re.DOTALL | re.MULTILINE)
_ELASTICQ = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*elasticq (?P<arguments>.+?)(?:\s+#.*)?$", re.MULTILINE)


class Block(Struct, frozen=True):
    """``reason``: why it does not run; empty where it does."""

    page: str
    line: int
    language: str
    reason: str
    code: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        language, _, rest = match["info"].strip().partition(" ")
        kind, _, reason = rest.partition(":")
        assert not rest or kind == "no-run", f"{page.name}: ```{match['info']} is not understood"
        code = re.sub(rf"^{match['indent']}", "", match["code"], flags=re.MULTILINE)
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(page.name, line, language, reason.strip(), code))
    return found


def commands_of(block: Block) -> list[list[str]]:
    """The arguments of each elasticq command in a shell block, as far as it stands at a line's begin."""
    if block.language not in SHELLS:
        return []
    joined = block.code.replace("\\\n", " ")
    return [shlex.split(re.split(r" (?:[|<>&]|&&)", match["arguments"])[0]) for match in _ELASTICQ.finditer(joined)]


class Stage:
    """Where the blocks of a page run."""

    def __init__(self, directory: Path, url: str, admin: str) -> None:
        self._directory = directory
        self._places = {"http://127.0.0.1:9324": url, "http://127.0.0.1:9325": admin}
        tools = directory / ".tools"
        tools.mkdir()
        for name in ("elasticq", "make", "python"):
            tool = tools / name
            tool.write_text(
                f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).parent / "stand_in.py"}" {name} "$@"\n'
            )
            tool.chmod(0o755)
        python = Path(sys.executable).parent
        self._environment = {
            "PATH": os.pathsep.join((str(tools), str(python), os.environ["PATH"])),
            "HOME": str(directory),
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "AWS_PAGER": "",
            "AWS_ENDPOINT_URL_SQS": url,
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
            "AWS_DEFAULT_REGION": "us-east-1",
            "ELASTICQ_TEST_URL": url,
            "ELASTICQ_TEST_ADMIN": admin,
        }

    def run(self, block: Block) -> str:
        """Its standard output; fails with what it said."""
        code = block.code
        for place, here in self._places.items():
            code = code.replace(place, here).replace(place.removeprefix("http://"), here.removeprefix("http://"))
        done = subprocess.run(
            self._command(block.language, code),
            cwd=self._directory,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, (
            f"{block.place} exits with {done.returncode}:\n{code}\n{done.stdout}\n{done.stderr}"
        )
        return done.stdout

    def _command(self, language: str, code: str) -> list[str]:
        if language == "python" and code.startswith("# test_"):
            file = self._directory / code.split()[1]
            file.write_text(code)
            plugin = ("-p", "elasticq.testing.plugin", "-p", "no:cacheprovider")
            return [sys.executable, "-m", "pytest", "-q", *plugin, str(file)]
        if language == "python":
            return [sys.executable, "-c", code]
        if language == "console":
            prompts = [line.removeprefix("$ ") for line in code.splitlines() if line.startswith("$ ")]
            return ["bash", "-euo", "pipefail", "-c", "\n".join(prompts)]
        if language in SHELLS:
            return ["bash", "-euo", "pipefail", "-c", code]
        file = self._directory / (
            "keys.toml" if "[[keys]]" in code else f"settings.{'conf' if language == 'hocon' else language}"
        )
        file.write_text(code)
        file.chmod(0o600)
        if file.name == "keys.toml":
            self._environment["ELASTICQ_AUTH__KEYS_FILE"] = str(file)
            (self._directory / "empty.toml").write_text("")
            file = self._directory / "empty.toml"
        return [sys.executable, "-m", "elasticq", "config", "check", str(file)]
