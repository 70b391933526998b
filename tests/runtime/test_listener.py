"""A listening socket: taken at once, and clients may come before anybody serves it."""

import socket

import pytest

from elasticq.runtime.listener import listen


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_clients_wait_until_somebody_accepts(host: str) -> None:
    with listen(host, 0, 8) as listener:
        assert not listener.getblocking()
        with socket.create_connection(listener.getsockname()[:2], 10) as client:
            client.sendall(b"hello")
            listener.settimeout(10)
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.recv(5) == b"hello"


def test_a_port_that_is_taken_is_an_error_at_once() -> None:
    with listen("127.0.0.1", 0, 8) as first, pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", first.getsockname()[1], 8)
