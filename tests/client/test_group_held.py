"""What is held, and messages of it."""

from typing import Any

from elasticq.client import Held, Message
from elasticq.client.group_held import AsyncMessage
from elasticq.client.group_state import Assignment
from tests.client.scripted import Scripted, answer, client, headers

LANE = Assignment("jobs.fifo/2", "http://there/jobs.fifo", 2, 9)
WRITTEN: dict[str, Any] = {"MessageId": "m", "Body": "text", "ReceiptHandle": "h"}


def test_what_is_held_asks_whether_it_still_is() -> None:
    asked: list[int] = []
    held = Held("g", LANE, object(), lambda token: not asked.append(token), lambda token: False)
    assert (held.resource, held.queue_url, held.partition, held.token) == LANE
    assert held.fence.header == "g;9;2"
    assert held.is_held()
    assert not held.may_finish()
    assert asked == [9]
    assert repr(held) == "Held('jobs.fifo/2', token=9)"


async def test_a_message_is_deleted_and_hidden_under_its_token() -> None:
    with Scripted(answer({})) as server, client(server) as sqs:
        held = Held("g", LANE, sqs, lambda token: True, lambda token: True)
        message = Message(held, WRITTEN)
        assert (message.body, message.id, message.fence, message.held) == ("text", "m", 9, held)
        assert repr(message) == "Message('m', Held('jobs.fifo/2', token=9))"
        message.hide(5)
        message.delete()
        later = AsyncMessage(held, WRITTEN)
        await later.hide(0)
        await later.delete()
        seen = [each for each in server.requests if b'"ElasticqToken":9,"ElasticqPartition":2' in each]
        targets = [headers(each)["x-amz-target"].partition(".")[2] for each in seen]
        assert targets == ["ChangeMessageVisibility", "DeleteMessage"] * 2
        assert b'"VisibilityTimeout":5' in seen[0]
