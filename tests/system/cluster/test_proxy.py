"""The harness's network does what its name says, before a cluster is judged by it."""

import socket
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.system.cluster.proxy import HOST, Network

QUIET_S = 0.3
ANSWER_S = 10


class Line:
    """A connection from a to b by the relay: two ends to write to and read from."""

    def __init__(self, listener: socket.socket, port: int) -> None:
        self.listener = listener
        self.near = socket.create_connection((HOST, port), ANSWER_S)
        self._far: socket.socket | None = None

    @property
    def far(self) -> socket.socket:
        if self._far is None:
            self._far, _ = self.listener.accept()
            self._far.settimeout(ANSWER_S)
        return self._far

    def close(self) -> None:
        self.near.close()
        if self._far:
            self._far.close()


@pytest.fixture
def network() -> Iterator[Network]:
    network = Network()
    yield network
    network.end()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with closing(socket.create_server((HOST, 0))) as listener:
        listener.settimeout(ANSWER_S)
        yield listener


@pytest.fixture
def port(network: Network, listener: socket.socket) -> int:
    return network.link("a", "b", listener.getsockname()[1])


@pytest.fixture
def line(listener: socket.socket, port: int) -> Iterator[Line]:
    with closing(Line(listener, port)) as line:
        line.near.sendall(b"first")
        assert line.far.recv(100) == b"first"
        yield line


def is_quiet(end: socket.socket) -> bool:
    end.settimeout(QUIET_S)
    try:
        return not end.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    finally:
        end.settimeout(ANSWER_S)


def has_ended(end: socket.socket) -> bool:
    """Closed or reset, and nothing came before."""
    try:
        return not end.recv(100)
    except ConnectionError:
        return True


def test_bytes_pass_both_ways(line: Line, network: Network) -> None:
    line.far.sendall(b"answer")
    assert line.near.recv(100) == b"answer"
    assert (network.passed_bytes("a", "b"), network.passed_bytes("b", "a")) == (5, 6)


def test_held_direction_is_silent_and_the_other_passes(line: Line, network: Network) -> None:
    network.set("a", "b", "hold")
    line.near.sendall(b"later")
    line.far.sendall(b"now")
    assert line.near.recv(100) == b"now"
    assert is_quiet(line.far)
    network.set("a", "b")
    assert line.far.recv(100) == b"later"


def test_connection_opened_while_held_arrives_afterwards(network: Network, listener: socket.socket, port: int) -> None:
    network.set("a", "b", "hold")
    with closing(Line(listener, port)) as line:
        line.near.sendall(b"hello")
        assert is_quiet(line.near)
        network.set("a", "b")
        assert line.far.recv(100) == b"hello"


def test_end_of_a_held_connection_is_told_later(line: Line, network: Network) -> None:
    network.set("a", "b", "hold")
    line.near.close()
    assert is_quiet(line.far)
    network.set("a", "b")
    assert line.far.recv(100) == b""


def test_swallowed_bytes_vanish_and_their_connection_ends(line: Line, network: Network) -> None:
    network.set("a", "b", "swallow")
    line.near.sendall(b"gone")
    assert is_quiet(line.far)
    network.set("a", "b")
    assert has_ended(line.far)


def test_closed_link_tells_both_ends(line: Line, network: Network) -> None:
    assert network.close("a", "b") == 2
    for end in (line.near, line.far):
        assert has_ended(end)


def test_delayed_bytes_come_late_and_in_order(line: Line, network: Network) -> None:
    network.set("a", "b", delay_ms=200, jitter_ms=50)
    began_s = time.monotonic()
    for number in range(10):
        line.near.sendall(b"%d" % number)
    received = b""
    while len(received) < 10:
        received += line.far.recv(100)
    assert received == b"0123456789"
    assert time.monotonic() - began_s >= 0.15


def test_throttled_bytes_take_their_time(line: Line, network: Network) -> None:
    network.set("a", "b", bytes_per_s=100_000)
    began_s = time.monotonic()
    line.near.sendall(b"x" * 50_000)
    received = 0
    while received < 50_000:
        received += len(line.far.recv(65_536))
    assert time.monotonic() - began_s >= 0.4


def test_target_that_is_not_there_closes_the_dial(network: Network) -> None:
    with closing(socket.create_server((HOST, 0))) as gone:
        dead_port = gone.getsockname()[1]
    port = network.link("a", "c", dead_port)
    with closing(socket.create_connection((HOST, port), ANSWER_S)) as dial:
        assert has_ended(dial)
