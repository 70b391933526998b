"""A server as a process of its own, on a port from the kernel."""

import re
import resource
import signal
import subprocess
import sys
from types import TracebackType

PATIENCE_S = 30


class Server:
    """Started on entry, killed on exit; ``url`` is what it printed. Keeps nothing unless told where."""

    def __init__(self, *arguments: str, files_max: int = 0) -> None:
        """``files_max``: how many files the process may open; 0: as many as this one."""
        self._files_max = files_max
        self._arguments = (
            arguments if "--data-dir" in arguments or "--memory" in arguments else (*arguments, "--memory")
        )

    def __enter__(self) -> "Server":
        self.process = subprocess.Popen(
            [sys.executable, "-m", "elasticq", "--port", "0", "--admin-port", "0", *self._arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=self._limit if self._files_max else None,
        )
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        self.export = self.process.stdout.readline().strip()
        found = re.fullmatch(r"elasticq listening on (https?://\S+):(\d+)\n", first)
        assert found, (first, self.process.stderr and self.process.stderr.read())
        self.port = int(found[2])
        self.url = f"{found[1]}:{self.port}"
        return self

    def admin(self) -> str:
        """Return the admin port's URL, which is among the lines that were not read yet."""
        assert self.process.stdout is not None
        return next(line for line in self.process.stdout if line.startswith("admin listening on ")).split()[-1]

    def _limit(self) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._files_max, self._files_max))

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send the signal; the exit status."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.communicate()
