"""The comparison of all members' rows, in words."""

from elasticq.admin.comparison import compare, verdict
from elasticq.node.digests import DAMAGED, INCOMPLETE
from tests.admin.member import IDS, Member


def members(**digests: str) -> Member:
    """Return n1, with links to the others that are named."""
    found = {name: Member(name, digests={1_624: digest} if digest else {}) for name, digest in digests.items()}
    first = found["n1"]
    first.linked = {IDS[name]: member for name, member in found.items()}
    first.with_members(**{name: {"is_linked": name in found} for name in IDS})
    return first


async def test_equal_rows_are_said_to_be_equal_with_all_names() -> None:
    told = await compare(members(n1="a", n2="a", n3="a"), "digest at 1624")
    assert told == (True, "All rows are equal on n1, n2, n3 (entry 1,624 of the log).")


async def test_a_member_without_a_link_is_named() -> None:
    told = await compare(members(n1="a", n2="a"), "digest at 1624")
    words = "All rows are equal on n1, n2 (entry 1,624 of the log). Not compared, because there is no link to them: n3."
    assert told == (True, words)


async def test_the_members_that_differ_are_named() -> None:
    is_equal, words = await compare(members(n1="a" * 32, n2="b" * 32, n3="a" * 32), "digest at 1624")
    assert is_equal is False
    assert words == f"Rows differ (entry 1,624 of the log): n1, n3 have {'a' * 8}; n2 have {'b' * 8}."


def test_damaged_and_unfinished_ones_are_no_difference() -> None:
    assert verdict({"n1": "a", "n2": DAMAGED}, [])[1].startswith("n2 cannot read some of its rows")
    assert verdict({"n1": "a", "n2": INCOMPLETE}, [])[1].startswith("n2 restarted during the comparison")


async def test_a_server_alone_has_nothing_to_compare() -> None:
    alone = Member("n1", members=(), voters=(), digests={7: "a"})
    assert await compare(alone, "digest at 7") == (
        True,
        "This server is not in a cluster: there is nothing to compare.",
    )
