"""Priorities outlive a restart on rows, whose contents nobody reads for them, and a failover."""

import pytest

from elasticq.model import commands as c
from elasticq.model.commands import MessageAttributeValue
from elasticq.model.extensions import ElasticqChangePriority
from elasticq.model.results import PrioritiesChangedResult, ReceiveMessageResult, SendMessageResult
from elasticq.storage.errors import Damaged
from tests.node.cluster import Cluster
from tests.node.test_content_cache import Deep

CREATE = c.CreateQueue("urgent", {"ElasticqOrder": "priority", "ElasticqDefaultPriority": "5"})
TEN = c.ReceiveMessage("urgent", max_number_of_messages=10, visibility_timeout=0)


def message(body: str, priority: int | None = None, delay_s: int | None = None) -> c.SendMessage:
    attributes = None
    if priority is not None:
        attributes = {"ElasticqPriority": MessageAttributeValue("Number", str(priority))}
    return c.SendMessage("urgent", body, delay_s, attributes)


def sent(deep: Deep, body: str, priority: int | None = None, delay_s: int | None = None) -> str:
    result = deep.do(message(body, priority, delay_s))
    assert isinstance(result, SendMessageResult)
    return result.message_id


def received(deep: Deep, command: c.ReceiveMessage = TEN) -> list[str]:
    result = deep.deep_do(command)
    assert isinstance(result, ReceiveMessageResult)
    return [each.body for each in result.messages]


def changed(deep: Deep, message_id: str, priority: int) -> list[str]:
    result = deep.deep_do(ElasticqChangePriority("urgent", [message_id], priority))
    assert isinstance(result, PrioritiesChangedResult)
    return result.changed


def test_priorities_are_known_after_a_restart_without_the_contents() -> None:
    deep = Deep()
    deep.do(CREATE)
    first = sent(deep, "default")
    sent(deep, "low", 9)
    sent(deep, "later", 2, delay_s=20)
    deep.do(c.SetQueueAttributes("urgent", {"ElasticqDefaultPriority": "1"}))
    sent(deep, "new default")
    assert received(deep, c.ReceiveMessage("urgent", visibility_timeout=30)) == ["new default"]
    deep.store()
    assert changed(deep, first, 7) == [first]  # after its page was made
    sent(deep, "highest", -3)
    deep.store()
    deep.restart()
    (queue,) = [queue for queue in deep.node.state.queues.values() if queue.name == "urgent"]
    assert not queue.contents
    assert [queue.order.priority(sequence) for sequence in queue.issued if queue.row(sequence)] == [7, 9, 2, 1, -3]
    assert received(deep) == ["highest", "default", "low"]
    deep.advance(31_000)
    assert received(deep) == ["highest", "new default", "later", "default", "low"]


def test_deep_queue_is_drained_in_order_though_its_contents_are_on_disk() -> None:
    deep = Deep()
    deep.do(CREATE)
    priorities = [at * 7_919 % 13 - 6 for at in range(400)]
    for at, priority in enumerate(priorities):
        sent(deep, str(at), priority)
        if at % 100 == 99:
            deep.store()
    assert deep.resident == 0
    wanted = [str(at) for at in sorted(range(400), key=lambda at: (priorities[at], at))]
    found: list[str] = []
    while bodies := received(deep, c.ReceiveMessage("urgent", max_number_of_messages=7, visibility_timeout=600)):
        found += bodies
    assert found == wanted


def test_rows_that_lost_priorities_are_damaged() -> None:
    deep = Deep()
    deep.do(CREATE)
    sent(deep, "a", 1)
    deep.store()
    deep.connection.execute("DELETE FROM priorities")
    with pytest.raises(Damaged, match="priorities of page"):
        deep.restart()


def test_priorities_of_a_page_go_with_it() -> None:
    deep = Deep()
    deep.do(CREATE)
    for number in range(3):
        sent(deep, str(number), number)
    deep.store()
    deep.do(c.PurgeQueue("urgent"))
    deep.send("something else, so that the rows go on")
    deep.store()
    assert deep.connection.execute("SELECT count(*) FROM priorities").fetchone() == (0,)


def test_next_master_has_the_priorities_of_the_last_one() -> None:
    cluster = Cluster()
    cluster.introduce_all()
    master = cluster.elect()
    cluster.do(master, CREATE)
    ids = []
    for body, priority in (("a", 3), ("b", None), ("c", 1)):
        result = cluster.do(master, message(body, priority))
        assert isinstance(result, SendMessageResult)
        ids.append(result.message_id)
    cluster.do(master, ElasticqChangePriority("urgent", [ids[0]], 9))
    cluster.advance(300)
    cluster.crash(master)
    successor = cluster.elect()
    result = cluster.do(successor, TEN)
    assert isinstance(result, ReceiveMessageResult)
    assert [each.body for each in result.messages] == ["c", "b", "a"]
