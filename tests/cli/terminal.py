"""A command of elasticq in a real pseudo-terminal."""

import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from fcntl import ioctl
from types import TracebackType

from tests.server.process import PATIENCE_S

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def plain(text: str) -> str:
    """The text without escape sequences."""
    return ESCAPE.sub("", text)


class Terminal:
    """A terminal in which ``elasticq ARGUMENTS`` runs; killed on exit."""

    def __init__(self, *arguments: str, columns: int = 80, rows: int = 24) -> None:
        self._master, terminal = pty.openpty()
        self.output = ""
        self._size(columns, rows)
        environment = {
            name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "elasticq", *arguments],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=environment | {"TERM": "xterm"},
            preexec_fn=lambda: _control(terminal),
        )
        os.close(terminal)

    def _size(self, columns: int, rows: int) -> None:
        ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        """The kernel sends SIGWINCH to the foreground process."""
        self._size(columns, rows)

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def read_until(self, is_seen: Callable[[str], bool]) -> str:
        """Read on; return all output so far when it fulfils the condition."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not is_seen(self.output):
            assert time.monotonic() < deadline_s, self.output
            assert self._read(), self.output
        return self.output

    def rest(self) -> tuple[int, str]:
        """The exit status and all output, when the command has ended."""
        while self._read():
            pass
        return self.process.wait(PATIENCE_S), self.output

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], PATIENCE_S)
        assert ready, self.output
        try:
            got = os.read(self._master, 65_536)
        except OSError:  # the last process has closed the terminal
            return False
        self.output += got.decode(errors="replace").replace("\r\n", "\n")
        return bool(got)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._master)


def _control(terminal: int) -> None:
    os.setsid()
    ioctl(terminal, termios.TIOCSCTTY, 0)
