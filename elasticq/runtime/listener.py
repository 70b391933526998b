"""Binds a listening socket before anything is built on it, so that a port in use is found at once."""

import socket


def listen(host: str, port: int, backlog: int) -> socket.socket:
    """Return a non-blocking socket; clients wait in its backlog until it is served. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(backlog)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
