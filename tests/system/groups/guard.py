"""Another system that is written to under tokens: a file for each resource, which refuses smaller tokens."""

import fcntl
import os
from pathlib import Path

DIGITS = 20


class Guard:
    """Files in a directory that any process may write to."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory

    def write(self, resource: str, token: int, text: str) -> bool:
        """Append a line, or return False: somebody wrote with a greater token."""
        file = os.open(self._directory / resource.replace("/", "-"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if token < int(os.pread(file, DIGITS, 0) or b"0"):
                return False
            os.pwrite(file, b"%0*d\n" % (DIGITS, token), 0)
            os.lseek(file, 0, os.SEEK_END)
            os.write(file, f"{token} {text}\n".encode())
        finally:
            os.close(file)
        return True

    def stale(self) -> list[str]:
        """Return the accepted lines that came after one with a greater token."""
        found = []
        for path in sorted(self._directory.iterdir()):
            greatest = 0
            for line in path.read_text().splitlines()[1:]:
                token = int(line.partition(" ")[0])
                if token < greatest:
                    found.append(f"{path.name}: {line} after {greatest}")
                greatest = max(greatest, token)
        return found

    def lines(self) -> int:
        """Return how many writes were accepted."""
        return sum(len(path.read_text().splitlines()) - 1 for path in self._directory.iterdir())
