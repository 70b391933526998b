"""Listening sockets, bound before the server is built, so that a port in use is found at once."""

import socket


def listen(host: str, port: int, backlog: int) -> socket.socket:
    """Return a non-blocking socket. Clients wait in its backlog until it is served. Raise OSError."""
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
