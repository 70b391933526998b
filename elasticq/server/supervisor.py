"""A small parent process that keeps the SQS port open, and restarts the serving process when a signal killed it.

Clients that connect during a restart wait in the port's backlog, so they see only a slow call. The supervisor restarts
a killed process up to ``RESTARTS_MAX`` times in ``RESTARTS_S`` seconds. After any other exit status it ends, too.
SIGTERM and SIGINT stop both processes. SIGHUP restarts the serving process gracefully, with the current settings,
certificates and code. If the supervisor dies, the serving process ends at once. No acknowledged message is lost.
"""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from types import FrameType
from typing import Final

from elasticq.runtime.listener import listen
from elasticq.server.files import raise_file_limit, shares
from elasticq.server.notify import STOPPING, notify
from elasticq.server.ports import EXIT_FAILURE, SUPERVISED, not_listening
from elasticq.server.renewal import has_terminal
from elasticq.server.settings import Settings

RESTARTS_MAX: Final = 5
RESTARTS_S: Final = 30.0
EXIT_SIGNALLED: Final = 128
"""If a signal killed the serving process, the exit status is this plus the signal's number, as in shells."""


def supervise(settings: Settings, command: Sequence[str]) -> int:
    """Listen on the SQS port, run ``command`` on it, and restart it when it is killed. Return the exit status."""
    http = settings.http
    backlog = shares(raise_file_limit(), http.connections_max).backlog
    try:
        listener = listen(http.host, http.port, backlog)
    except OSError as error:
        return not_listening(http.host, http.port, "--port", error)
    with listener:
        return _Supervisor(command, listener.fileno()).run()


class _Supervisor:
    def __init__(self, command: Sequence[str], fd: int) -> None:
        self._command = command
        self._fd = fd
        self._child: subprocess.Popen[bytes] | None = None
        self._is_stopping = False
        self._is_restarting = False
        self._killed_s: deque[float] = deque(maxlen=RESTARTS_MAX)

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        # A terminal that is closed sends SIGHUP, too, but means a stop.
        signal.signal(signal.SIGHUP, self._stop if has_terminal() else self._restart)
        while True:
            try:
                status = self._serve()
            except OSError as error:
                print(f"elasticq: the serving process cannot be started: {error}", file=sys.stderr)
                return EXIT_FAILURE
            if self._is_stopping and status == -signal.SIGTERM:
                return 0  # the signal came before the child had its handler
            if self._is_stopping or not (self._is_restarting or status < 0):
                return status if status >= 0 else EXIT_SIGNALLED - status
            if self._is_restarting:
                self._is_restarting = False
                print("elasticq: SIGHUP came: the serving process is being restarted", file=sys.stderr)
                continue
            killed = f"elasticq: signal {-status} killed the serving process"
            now_s = time.monotonic()
            if len(self._killed_s) == RESTARTS_MAX and now_s - self._killed_s[0] < RESTARTS_S:
                often = f"{RESTARTS_MAX} times within {RESTARTS_S:g} s"
                print(f"{killed}; it was restarted {often} already, so the supervisor ends", file=sys.stderr)
                return EXIT_SIGNALLED - status
            print(f"{killed}; it is being restarted", file=sys.stderr)
            self._killed_s.append(now_s)

    def _serve(self) -> int:
        """Run the serving process to its end. Return its exit status, below 0 if a signal killed it."""
        # The child has a session of its own: only the supervisor gets Ctrl-C at a terminal, and passes it on once.
        with subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            pass_fds=(self._fd,),
            env={**os.environ, SUPERVISED: str(self._fd)},
            start_new_session=True,
        ) as child:
            self._child = child
            if self._is_stopping or self._is_restarting:  # the signal came before there was a child
                child.terminate()
            status = child.wait()
            self._child = None
            return status

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True
        notify(STOPPING)
        self._terminate()

    def _restart(self, number: int, frame: FrameType | None) -> None:
        self._is_restarting = True
        self._terminate()

    def _terminate(self) -> None:
        if self._child is not None:
            self._child.terminate()
