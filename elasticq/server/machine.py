"""How much memory this process may use: the machine's, or less where its control group or its limits say so."""

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
    """The least of all that bounds it. ``root``: where the files of the system are."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    own = [] if limit == resource.RLIM_INFINITY else [limit]
    return min([machine, *own, *_of_control_groups(root)])


def _of_control_groups(root: Path) -> Iterator[int]:
    """Of the group of the process and those it is in, version 2 and 1 (kernel's cgroup-v2 and cgroup-v1 pages)."""
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
