"""Queues of two regions are two worlds; where one region is all there is, ARNs are read whatever region they name."""

import json

import pytest

from elasticq.engine.actions.declare import at_first_use
from elasticq.engine.redrive.mover import Mover
from elasticq.engine.views.digest import state_digest
from elasticq.model import commands as c
from elasticq.model.errors import InvalidParameterValue, QueueDoesNotExist, ResourceNotFound
from elasticq.model.extensions import DeleteAllQueues
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION
from elasticq.model.results import (
    DeadLetterSourcesResult,
    ListQueuesResult,
    MoveTasksResult,
    QueueAttributesResult,
    QueuesDeletedResult,
    ReceiveMessageResult,
)
from tests.engine.desk import ENDPOINT, Desk, replayed

EU = f"{DEFAULT_ACCOUNT}/eu-west-1"
URL = f"{ENDPOINT}/{DEFAULT_ACCOUNT}/jobs"


def arn(region: str, name: str = "jobs") -> str:
    return f"arn:aws:sqs:{region}:{DEFAULT_ACCOUNT}:{name}"


def policy(target: str) -> dict[str, str]:
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": 1})}


def arn_of(desk: Desk, account: str, name: str = "jobs") -> str:
    result = desk.do(c.GetQueueAttributes(name, ["QueueArn"]), account=account)
    assert isinstance(result, QueueAttributesResult)
    return result.attributes["QueueArn"]


def listed(desk: Desk, account: str) -> list[str]:
    result = desk.do(c.ListQueues(), account=account)
    assert isinstance(result, ListQueuesResult)
    return result.queue_urls


def received(desk: Desk, account: str, name: str = "jobs") -> list[str]:
    result = desk.do(c.ReceiveMessage(name, attribute_names=["All"]), account=account)
    assert isinstance(result, ReceiveMessageResult)
    return [message.body for message in result.messages]


def test_one_name_in_two_regions_is_two_queues() -> None:
    desk = Desk()
    for account in (DEFAULT_ACCOUNT, EU):
        assert desk.do(c.CreateQueue("jobs"), account=account).queue_url == URL  # type: ignore[attr-defined]
    desk.do(c.CreateQueue("only"), account=EU)
    desk.do(c.SendMessage(URL, "hello"), account=EU)
    assert received(desk, DEFAULT_ACCOUNT) == []
    assert received(desk, EU) == ["hello"]
    assert (arn_of(desk, DEFAULT_ACCOUNT), arn_of(desk, EU)) == (arn(DEFAULT_REGION), arn("eu-west-1"))
    assert listed(desk, DEFAULT_ACCOUNT) == [URL]
    assert listed(desk, EU) == [URL, f"{ENDPOINT}/{DEFAULT_ACCOUNT}/only"]
    with pytest.raises(QueueDoesNotExist):
        desk.do(c.GetQueueUrl("only"))
    assert desk.do(c.GetQueueUrl("only", DEFAULT_ACCOUNT), account=EU).queue_url.endswith("/only")  # type: ignore[attr-defined]
    with pytest.raises(QueueDoesNotExist):
        desk.do(c.GetQueueUrl("jobs"), account=f"{DEFAULT_ACCOUNT}/eu-west-2")
    assert state_digest(replayed(desk.log)) == state_digest(desk.state)


def test_a_dead_letter_queue_is_of_its_sources_region() -> None:
    desk = Desk()
    for account in (DEFAULT_ACCOUNT, EU):
        desk.do(c.CreateQueue("dead"), account=account)
    for account, other in ((DEFAULT_ACCOUNT, "eu-west-1"), (EU, DEFAULT_REGION)):
        with pytest.raises(InvalidParameterValue) as caught:
            desk.do(c.CreateQueue("jobs", policy(arn(other, "dead"))), account=account)
        assert caught.value.message.endswith("Reason: Dead letter target does not exist.")
    desk.do(c.CreateQueue("jobs", policy(arn("eu-west-1", "dead"))), account=EU)
    with pytest.raises(InvalidParameterValue):
        desk.do(c.SetQueueAttributes("jobs", policy(arn(DEFAULT_REGION, "dead"))), account=EU)
    sources = desk.do(c.ListDeadLetterSourceQueues("dead"), account=EU)
    assert isinstance(sources, DeadLetterSourcesResult)
    assert sources.queue_urls == [URL]
    desk.do(c.SendMessage("jobs", "poison"), account=EU)
    assert received(desk, EU) == ["poison"]
    desk.wait(31)
    assert received(desk, EU) == []
    assert received(desk, DEFAULT_ACCOUNT, "dead") == []
    result = desk.do(c.ReceiveMessage("dead", attribute_names=["All"]), account=EU)
    assert isinstance(result, ReceiveMessageResult)
    assert (result.messages[0].attributes or {})["DeadLetterQueueSourceArn"] == arn("eu-west-1")


