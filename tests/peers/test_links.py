"""The links of a member: who claims a place among them, since when the member stands, and what went over them."""

import asyncio

from elasticq.node.membership.peer import Peer
from elasticq.peers.admission import Claim
from elasticq.peers.connection import Connection
from elasticq.peers.link import Link
from elasticq.peers.links import Links
from elasticq.peers.messages import Hello
from tests.peers.community import Member, make_peer

STARTED_S = 5.0


def made(peer: Peer) -> Link:
    """A link to that process, over a connection that was never made."""
    member, loop = Member("own"), asyncio.get_running_loop()
    connection = Connection(member.peers, loop, 1_000_000, is_dialler=True)
    theirs = Hello(1, 1, "link", False, b"", 0, 0, peer)
    return Link(member.peers, loop, connection, theirs, member.id, member.receive)


async def test_a_link_is_found_by_its_member_until_it_is_removed() -> None:
    links, link = Links(STARTED_S), made(make_peer("a"))
    assert not links.has(link.peer.id)
    assert links.live(link.peer.id) is None
    links.add(link, 7.0)
    assert links.has(link.peer.id)
    assert links.live(link.peer.id) is link
    links.remove(link)
    assert links.by_id == {}


async def test_a_link_that_is_being_closed_is_known_but_not_live_and_claims_nothing() -> None:
    links, link = Links(STARTED_S), made(make_peer("a"))
    links.add(link, 7.0)
    assert links.claimants(link.peer) == [link]
    link.connection.abort()
    assert links.has(link.peer.id)
    assert links.live(link.peer.id) is None
    assert links.claimants(link.peer) == []


async def test_who_has_the_name_or_the_id_of_a_process_is_a_claimant() -> None:
    links = Links(STARTED_S)
    by_id, by_name, other = (
        made(peer) for peer in (make_peer("a"), make_peer("n", id="another"), make_peer("b", incarnation="boot of a"))
    )
    for link in (by_id, by_name, other):
        links.add(link, 7.0)
    assert links.claimants(make_peer("n", id=by_id.peer.id)) == [by_id, by_name]


async def test_a_process_stands_since_its_first_link_until_it_has_none() -> None:
    links, first, second = Links(STARTED_S), made(make_peer("a")), made(make_peer("b"))
    assert links.claim("boot", 6.0) == Claim(6.0, STARTED_S, "boot")
    links.add(first, 7.0)
    links.add(second, 8.0)
    assert links.claim("boot", 9.0) == Claim(7.0, STARTED_S, "boot")
    links.remove(first)
    assert links.claim("boot", 9.0) == Claim(7.0, STARTED_S, "boot")
    links.remove(second)
    assert links.claim("boot", 9.0) == Claim(9.0, STARTED_S, "boot")
    links.add(first, 10.0)
    assert links.claim("boot", 11.0) == Claim(10.0, STARTED_S, "boot")


async def test_counts_are_those_of_links_that_stand_and_of_those_that_have_ended() -> None:
    links, old, new, other = Links(STARTED_S), *(made(make_peer(name)) for name in "aab")
    for link, sent in ((old, 1), (new, 10), (other, 100)):
        link.frames_sent, link.frames_received = sent, sent * 2
        link.connection.bytes_sent, link.connection.bytes_received = sent * 3, sent * 4
        links.add(link, 7.0)
    links.count_ended(old)
    expected = {"bytes_sent": 333, "bytes_received": 444, "frames_sent": 111, "frames_received": 222}
    assert links.totals() == expected
    links.count_ended(other)
    links.remove(other)
    assert links.totals() == expected
