"""What is told of things that no quick test makes happen in a real cluster; the rest is in test_member.py."""

import asyncio
import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from elasticq.engine.stored.mutations import encode
from elasticq.node.membership.peer import Peer
from elasticq.replication.records import Entry
from elasticq.server.operator_log import USUAL_S, OperatorLog
from elasticq.storage.directory import DataDirectory
from tests.node.proxied import PROXY_ID, proxy_of

LOGGER = "elasticq.server.member"
ENTRIES = [Entry(7, 2, 0, encode([])), Entry(8, 2, 0, encode([]))]


async def test_removal_that_cannot_be_kept_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = DataDirectory(tmp_path / "data", "n1")
    log = OperatorLog(directory, asyncio.get_running_loop())
    log.removed(True)
    assert directory.was_removed
    (tmp_path / "data" / "removed").unlink()
    (tmp_path / "data" / "removed").symlink_to(tmp_path / "nowhere" / "removed")
    log.removed(True)
    assert [(record.levelname, record.getMessage().partition(":")[0]) for record in caplog.records] == [
        ("ERROR", "removal_not_kept")
    ]
    directory.close()


async def test_discarded_entries_are_told_and_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = DataDirectory(tmp_path / "data", "n1")
    log = OperatorLog(directory, asyncio.get_running_loop())
    log.discarded(ENTRIES)
    await asyncio.get_running_loop().shutdown_default_executor()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "acknowledged_entries_discarded 2")
    ]
    assert OperatorLog(directory, asyncio.get_running_loop()).discarded_count == 2
    directory.close()


async def test_trouble_is_told_when_it_changes_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    log = OperatorLog(None, asyncio.get_running_loop())
    with caplog.at_level(logging.INFO, LOGGER):
        for trouble in ("", "one", "one", "another", "", ""):
            log.trouble(trouble, "all is well")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "one"),
        ("WARNING", "another"),
        ("INFO", "all is well"),
    ]


async def test_links_of_proxies_are_told_as_such_and_their_loss_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    log = OperatorLog(None, asyncio.get_running_loop())
    with caplog.at_level(logging.INFO, LOGGER):
        for peer in (proxy_of().introduce(), proxy_of().introduce()):
            log.met(peer, peer)
        log.lost(PROXY_ID)
        log.lost("n2-" + "2" * 16)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", f"linked: There is a link to the proxy web ({PROXY_ID})."),
        ("INFO", f"link_lost: The link to the proxy web ({PROXY_ID}) is gone."),
        ("WARNING", "link_lost: The link to n2 (n2-2222222222222222) is gone."),
    ]


def member_in(region: str, *, has_one_region: bool = False) -> Peer:
    peer = proxy_of().introduce()
    return replace(peer, is_proxy=False, region=region, has_one_region=has_one_region)


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        (member_in("us-east-1"), ""),
        (member_in(""), ""),  # an older version
        (member_in("eu-west-1"), 'has node.region = "eu-west-1", node.single_region = false, this process'),
        (member_in("us-east-1", has_one_region=True), "node.single_region = true, this process"),
        (replace(proxy_of().introduce(), region="eu-west-1"), 'has node.region = "eu-west-1"'),
    ],
)
async def test_link_to_whom_regions_mean_something_else_is_told_once(
    theirs: Peer, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = OperatorLog(None, asyncio.get_running_loop())
    for _ in range(2):
        log.met(theirs, member_in("us-east-1"))
    differing = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(differing) == bool(told)
    assert all(text.startswith("regions_differ: web (") and told in text for text in differing)


async def test_what_each_start_begins_with_is_a_warning_only_if_it_lasts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = OperatorLog(None, asyncio.get_running_loop())
    with caplog.at_level(logging.INFO):
        for trouble in ("1 of 3 have met", "2 of 3 have met", "2 of 3 have met"):
            log.trouble(trouble, "well", is_usual=True)
        monkeypatch.setattr(log, "_started_s", log._started_s - USUAL_S)
        log.trouble("2 of 3 have met", "well", is_usual=True)
        log.trouble("", "well")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "1 of 3 have met"),
        ("INFO", "2 of 3 have met"),
        ("WARNING", "2 of 3 have met"),
        ("INFO", "well"),
    ]
