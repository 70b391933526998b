"""What GET /cluster tells of the master, by the view of one member."""

import pytest

from elasticq.admin.cluster import document
from tests.admin.member import IDS, status_of


def test_the_master_has_the_name_that_it_was_started_with() -> None:
    told = document("first", status_of("n1"))
    assert (told["node"], told["master"], told["role"]) == ("first", "first", "master")


def test_a_follower_tells_the_masters_name_and_each_member_by_its_id() -> None:
    told = document("n2", status_of("n2", digests={118: "ab12"}))
    assert (told["master"], told["stale_ms"], told["digests"]) == ("n1", 4_000, {"118": "ab12"})
    members = told["members"]
    assert isinstance(members, list)
    assert [(member["id"], member["lag"]) for member in members] == [(IDS["n1"], 0), (IDS["n2"], 0), (IDS["n3"], 4)]


@pytest.mark.parametrize(("master", "name"), [(None, None), ("n-9-0123456789abcdef", "n-9"), ("nameless", "nameless")])
def test_of_a_master_that_was_never_met_its_id_tells_the_name(master: str | None, name: str | None) -> None:
    told = document("n2", status_of("n2", master=master))
    assert (told["master"], told["master_admin"]) == (name, None)
