"""What a member tells others of its address: one that they can reach, and none that only looks like one."""

import pytest

from elasticq.peers.addresses import OwnAddress
from tests.peers.community import make_peer

HOME, OPEN, OPEN_6, GIVEN, GIVEN_HOST = (
    ("10.0.0.1", ""),
    ("0.0.0.0", ""),
    ("::", ""),
    ("0.0.0.0", "elastic.example:9000"),
    ("", "elastic.example:0"),
)


@pytest.mark.parametrize(
    ("settings", "assumed", "spoken", "announced"),
    [
        (HOME, "10.0.0.1:71", "10.0.0.1:71", "10.0.0.1:71"),
        (OPEN, "127.0.0.1:71", "10.0.0.9:71", ""),
        (OPEN_6, "127.0.0.1:71", "10.0.0.9:71", ""),
        (GIVEN, "elastic.example:9000", "elastic.example:9000", "elastic.example:9000"),
        (GIVEN_HOST, "elastic.example:71", "elastic.example:71", "elastic.example:71"),
    ],
)
def test_an_address_is_told_by_the_way_over_which_it_is_heard(
    settings: tuple[str, str], assumed: str, spoken: str, announced: str
) -> None:
    address, own = OwnAddress(*settings, port=0), make_peer("a")
    address.port = 71
    assert address.assumed() == assumed
    assert address.spoken(own, "10.0.0.9").address == spoken
    assert address.announced(own).address == announced


def test_a_connection_of_unknown_ends_is_taken_for_one_within_the_machine() -> None:
    assert OwnAddress(*OPEN, port=71).spoken(make_peer("a"), "").address == "127.0.0.1:71"
    assert OwnAddress(*OPEN, port=71).spoken(make_peer("a"), "::1").address == "[::1]:71"


@pytest.mark.parametrize("settings", [HOME, OPEN, GIVEN])
def test_an_address_that_the_member_gives_itself_is_told_as_it_is(settings: tuple[str, str]) -> None:
    own = make_peer("a", address="known.example:1")
    address = OwnAddress(*settings, port=71)
    assert address.spoken(own, "10.0.0.9") is own
    assert address.announced(own) is own


def test_nothing_but_the_address_is_changed() -> None:
    own = make_peer("a", address="0.0.0.0:71")
    told = OwnAddress(*HOME, port=71).spoken(own, "")
    assert told == make_peer("a", address="10.0.0.1:71")
