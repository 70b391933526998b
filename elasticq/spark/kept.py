"""Keeps files that are made once for a machine, in the user's cache."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_directory(kind: str) -> Path:
    """Return the directory of the user's cache for one kind of files. Raise OSError if it cannot be written."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "elasticq" / kind
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def made_once(home: Path, fill: Callable[[Path], None]) -> Path:
    """Return a directory with what ``fill`` makes. It is made elsewhere and renamed, so nobody sees half of it."""
    if home.is_dir():
        return home
    made = Path(tempfile.mkdtemp(prefix="making-", dir=home.parent))
    fill(made)
    try:
        made.rename(home)
    except OSError:  # another process was first; what it made is the same
        shutil.rmtree(made)
    return home


def write_command(path: Path, script: str) -> None:
    path.write_text(script)
    path.chmod(0o755)
