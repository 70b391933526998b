"""The amount of memory that this process may use: the machine's, or the lower limit of a control group or rlimit."""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

ROOT: Final = Path(os.sep)
CONTROL_GROUPS: Final = Path("sys", "fs", "cgroup")
OF_PROCESS: Final = Path("proc", "self", "cgroup")
LIMIT, LIMIT_V1 = "memory.max", "memory.limit_in_bytes"


def memory_bytes(root: Path = ROOT) -> int:
    """Return the lowest of all bounds, in bytes. ``root``: where the system's files are."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    own = [] if limit == resource.RLIM_INFINITY else [limit]
    return min([machine, *own, *_of_control_groups(root)])


def _of_control_groups(root: Path) -> Iterator[int]:
    """Yield the bounds of the process's control group and of its parents.

    See the kernel's documents on cgroup versions 2 and 1.
    """
    groups = root / CONTROL_GROUPS
    with suppress(OSError):
        for line in (root / OF_PROCESS).read_text().splitlines():
            _, controllers, name = line.split(":", 2)
            if controllers in ("", "memory"):
                hierarchy, file = (groups / controllers, LIMIT_V1) if controllers else (groups, LIMIT)
                group = hierarchy / name.lstrip("/")
                yield from _limits([group, *group.parents], hierarchy, file)


def _limits(folders: list[Path], hierarchy: Path, file: str) -> Iterator[int]:
    for folder in folders:
        if folder.is_relative_to(hierarchy):
            with suppress(OSError):
                text = (folder / file).read_text().strip()
                if text.isdigit():  # else "max"
                    yield int(text)
