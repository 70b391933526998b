"""Calls that wait for a master: in order, for a time, and not too many."""

from elasticq.model import commands as c
from elasticq.node.lobby import LOBBY_MAX, Lobby
from tests.node.cluster import call_of

CALL = call_of(c.ListQueues())


def test_calls_come_out_in_the_order_in_which_they_came() -> None:
    lobby = Lobby(3_000)
    assert not lobby
    for ticket in range(5):
        assert lobby.hold(CALL, ticket, 10 * ticket)
    assert lobby
    assert lobby.take_all() == [(CALL, ticket) for ticket in range(5)]
    assert not lobby
    assert lobby.take_all() == []


def test_each_waits_for_its_own_time() -> None:
    lobby = Lobby(3_000)
    lobby.hold(CALL, "first", 0)
    lobby.hold(CALL, "second", 100)
    assert lobby.next_deadline_ms() == 3_000
    assert lobby.pop_expired(2_999) is None
    assert lobby.pop_expired(3_000) == (CALL, "first")
    assert lobby.pop_expired(3_000) is None
    assert lobby.next_deadline_ms() == 3_100


def test_who_left_waits_no_longer() -> None:
    lobby = Lobby(3_000)
    for ticket in ("first", "second", "third"):
        lobby.hold(CALL, ticket, 0)
    lobby.cancel("second")
    lobby.cancel("nobody")
    assert [ticket for _, ticket in lobby.take_all()] == ["first", "third"]
    assert lobby.next_deadline_ms() is None


def test_no_more_than_its_bound_wait() -> None:
    lobby = Lobby(3_000)
    assert all(lobby.hold(CALL, ticket, 0) for ticket in range(LOBBY_MAX))
    assert not lobby.hold(CALL, "one more", 0)
    lobby.pop_expired(3_000)
    assert lobby.hold(CALL, "one more", 3_000)
