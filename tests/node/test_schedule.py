"""Times of scheduled messages outlive a restart on rows and a failover, also those that were changed."""

from elasticq.model import commands as c
from elasticq.model.commands import MessageAttributeValue
from elasticq.model.extensions import ElasticqCancelScheduled, ElasticqReschedule
from elasticq.model.results import PrioritiesChangedResult, ReceiveMessageResult, SendMessageResult
from tests.node.cluster import Cluster
from tests.node.test_content_cache import Deep

CREATE = c.CreateQueue("planned", {"MessageRetentionPeriod": "3600"})
TEN = c.ReceiveMessage("planned", max_number_of_messages=10, visibility_timeout=0)


def message(body: str, time_ms: int) -> c.SendMessage:
    return c.SendMessage(
        "planned", body, message_attributes={"ElasticqDeliverAt": MessageAttributeValue("Number", str(time_ms))}
    )


def bodies(result: object) -> list[str]:
    assert isinstance(result, ReceiveMessageResult)
    return [each.body for each in result.messages]


def test_times_are_known_after_a_restart_without_the_contents() -> None:
    deep = Deep()
    deep.do(CREATE)
    ids = []
    for body, ahead_ms in (("first", 60_000), ("second", 120_000), ("moved", 900_000), ("cancelled", 60_000)):
        result = deep.do(message(body, deep.time_ms + ahead_ms))
        assert isinstance(result, SendMessageResult)
        ids.append(result.message_id)
    deep.store()
    deep.restart()
    moved = deep.deep_do(ElasticqReschedule("planned", [ids[2]], deep.time_ms + 90_000))
    cancelled = deep.deep_do(ElasticqCancelScheduled("planned", [ids[3]]))
    assert isinstance(moved, PrioritiesChangedResult)
    assert isinstance(cancelled, PrioritiesChangedResult)
    assert (moved.changed, cancelled.changed) == ([ids[2]], [ids[3]])
    deep.store()
    deep.restart()
    assert bodies(deep.deep_do(TEN)) == []
    for passed_ms, expected in ((59_000, []), (2_000, ["first"]), (30_000, ["moved"]), (30_000, ["second"])):
        deep.advance(passed_ms)
        found = bodies(deep.deep_do(c.ReceiveMessage("planned", visibility_timeout=600)))
        assert found == expected


def test_next_master_delivers_at_the_time_that_the_last_one_was_told() -> None:
    cluster = Cluster()
    cluster.introduce_all()
    master = cluster.elect()
    cluster.do(master, CREATE)
    time_ms = cluster.node(master).clock.time_ms(0) + 60_000
    cluster.do(master, message("later", time_ms))
    cluster.advance(300)
    cluster.crash(master)
    successor = cluster.elect()
    assert bodies(cluster.do(successor, TEN)) == []
    cluster.advance(60_000)
    assert bodies(cluster.do(successor, TEN)) == ["later"]
