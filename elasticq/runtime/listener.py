"""A listening socket that is taken before anything is built on it: a taken port is found at once."""

import socket


def listen(host: str, port: int, backlog: int) -> socket.socket:
    """Non-blocking; clients wait in the backlog until somebody serves it. Raises OSError."""
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
