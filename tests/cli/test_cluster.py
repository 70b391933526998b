"""elasticq cluster, against admin ports of members that are only what the test says."""

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from elasticq.admin.port import AdminPort
from elasticq.admin.source import Event
from elasticq.cli import main
from elasticq.node.digests import INCOMPLETE
from elasticq.node.orders import (
    AddVoter,
    Order,
    OrderDone,
    OrderOutcome,
    OrderRefused,
    RemoveVoter,
    ReplaceVoter,
    TransferMastership,
    VerifyRows,
)
from tests.admin.member import IDS, Member

PATIENCE_S = 30


class Trio:
    """Three members with an admin port each; n1 is the master."""

    def __init__(self) -> None:
        self.members = {name: Member(name) for name in IDS}
        self.ports = {name: AdminPort(member, "127.0.0.1", 0) for name, member in self.members.items()}
        urls = {name: {"admin": self.url(name)} for name in IDS}
        for member in self.members.values():
            member.with_members(**urls)
            member.linked = {other.seen.member_id: other for other in self.members.values() if other is not member}

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.ports[name].port}"

    def note(self, name: str, index: int, digest: str) -> None:
        """The member applied an order to verify."""
        member = self.members[name]
        member.seen = replace(member.seen, digests={**member.seen.digests, index: digest})

    def verify_by(self, *noting: tuple[str, str]) -> None:
        """The order is answered when these members noted their digests at index 121."""

        async def verify(order: Order) -> OrderOutcome:
            for name, digest in noting:
                self.note(name, 121, digest)
            return OrderDone("index 121")

        self.members["n1"].outcome = verify


@pytest_asyncio.fixture
async def trio() -> AsyncIterator[Trio]:
    trio = Trio()
    for port in trio.ports.values():
        await port.start()
    yield trio
    for port in trio.ports.values():
        await port.stop()


async def run(*arguments: str) -> int:
    """The command beside the loop that the ports answer in; its exit status."""
    return await asyncio.wait_for(asyncio.to_thread(main, ["cluster", *arguments]), PATIENCE_S)


async def test_status_shows_a_line_per_member(trio: Trio, capsys: pytest.CaptureFixture[str]) -> None:
    trio.members["n2"].with_members(n3={"lag": None, "is_linked": False, "admin": ""})
    assert await run("status", "--admin", trio.url("n2")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "n2 is follower, ready"
    assert lines[1] == f"cluster {'c' * 16}  master n1  term 7  commit 120  applied 119"
    assert lines[2] == "this member has not heard from a master for 4 s: the rest may be old"
    table = [line.split() for line in lines[4:]]
    assert table[0] == ["NAME", "ROLE", "VOTER", "LINKED", "LAG", "MEMBER"]
    assert table[1] == ["n1", "master", "yes", "yes", "0", IDS["n1"]]
    assert table[3] == ["n3", "follower", "yes", "no", "?", IDS["n3"]]
    assert table[4:6] == [[], ["NAME", "PEERS", "SQS", "ADMIN"]]
    assert table[8] == ["n3", "10.0.0.3:9326", "http://10.0.0.3:9324", "-"]


async def test_status_tells_what_is_wrong(trio: Trio, capsys: pytest.CaptureFixture[str]) -> None:
    member = trio.members["n2"]
    member.seen = replace(member.seen, ready=False, reason="read-only: 1 of 3", master=None, cluster_id="", discarded=2)
    member.with_members(n3={"replaces": "n3-old", "voter": False})
    assert await run("status", "--admin", trio.url("n2")) == 0
    told = capsys.readouterr().out
    assert "n2 is follower, not ready: read-only: 1 of 3\n" in told
    assert "cluster (none yet)  master (none)" in told
    assert "though acknowledged: 2\n" in told
    assert "elasticq cluster replace n3\n" in told


async def test_status_as_json_is_the_page(trio: Trio, capsys: pytest.CaptureFixture[str]) -> None:
    assert await run("status", "--json", "--admin", trio.url("n1")) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["node"], len(document["members"])) == ("n1", 3)


