"""Runs the server on a disk with a planted fault: ``faulty.py FAULT ARGUMENT server ...``.

lie N        after N appends the disk says "done" and keeps nothing any more, log and rows alike
sync FILE    the next sync after FILE appeared fails with EIO (and takes FILE away)
full FILE    while FILE is there, no space is left: not for a file that grows, nor for the log, nor for the reserve
"""

import errno
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from elasticq.cli.main import main
from elasticq.storage.files import DirectoryFiles, Files
from elasticq.storage.rowdb import RowDatabase


def lie(count: str) -> None:
    left = int(count)

    def countdown(files: DirectoryFiles, name: str, data: bytes) -> None:
        nonlocal left
        left -= 1
        if left > 0:
            append(files, name, data)

    def while_honest(method: Any) -> Any:
        return lambda *arguments: method(*arguments) if left > 0 else None

    append = DirectoryFiles.append
    planted: dict[type, dict[str, Any]] = {
        DirectoryFiles: {"append": countdown, "append_durably": Files.append_durably},
        RowDatabase: {"take": while_honest(RowDatabase.take)},
    }
    for name in ("create", "sync", "truncate", "trim", "remove"):
        planted[DirectoryFiles][name] = while_honest(getattr(DirectoryFiles, name))
    for victim, methods in planted.items():
        for name, method in methods.items():
            setattr(victim, name, method)


def sync(file: str) -> None:
    real, real_pwritev = os.fdatasync, os.pwritev

    def fdatasync(descriptor: int) -> None:
        fail()
        real(descriptor)

    def pwritev(descriptor: int, buffers: Any, offset: int, flags: int = 0) -> int:
        written_bytes = real_pwritev(descriptor, buffers, offset)
        if flags & os.RWF_DSYNC:
            fail()
            real(descriptor)
        return written_bytes

    def fail() -> None:
        if Path(file).exists():
            Path(file).unlink()
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    os.fdatasync, os.pwritev = fdatasync, pwritev


def full(file: str) -> None:
    """The fallback where no small file system may be mounted; SQLite's own writes go on."""
    real_write, real_allocate, real_space = os.write, os.posix_fallocate, os.statvfs
    real_pwrite, real_pwritev = os.pwrite, os.pwritev

    def refuse() -> None:
        if Path(file).exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write(descriptor: int, data: Any) -> int:
        # What has its size already (a pipe, the terminal) needs no space.
        if os.fstat(descriptor).st_nlink and os.path.isfile(f"/proc/self/fd/{descriptor}"):
            refuse()
        return real_write(descriptor, data)

    def pwrite(descriptor: int, data: Any, offset: int) -> int:
        if os.fstat(descriptor).st_size < offset + len(data):  # log.end has its size already
            refuse()
        return real_pwrite(descriptor, data, offset)

    def pwritev(descriptor: int, buffers: Any, offset: int, flags: int = 0) -> int:
        refuse()
        return real_pwritev(descriptor, buffers, offset, flags)

    def allocate(descriptor: int, offset: int, length: int) -> None:
        refuse()
        real_allocate(descriptor, offset, length)

    def space(path: Any) -> Any:
        real = real_space(path)
        free = 0 if Path(file).exists() else real.f_bavail
        return SimpleNamespace(f_bavail=free, f_bfree=free, f_frsize=real.f_frsize, f_bsize=real.f_bsize)

    os.write, os.pwrite, os.pwritev = write, pwrite, pwritev  # type: ignore[assignment]
    os.posix_fallocate, os.statvfs = allocate, space  # type: ignore[assignment]


FAULTS = {"lie": lie, "sync": sync, "full": full}

if __name__ == "__main__":
    FAULTS[sys.argv[1]](sys.argv[2])
    sys.exit(main(sys.argv[3:]))
