"""Both ends judge alike which link and which process stays."""

import itertools

import pytest

from elasticq.peers.admission import Claim, is_elder, is_rival, proxies_max, replaces
from tests.peers.community import make_peer


def test_processes_are_rivals_by_name_or_id_and_not_to_themselves() -> None:
    peer = make_peer("a")
    assert not is_rival(peer, peer)
    assert not is_rival(peer, make_peer("b"))
    assert is_rival(peer, make_peer("a", incarnation="other"))
    assert is_rival(peer, make_peer("a", id="a-2", incarnation="other"))


@pytest.mark.parametrize(
    ("elder", "younger"),
    [
        (Claim(10, 5, "b"), Claim(20, 1, "a")),  # a paused process has lost its links, its heir stands
        (Claim(20, 1, "b"), Claim(20.5, 5, "a")),
        (Claim(20, 5, "a"), Claim(20.5, 5.5, "b")),
    ],
)
def test_who_stands_longer_is_elder_then_who_runs_longer_then_the_lower_boot(elder: Claim, younger: Claim) -> None:
    assert is_elder(elder, younger)
    assert not is_elder(younger, elder)


def test_exactly_one_of_two_links_dialled_at_once_stays() -> None:
    for new, old in itertools.permutations("ab"):
        assert replaces(new, old) != replaces(old, new)
    assert replaces("a", "a")


def test_proxies_leave_room_for_members_and_for_those_that_have_proved_nothing_yet() -> None:
    assert proxies_max(768, 256) == 768 - 256 - 64
    assert proxies_max(64, 32) == 16
    assert proxies_max(2, 1) == 1
