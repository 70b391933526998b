"""Any member shows the receives of the whole cluster, with the addresses of their clients."""

import msgspec

from elasticq.admin import asking, consumers
from elasticq.admin.source import Waiting
from elasticq.peers.questions import BODY_BYTES_MAX
from tests.admin.member import IDS, trio

OWN = Waiting("000000000000", "jobs", 9_000, "n1", "10.0.0.9")
OF_OTHER = Waiting("000000000000", "jobs", 8_000, "n2", "")


async def test_all_members_show_the_same_receives_with_the_addresses_of_their_clients() -> None:
    members = trio()
    members["n1"].receives = [(OWN, ("", 0)), (OF_OTHER, (IDS["n2"], 7)), (OF_OTHER, (IDS["n3"], 1))]
    members["n2"].addresses = {7: "10.0.0.7"}
    shown = [OWN, msgspec.structs.replace(OF_OTHER, address="10.0.0.7"), OF_OTHER]
    for member in members.values():
        assert await consumers.of_cluster(member, 10) == shown
    assert await consumers.of_cluster(members["n3"], 1) == [OWN]


async def test_a_process_that_does_not_answer_leaves_addresses_unknown() -> None:
    members = trio()
    members["n1"].receives = [(OF_OTHER, (IDS["n2"], 7))]
    members["n1"].linked = {}
    assert await consumers.of_cluster(members["n1"], 10) == [OF_OTHER]
    members["n2"].linked = {}
    assert await consumers.of_cluster(members["n2"], 10) == []


async def test_malformed_questions_are_refused() -> None:
    [member, *_] = trio().values()
    for kind in (consumers.WAITING, consumers.ADDRESSES):
        for body in (b"", b"x", b'"1"', b"[-1]", b"[" * 2_000):
            assert (await asking.answer(member, kind, body))[0] == 400


def test_an_answer_has_as_many_items_as_fit_into_a_frame() -> None:
    items = [Waiting("000000000000", "q" * 80, number, "n1", "") for number in range(2_000)]
    body = consumers.fitting(items)
    found = msgspec.json.decode(body, type=list[Waiting])
    assert len(body) <= BODY_BYTES_MAX
    assert 100 < len(found) < 2_000
    assert found == items[: len(found)]
    assert consumers.fitting([]) == b"[]"
