"""Fair queues whose contents are on disk: groups are known all the same, also after a restart."""

from elasticq.model import commands as c
from elasticq.model.results import ReceiveMessageResult
from tests.node.test_content_cache import Deep


def send(deep: Deep, group: str | None, count: int) -> None:
    for first in range(0, count, 10):
        entries = [
            c.SendMessageBatchEntry(id=str(at), message_body=f"{group}{at}", message_group_id=group)
            for at in range(first, min(first + 10, count))
        ]
        deep.do(c.SendMessageBatch(queue_url="jobs", entries=entries))
    deep.now_ms += 1


def received(deep: Deep, count: int) -> list[str]:
    """Bodies, in as many receives as it takes."""
    bodies: list[str] = []
    while len(bodies) < count:
        command = c.ReceiveMessage(queue_url="jobs", max_number_of_messages=min(10, count - len(bodies)))
        result = deep.deep_do(command)
        assert isinstance(result, ReceiveMessageResult)
        assert result.messages
        bodies += [message.body for message in result.messages]
    return bodies


def test_quiet_tenant_goes_first_though_all_contents_are_on_disk() -> None:
    deep = Deep()
    send(deep, "A", 2_000)
    send(deep, "B", 10)
    deep.store()
    assert deep.resident == 0
    assert received(deep, 30) == [f"A{at}" for at in range(30)]
    assert received(deep, 10) == [f"B{at}" for at in range(10)]
    assert received(deep, 1_970) == [f"A{at}" for at in range(30, 2_000)]


def test_rows_bring_groups_and_who_is_noisy_back() -> None:
    deep = Deep()
    send(deep, "A", 500)
    send(deep, None, 50)
    send(deep, "B", 10)
    received(deep, 30)
    deep.store()
    deep.restart()
    assert received(deep, 60) == [*(f"None{at}" for at in range(50)), *(f"B{at}" for at in range(10))]
    assert received(deep, 470) == [f"A{at}" for at in range(30, 500)]


def test_groups_leave_the_disk_with_their_pages() -> None:
    deep = Deep()
    send(deep, "A", 300)
    send(deep, None, 300)
    deep.store()
    assert deep.connection.execute("SELECT count(*) FROM groups").fetchone()[0] < 4
    deep.do(c.PurgeQueue(queue_url="jobs"))
    deep.store()
    assert deep.connection.execute("SELECT count(*) FROM groups").fetchone() == (0,)
