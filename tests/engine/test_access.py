"""Who may do what to whose queue, where callers are proven."""

import json
from typing import Any

import msgspec
import pytest

from elasticq.engine.execute import HANDLERS, execute
from elasticq.model import commands as c
from elasticq.model.actions import OWNER_ONLY
from elasticq.model.errors import AccessDenied, ElasticqGroupDoesNotExist, ElasticqNotHolder, SqsError
from elasticq.model.extensions import AdvanceClock, DeleteAllQueues
from elasticq.model.group_commands import ElasticqJoinGroup, ElasticqSetGroup, GroupCommand
from elasticq.model.identity import GetCallerIdentity
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.model.results import Result
from elasticq.model.topic_commands import TopicCommand
from tests.engine.desk import ENDPOINT, Desk

STRANGER = "222222222222"
URL = f"{ENDPOINT}/{DEFAULT_ACCOUNT}/jobs"
ARN = f"arn:aws:sqs:us-east-1:{DEFAULT_ACCOUNT}:jobs"
HERE = c.Origin("127.0.0.1", False)
ALLOW_ALL: dict[str, Any] = {"Effect": "Allow", "Principal": "*", "Action": "sqs:*", "Resource": "*"}


def proven(desk: Desk, command: c.Command, account: str = STRANGER) -> Result:
    result, mutations = execute(desk.state, c.Call(command, "AKID", account, ENDPOINT, b"", HERE), desk.context)
    desk.write(mutations)
    return result


def set_policy(desk: Desk, *statements: dict[str, Any]) -> None:
    policy = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
    desk.do(c.SetQueueAttributes(queue_url=URL, attributes={"Policy": policy}))


def about_the_queue(kind: type[c.Command]) -> c.Command:
    """A command of this kind that names the queue in every way it can."""
    names = kind.__struct_fields__
    given: dict[str, Any] = {
        "queue_url": URL,
        "source_arn": ARN,
        "queue_name": "jobs",
        "queue_owner_account_id": DEFAULT_ACCOUNT,
    }
    return kind(**{name: value for name, value in given.items() if name in names})


OF_NO_QUEUE = {
    c.CreateQueue, c.DeclareQueue, c.ListQueues, c.CancelMessageMoveTask, AdvanceClock, DeleteAllQueues,
    GetCallerIdentity,
}  # fmt: skip
ABOUT_A_QUEUE = sorted(
    {kind for kind in HANDLERS if not issubclass(kind, (TopicCommand, GroupCommand))} - OF_NO_QUEUE,
    key=lambda kind: kind.__name__,
)


def is_denied(desk: Desk, command: c.Command, account: str = STRANGER) -> bool:
    try:
        proven(desk, command, account)
    except AccessDenied:
        return True
    except SqsError:
        pass  # it came as far as its handler
    return False


@pytest.mark.parametrize("kind", ABOUT_A_QUEUE, ids=lambda kind: kind.__name__)
def test_a_stranger_may_nothing_without_a_policy(kind: type[c.Command]) -> None:
    desk = Desk()
    desk.create()
    assert is_denied(desk, about_the_queue(kind))
    assert not is_denied(desk, about_the_queue(kind), DEFAULT_ACCOUNT)


def test_a_consumer_group_is_its_account_s_alone_and_opens_no_queue() -> None:
    desk = Desk()
    desk.create()
    proven(desk, ElasticqSetGroup("g", queue_names=["jobs"]), DEFAULT_ACCOUNT)
    joined = proven(desk, ElasticqJoinGroup("g"), DEFAULT_ACCOUNT)
    with pytest.raises(ElasticqGroupDoesNotExist):
        proven(desk, ElasticqJoinGroup("g"), STRANGER)
    fence = {"elasticq_group": "g", "elasticq_token": joined.assigned[0].token}
    assert is_denied(desk, c.ReceiveMessage(URL, **fence))
    set_policy(desk, ALLOW_ALL)
    with pytest.raises(ElasticqNotHolder):
        proven(desk, c.ReceiveMessage(URL, **fence), STRANGER)


