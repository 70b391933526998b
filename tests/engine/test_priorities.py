"""A dead letter and a moved message keep the priority that they have, not the one that they were sent with."""

import json

import pytest

from elasticq.engine.redrive.mover import Mover
from elasticq.model import commands as c
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION, queue_arn
from tests.engine.actions.test_priority import ORDER, bodies, change, send
from tests.engine.desk import Desk


def arn(name: str) -> str:
    return queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, name)


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.create("dead", ElasticqDefaultPriority="8", **ORDER)
    made.create(RedrivePolicy=json.dumps({"deadLetterTargetArn": arn("dead"), "maxReceiveCount": 1}), **ORDER)
    return made


def die(desk: Desk) -> None:
    desk.receive(10, visibility_s=0)
    assert desk.receive(10) == []


def test_dead_letter_keeps_a_changed_priority_there_and_back(desk: Desk) -> None:
    ids = [send(desk, body, number) for body, number in (("a", 5), ("b", None), ("c", 3), ("d", 7))]
    change(desk, [ids[0]], 1)
    assert [message.body for message in desk.receive(10, visibility_s=0)] == ["b", "a", "c", "d"]
    assert desk.receive(10) == []
    assert bodies(desk, "dead") == ["b", "a", "c", "d"]
    desk.do(c.StartMessageMoveTask(source_arn=arn("dead")))
    desk.write(Mover().step(desk.state, desk.context.now_ms, desk.context.term).mutations)
    assert bodies(desk) == ["b", "a", "c", "d"]


def test_letter_from_a_standard_queue_has_the_priority_of_its_attribute_or_the_default(desk: Desk) -> None:
    desk.create("plain", RedrivePolicy=json.dumps({"deadLetterTargetArn": arn("jobs"), "maxReceiveCount": 1}))
    send(desk, "none", url="plain")
    send(desk, "nine", 9, url="plain")
    send(desk, "minus", -9, url="plain")
    desk.receive(10, url="plain", visibility_s=0)
    assert desk.receive(10, url="plain") == []
    assert bodies(desk) == ["minus", "none", "nine"]