@pytest.mark.parametrize("asked", ["n1", "n3"])
@pytest.mark.parametrize(
    ("arguments", "order"),
    [
        (["add", "n4"], AddVoter("n4")),
        (["remove", "n3"], RemoveVoter("n3")),
        (["replace", "n3"], ReplaceVoter("n3")),
        (["transfer", "n2"], TransferMastership("n2")),
        (["transfer"], TransferMastership()),
    ],
)
async def test_orders_go_to_the_master_whoever_is_asked(
    trio: Trio, capsys: pytest.CaptureFixture[str], arguments: list[str], order: Order, asked: str
) -> None:
    assert await run(*arguments, "--admin", trio.url(asked)) == 0
    assert {name: member.orders for name, member in trio.members.items()} == {"n1": [order], "n2": [], "n3": []}
    assert capsys.readouterr().out == f"done: {type(order).__name__}\n"


async def test_a_refused_order_exits_with_1_and_the_reason(trio: Trio, capsys: pytest.CaptureFixture[str]) -> None:
    async def refuse(order: Order) -> OrderOutcome:
        return OrderRefused("n4 has not caught up")

    trio.members["n1"].outcome = refuse
    assert await run("add", "n4", "--admin", trio.url("n2")) == 1
    assert capsys.readouterr().err == "elasticq: n4 has not caught up\n"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"master": None, "reason": "read-only"}, "n2 knows no master: read-only"),
        ({}, "n2 got no answer from the master n1: there is no link to it: the order may have been done"),
    ],
)
async def test_without_a_master_nothing_is_ordered(
    trio: Trio, capsys: pytest.CaptureFixture[str], change: dict[str, Any], told: str
) -> None:
    trio.members["n2"].linked = {}
    trio.members["n2"].seen = replace(trio.members["n2"].seen, **change)
    assert await run("remove", "n3", "--admin", trio.url("n2")) == 1
    assert told in capsys.readouterr().err
    assert trio.members["n1"].orders == []


async def test_events_are_told_as_in_a_log_the_newest_last(trio: Trio, capsys: pytest.CaptureFixture[str]) -> None:
    told = [Event(1_000, "warning", "read_only", "This member is read-only."), Event(0, "info", "joining", "It joins.")]
    trio.members["n2"].told = told
    assert await run("events", "--admin", trio.url("n2")) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1970-01-01 00:00:00 UTC  info     joining: It joins.",
        "1970-01-01 00:00:01 UTC  warning  read_only: This member is read-only.",
    ]


async def test_verify_tells_that_all_members_are_equal(trio: Trio, capsys: pytest.CaptureFixture[str]) -> None:
    trio.note("n1", 80, "of an earlier order")
    trio.verify_by(("n1", "ab"), ("n2", "ab"), ("n3", "ab"))
    assert await run("verify", "--admin", trio.url("n3")) == 0
    assert capsys.readouterr().out == "equal at index 121: n1, n2, n3\n"


async def test_verify_waits_for_a_member_that_lags(trio: Trio, capsys: pytest.CaptureFixture[str]) -> None:
    trio.verify_by(("n1", "ab"), ("n2", "ab"))
    member = trio.members["n3"]
    asked = 0
    look = member.status

    def status() -> Any:
        nonlocal asked
        asked += 1
        if asked == 3:
            trio.note("n3", 121, "ab")
        return look()

    member.status = status  # type: ignore[method-assign]
    assert await run("verify", "--admin", trio.url("n1")) == 0
    assert asked == 3
    assert capsys.readouterr().out.startswith("equal")


