"""The socket of the SQS port: bound by this process, or inherited from a supervisor or from systemd.

A supervisor is supervisor.py. systemd uses its socket activation, sd_listen_fds(3). An inherited socket outlives this
process, so clients that connect during a restart wait in its backlog.
"""

import errno
import os
import socket
import sys
from threading import Thread
from typing import Final

from elasticq.runtime.listener import listen

EXIT_FAILURE: Final = 1
EXIT_PORT_TAKEN: Final = 3
SUPERVISED: Final = "ELASTICQ_SUPERVISED_FD"
"""The environment variable in which a supervisor passes the number of the socket's file descriptor."""
_FIRST_ACTIVATED_FD: Final = 3


def sqs_listener(host: str, port: int, backlog: int) -> socket.socket:
    """Return the inherited socket if there is one, else a new one. Raise OSError if the port cannot be bound."""
    inherited = _inherited_fd()
    if inherited is None:
        return listen(host, port, backlog)
    listener = socket.socket(fileno=inherited)
    listener.setblocking(False)
    return listener


def is_supervised() -> bool:
    """Return whether this process is the child of a supervisor."""
    return SUPERVISED in os.environ


def _inherited_fd() -> int | None:
    descriptor = os.environ.get(SUPERVISED, "")
    if descriptor:
        Thread(target=end_with_parent, name="supervisor", daemon=True).start()
        return int(descriptor)
    # The variables name the process that they are for, because its children inherit them.
    is_activated = os.environ.get("LISTEN_PID") == str(os.getpid()) and os.environ.get("LISTEN_FDS", "0") != "0"
    return _FIRST_ACTIVATED_FD if is_activated else None


def end_with_parent() -> None:
    """End this process at once when standard input ends. The kernel closes it when the parent dies."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(EXIT_FAILURE)


def not_listening(host: str, port: int, flag: str, error: OSError) -> int:
    """Print why the process cannot listen on a port. Return the exit status."""
    address = f"{host}:{port}"
    if error.errno == errno.EADDRINUSE:
        print(f"elasticq: {address} is taken by another process; choose another with {flag}", file=sys.stderr)
        return EXIT_PORT_TAKEN
    print(f"elasticq: cannot listen on {address}: {error.strerror or error}", file=sys.stderr)
    return EXIT_FAILURE
