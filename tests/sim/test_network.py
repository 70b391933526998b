"""The simulated network: cuts are one way, nest, and end; frames may come twice."""

from collections.abc import Callable
from random import Random

from elasticq.sim.network import Network


def network(arrived: list[tuple[str, str, bytes]], **shares: float) -> Network:
    def at_once(delay_us: int, action: Callable[[], None]) -> None:
        assert delay_us > 0
        action()

    made = Network(Random(1), at_once, lambda sender, to, data: arrived.append((sender, to, data)))
    for name, share in shares.items():
        setattr(made, name, share)
    return made


def test_cut_stops_one_direction() -> None:
    arrived: list[tuple[str, str, bytes]] = []
    net = network(arrived)
    net.cut("a", "b")
    net.send("a", "b", b"lost")
    net.send("b", "a", b"came")
    assert arrived == [("b", "a", b"came")]


def test_link_cut_twice_needs_mending_twice() -> None:
    arrived: list[tuple[str, str, bytes]] = []
    net = network(arrived)
    net.cut("a", "b")
    net.cut("a", "b")
    net.mend("a", "b")
    net.send("a", "b", b"lost")
    net.mend("a", "b")
    net.send("a", "b", b"came")
    assert arrived == [("a", "b", b"came")]


def test_duplicated_frame_comes_twice() -> None:
    arrived: list[tuple[str, str, bytes]] = []
    network(arrived, duplicate_share=1.0).send("a", "b", b"again")
    assert arrived == [("a", "b", b"again")] * 2


def test_mended_network_loses_nothing() -> None:
    arrived: list[tuple[str, str, bytes]] = []
    net = network(arrived, loss_share=1.0)
    net.bursts = 2
    net.send("a", "b", b"lost")
    net.mend_all()
    net.send("a", "b", b"came")
    assert arrived == [("a", "b", b"came")]
