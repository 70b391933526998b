"""Files in the user's cache that are made once on a machine."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_directory(kind: str) -> Path:
    """Return the directory in the user's cache for one kind of files. Raise OSError if it cannot be created."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "elasticq" / kind
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def made_once(home: Path, fill: Callable[[Path], None]) -> Path:
    """Return the directory ``home``. If it does not exist, let ``fill`` make it.

    It is filled under another name and then renamed, so no process finds it incomplete.
    """
    if home.is_dir():
        return home
    made = Path(tempfile.mkdtemp(prefix="making-", dir=home.parent))
    fill(made)
    try:
        made.rename(home)
    except OSError:  # another process was first and made the same
        shutil.rmtree(made)
    return home


def write_command(path: Path, script: str) -> None:
    path.write_text(script)
    path.chmod(0o755)
