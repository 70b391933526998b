"""The machine's own noise: a process that only sleeps and sends one byte to another process and back.

python -m tests.system.siege.control writes a line for each round that took longer than a quiet machine needs: when it
began, in monotonic seconds, and by how much it was longer. It ends when its standard input is closed.
"""

import os
import select
import socket
import sys
import time
from typing import Final

SLEEP_S: Final = 0.05
QUIET_S: Final = 0.002


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        _echo(listener)
        os._exit(0)
    line = socket.create_connection(listener.getsockname())
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    began_s = time.monotonic()
    while not select.select([sys.stdin], [], [], SLEEP_S)[0]:
        line.sendall(b"x")
        line.recv(1)
        ended_s = time.monotonic()
        if ended_s - began_s > SLEEP_S + QUIET_S:
            print(began_s, ended_s - began_s - SLEEP_S, flush=True)
        began_s = ended_s


def _echo(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := connection.recv(1):
        connection.sendall(data)


if __name__ == "__main__":
    main()