async def test_verify_asks_over_links_where_every_admin_port_is_on_its_own_loopback(
    trio: Trio, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in README's recipe for three machines: each member's admin URL leads to whoever asks."""
    own = {name: {"admin": trio.url("n2")} for name in IDS}
    for member in trio.members.values():
        member.with_members(**own)
    trio.verify_by(("n1", "ab"), ("n2", "ab"), ("n3", "cd"))
    assert await run("verify", "--admin", trio.url("n2")) == 1
    assert capsys.readouterr().out == "different at index 121: n1 ab, n2 ab, n3 cd\n"
    assert trio.members["n1"].orders == [VerifyRows()]


async def test_verify_names_a_member_that_does_not_answer_over_its_link(
    trio: Trio, capsys: pytest.CaptureFixture[str]
) -> None:
    del trio.members["n1"].linked[IDS["n3"]]
    trio.verify_by(("n1", "ab"), ("n2", "ab"), ("n3", "ab"))
    assert await run("verify", "--wait-s", "0", "--admin", trio.url("n1")) == 1
    assert f"n1 got no answer from n3 ({IDS['n3']}): there is no link to it" in capsys.readouterr().err


async def test_verify_exits_with_1_when_rows_differ(trio: Trio, capsys: pytest.CaptureFixture[str]) -> None:
    trio.verify_by(("n1", "ab"), ("n2", "ab"), ("n3", "cd"))
    assert await run("verify", "--admin", trio.url("n1")) == 1
    assert capsys.readouterr().out == "different at index 121: n1 ab, n2 ab, n3 cd\n"


async def test_verify_leaves_out_learners_and_who_is_not_linked(trio: Trio, capsys: pytest.CaptureFixture[str]) -> None:
    trio.verify_by(("n1", "ab"))
    trio.members["n1"].with_members(n2={"is_linked": False}, n3={"voter": False})
    assert await run("verify", "--admin", trio.url("n1")) == 0
    assert capsys.readouterr().out == "equal at index 121: n1 (not linked, not compared: n2)\n"


async def test_verify_gives_up_on_who_does_not_come(trio: Trio, capsys: pytest.CaptureFixture[str]) -> None:
    trio.verify_by(("n1", "ab"), ("n2", "ab"))
    assert await run("verify", "--wait-s", "0", "--admin", trio.url("n1")) == 1
    assert "n3 has not reached index 121 within --wait-s" in capsys.readouterr().err


async def test_verify_takes_no_member_that_restarted_meanwhile_for_different(
    trio: Trio, capsys: pytest.CaptureFixture[str]
) -> None:
    trio.verify_by(("n1", "ab"), ("n2", INCOMPLETE), ("n3", "ab"))
    assert await run("verify", "--admin", trio.url("n1")) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "n2 restarted or took a snapshot during the comparison: verify again" in told.err


async def test_verify_ends_when_the_mastership_moves_meanwhile(trio: Trio, capsys: pytest.CaptureFixture[str]) -> None:
    trio.verify_by()
    member = trio.members["n1"]
    look, terms = member.status, count(7)
    member.status = lambda: replace(look(), term=next(terms))  # type: ignore[method-assign]
    assert await run("verify", "--admin", trio.url("n1")) == 1
    assert "another member became the master during the comparison: verify again" in capsys.readouterr().err


async def test_verify_gives_up_when_the_master_notes_nothing(trio: Trio, capsys: pytest.CaptureFixture[str]) -> None:
    assert await run("verify", "--wait-s", "0", "--admin", trio.url("n1")) == 1
    assert "the master has no digest" in capsys.readouterr().err


async def test_who_meant_another_machine_is_told_how_to_name_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        monkeypatch.setattr("elasticq.cli.admin_options.DEFAULT_ADMIN", f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert await run("status") == 1
    assert "(--admin names another member)" in capsys.readouterr().err


async def test_who_does_not_answer_is_told_with_1_and_a_wrong_url_with_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert await run("status", "--admin", url) == 1
    assert "does not answer" in capsys.readouterr().err
    assert await run("status", "--admin", "ftp://127.0.0.1") == 2
    assert "not an http URL" in capsys.readouterr().err


async def test_a_page_that_is_not_ours_is_told(aiohttp_server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from aiohttp import web

    server = await aiohttp_server(web.Application())
    assert await run("status", "--admin", f"http://127.0.0.1:{server.port}") == 1
    assert "is not an admin port of elasticq (HTTP 404)" in capsys.readouterr().err


def test_force_new_of_a_missing_directory_is_told_and_makes_nothing(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", "force-new", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.startswith("elasticq: ")
    assert list(tmp_path.iterdir()) == []


def test_force_new_without_a_terminal_wants_yes(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(
        "elasticq.storage.offline.force_new.force_new", lambda directory: asked.append(directory) or "done"
    )
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(["cluster", "force-new", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        "elasticq: force-new cannot be undone, and there is no terminal to ask on: use --yes\n"
    )
    assert asked == []
    assert main(["cluster", "force-new", str(tmp_path), "--yes"]) == 0
    assert asked == [tmp_path]
