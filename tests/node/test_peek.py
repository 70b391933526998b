"""Peek on members: contents come from disk as for receives, followers pass it on, below quorum it is stale."""

from typing import Any

from elasticq.engine.views.digest import delivery_digest
from elasticq.model import commands as c
from elasticq.model.errors import ServiceUnavailable
from elasticq.model.extensions import Peek
from elasticq.model.results import PeekResult, StaleResult
from tests.node.cluster import Cluster
from tests.node.test_content_cache import Deep


def all_pages(deep: Deep, **options: Any) -> list[str]:
    found: list[str] = []
    at: int | None = 0
    while at is not None:
        page = deep.deep_do(Peek(queue_url="jobs", from_sequence=at, limit=1_000, **options))
        assert isinstance(page, PeekResult)
        found += [message.body for message in page.messages]
        at = page.next_sequence
    return found


def test_contents_on_disk_are_fetched_and_nothing_changes() -> None:
    deep = Deep()
    deep.fill(3_000)
    deep.store()
    deep.restart()
    state = deep.node.state
    assert not state.contents_bytes
    before, index = delivery_digest(state, deep.now_ms), deep.node.replica.log.last_index
    assert all_pages(deep) == [f"m{at}" for at in range(3_000)]
    assert all_pages(deep, sent_until_ms=1) == []
    assert (delivery_digest(state, deep.now_ms), deep.node.replica.log.last_index) == (before, index)


def test_fetched_contents_leave_memory_and_pages_still_come_to_the_end(monkeypatch: Any) -> None:
    monkeypatch.setattr("elasticq.node.content_cache.FETCHED_BYTES_MAX", 1)
    deep = Deep()
    deep.fill(1_500)
    deep.store()
    deep.restart()
    assert all_pages(deep) == [f"m{at}" for at in range(1_500)]


def cluster_with_queue() -> tuple[Cluster, str]:
    cluster = Cluster()
    cluster.introduce_all()
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    cluster.do(master, c.SendMessage(queue_url="jobs", message_body="hello"))
    cluster.advance(300)
    return cluster, master


def test_follower_passes_it_on() -> None:
    cluster, master = cluster_with_queue()
    follower = next(name for name in cluster.names if name != master)
    result = cluster.do(follower, Peek(queue_url="jobs"))
    assert isinstance(result, PeekResult)
    (message,) = result.messages
    assert (message.body, message.state) == ("hello", "visible")


def test_member_without_a_master_shows_what_it_has_in_memory() -> None:
    cluster, master = cluster_with_queue()
    for name in cluster.names:
        if name != master:
            cluster.crash(name)
    cluster.names = (master,)
    cluster.advance(2_000)
    ticket = cluster.say(master, Peek(queue_url="jobs"))
    cluster.advance(3_000)
    outcome = cluster.answer(master, ticket)
    assert isinstance(outcome, StaleResult)
    assert isinstance(outcome.result, PeekResult)
    assert [message.body for message in outcome.result.messages] == ["hello"]
    queue = next(iter(cluster.node(master).state.queues.values()))
    queue.contents.clear()
    ticket = cluster.say(master, Peek(queue_url="jobs"))
    cluster.advance(3_000)
    assert isinstance(cluster.answer(master, ticket), ServiceUnavailable)