def test_a_queue_may_be_allowed_by_the_arn_of_its_own_region_only() -> None:
    desk = Desk()
    for region, may in (("eu-west-1", True), (DEFAULT_REGION, False)):
        allowed = json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [arn(region)]})
        name = f"dead-{region}"
        desk.do(c.CreateQueue(name, {"RedriveAllowPolicy": allowed}), account=EU)
        creation = c.CreateQueue("jobs", policy(arn("eu-west-1", name)))
        if may:
            desk.do(creation, account=EU)
            desk.do(c.DeleteQueue("jobs"), account=EU)
        else:
            with pytest.raises(InvalidParameterValue):
                desk.do(creation, account=EU)


def test_move_tasks_know_the_queues_of_the_calls_region_only() -> None:
    desk = Desk()
    for account, region in ((DEFAULT_ACCOUNT, DEFAULT_REGION), (EU, "eu-west-1")):
        desk.do(c.CreateQueue("dead"), account=account)
        desk.do(c.CreateQueue("jobs", policy(arn(region, "dead"))), account=account)
    with pytest.raises(ResourceNotFound):
        desk.do(c.StartMessageMoveTask(arn(DEFAULT_REGION, "dead")), account=EU)
    with pytest.raises(ResourceNotFound):
        desk.do(c.StartMessageMoveTask(arn("eu-west-1", "dead"), arn(DEFAULT_REGION)), account=EU)
    for account, region in ((DEFAULT_ACCOUNT, DEFAULT_REGION), (EU, "eu-west-1")):
        desk.do(c.StartMessageMoveTask(arn(region, "dead")), account=account)
    tasks = desk.do(c.ListMessageMoveTasks(arn("eu-west-1", "dead")), account=EU)
    assert isinstance(tasks, MoveTasksResult)
    assert [task.source_arn for task in tasks.results] == [arn("eu-west-1", "dead")]


def test_messages_go_back_within_their_region() -> None:
    desk = Desk()
    for account, region in ((DEFAULT_ACCOUNT, DEFAULT_REGION), (EU, "eu-west-1")):
        desk.do(c.CreateQueue("dead"), account=account)
        desk.do(c.CreateQueue("jobs", policy(arn(region, "dead"))), account=account)
    desk.do(c.SendMessage("jobs", "poison"), account=EU)
    assert received(desk, EU) == ["poison"]
    desk.wait(31)
    assert received(desk, EU) == []
    desk.do(c.StartMessageMoveTask(arn("eu-west-1", "dead")), account=EU)
    desk.write(Mover().step(desk.state, desk.context.now_ms, 1).mutations)
    assert received(desk, DEFAULT_ACCOUNT) == []
    assert received(desk, EU) == ["poison"]


@pytest.mark.parametrize("owner", [DEFAULT_ACCOUNT, EU, "111111111111"])
def test_a_queue_made_at_its_first_use_has_the_dead_letter_queue_of_its_own_region_and_account(owner: str) -> None:
    desk = Desk()
    desk.context.template = c.DeclareQueue(attributes=policy(arn(DEFAULT_REGION, "dead")))
    desk.do(c.CreateQueue("dead"), account=owner)
    _, mutations = at_first_use(desk.state, c.Call(c.SendMessage("jobs", "x"), "", owner, ENDPOINT), desk.context)
    desk.write(mutations)
    redrive = desk.state.queue(owner, "jobs").redrive
    assert redrive is not None
    assert redrive.target == (owner, "dead")


def test_a_reset_takes_an_accounts_queues_of_all_regions() -> None:
    desk = Desk()
    for account in (DEFAULT_ACCOUNT, EU, "111111111111"):
        desk.do(c.CreateQueue("jobs"), account=account)
    result = desk.do(DeleteAllQueues(DEFAULT_ACCOUNT))
    assert isinstance(result, QueuesDeletedResult)
    assert result.count == 2
    assert listed(desk, EU) == []
    assert len(listed(desk, "111111111111")) == 1


def test_where_there_is_one_region_arns_may_name_any() -> None:
    desk = Desk()
    desk.context.has_one_region = True
    desk.do(c.CreateQueue("dead"))
    desk.do(c.CreateQueue("jobs", policy(arn("eu-west-1", "dead"))))
    desk.do(c.StartMessageMoveTask(arn("elasticmq", "dead")))
    assert arn_of(desk, DEFAULT_ACCOUNT) == arn(DEFAULT_REGION)


def test_a_policy_that_was_stored_with_an_arn_of_another_region_goes_on() -> None:
    """A version without regions took any region in an ARN."""
    desk = Desk()
    desk.context.has_one_region = True
    desk.do(c.CreateQueue("dead"))
    desk.do(c.CreateQueue("jobs", policy(arn("eu-west-1", "dead"))))
    desk.context.has_one_region = False
    desk.do(c.SendMessage("jobs", "poison"))
    assert received(desk, DEFAULT_ACCOUNT) == ["poison"]
    desk.wait(31)
    assert received(desk, DEFAULT_ACCOUNT) == []
    assert received(desk, DEFAULT_ACCOUNT, "dead") == ["poison"]