@pytest.mark.parametrize("kind", ABOUT_A_QUEUE, ids=lambda kind: kind.__name__)
def test_a_policy_opens_all_but_what_is_the_owners(kind: type[c.Command]) -> None:
    desk = Desk()
    desk.create()
    set_policy(desk, ALLOW_ALL)
    assert is_denied(desk, about_the_queue(kind)) == (kind.__name__ in OWNER_ONLY)


def test_a_queue_that_is_not_there_answers_a_stranger_alike() -> None:
    desk = Desk()
    desk.create()
    there, missing = URL, f"{ENDPOINT}/{DEFAULT_ACCOUNT}/none"
    messages = []
    for url in (there, missing):
        with pytest.raises(AccessDenied) as caught:
            proven(desk, c.SendMessage(queue_url=url, message_body="x"))
        messages.append(caught.value.message.replace("none", "jobs"))
    assert messages[0] == messages[1]


def test_batches_are_allowed_by_the_name_without_batch() -> None:
    desk = Desk()
    desk.create()
    set_policy(desk, ALLOW_ALL | {"Action": ["sqs:SendMessage"]})
    entry = c.SendMessageBatchEntry(id="a", message_body="x")
    proven(desk, c.SendMessageBatch(queue_url=URL, entries=[entry]))
    assert is_denied(desk, c.ReceiveMessage(queue_url=URL))


def test_deny_is_for_the_owner_too_but_cannot_lock_him_out() -> None:
    desk = Desk()
    desk.create()
    set_policy(desk, ALLOW_ALL | {"Effect": "Deny"})
    with pytest.raises(AccessDenied, match="with an explicit deny in a resource-based policy"):
        proven(desk, c.SendMessage(queue_url=URL, message_body="x"), DEFAULT_ACCOUNT)
    proven(desk, c.SetQueueAttributes(queue_url=URL, attributes={"Policy": ""}), DEFAULT_ACCOUNT)
    proven(desk, c.SendMessage(queue_url=URL, message_body="x"), DEFAULT_ACCOUNT)


def test_conditions_ask_where_the_call_came_from() -> None:
    desk = Desk()
    desk.create()
    set_policy(
        desk, ALLOW_ALL, {**ALLOW_ALL, "Effect": "Deny", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    )
    command = c.SendMessage(queue_url=URL, message_body="x")
    assert is_denied(desk, command)
    secure = c.Call(command, "AKID", STRANGER, ENDPOINT, b"", c.Origin("127.0.0.1", True))
    execute(desk.state, secure, desk.context)


def test_a_move_may_not_end_in_a_queue_of_another() -> None:
    desk = Desk()
    desk.create()
    proven(desk, c.CreateQueue(queue_name="dead"))
    command = c.StartMessageMoveTask(source_arn=f"arn:aws:sqs:us-east-1:{STRANGER}:dead", destination_arn=ARN)
    assert is_denied(desk, command)
    set_policy(desk, ALLOW_ALL | {"Action": "sqs:SendMessage"})
    assert not is_denied(desk, command)


def test_a_task_of_another_cannot_be_cancelled() -> None:
    desk = Desk()
    desk.create("dead")
    desk.create(
        "jobs", RedrivePolicy=json.dumps({"deadLetterTargetArn": ARN.replace("jobs", "dead"), "maxReceiveCount": 1})
    )
    started = desk.do(c.StartMessageMoveTask(source_arn=ARN.replace("jobs", "dead")))
    handle: str = msgspec.to_builtins(started)["task_handle"]
    assert is_denied(desk, c.CancelMessageMoveTask(task_handle=handle))
    assert not is_denied(desk, c.CancelMessageMoveTask(task_handle=handle), DEFAULT_ACCOUNT)


def test_policies_are_not_asked_where_callers_are_not_proven() -> None:
    desk = Desk()
    desk.create()
    set_policy(desk, ALLOW_ALL | {"Effect": "Deny"})
    desk.do(c.SendMessage(queue_url=URL, message_body="x"), account=STRANGER)
