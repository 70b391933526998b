"""The table of actions names real classes, says of each who may be allowed it, and needs nothing installed."""

import subprocess
import sys
from pathlib import Path

import botocore.session
import pytest

from elasticq.model import (
    commands,
    extensions,
    group_commands,
    group_results,
    identity,
    results,
    topic_commands,
    topic_results,
)
from elasticq.model.actions import ACTIONS, BY_NAME, GRANTABLE, NOT_HERE, OWNER_ONLY, PEEK, TOPIC_ACTIONS, Action

ROOT = Path(__file__).resolve().parents[2]
SERVICE = botocore.session.get_session().get_service_model("sqs")
TOPICS = botocore.session.get_session().get_service_model("sns")
NO_RESULT = {"EmptyResult", "TopicDone"}


def test_table_has_each_action_of_the_service_once() -> None:
    assert sorted(row.name for row in ACTIONS) == sorted(SERVICE.operation_names)


@pytest.mark.parametrize("row", BY_NAME.values(), ids=lambda row: row.name)
def test_a_row_names_a_command_and_a_result(row: Action) -> None:
    kinds = {
        name: kind
        for module in (commands, extensions, group_commands, group_results, identity, results, topic_commands)
        for name, kind in (vars(module) | vars(topic_results)).items()
    }
    assert issubclass(kinds[row.command], commands.Command)
    assert issubclass(kinds[row.result], results.Result)


def test_actions_of_topics_are_those_of_the_service_each_once() -> None:
    assert sorted([*NOT_HERE, *(row.name for row in TOPIC_ACTIONS)]) == sorted(TOPICS.operation_names)


@pytest.mark.parametrize("row", TOPIC_ACTIONS, ids=lambda row: row.name)
def test_an_action_of_topics_answers_something_where_the_service_does(row: Action) -> None:
    assert (row.result in NO_RESULT) == (TOPICS.operation_model(row.name).output_shape is None)


def test_a_command_class_is_named_as_its_action_unless_queues_have_an_action_of_that_name() -> None:
    others = {row.name: row.command for row in TOPIC_ACTIONS if row.command not in (row.name, "NothingThere")}
    assert others == {"AddPermission": "AddTopicPermission", "RemovePermission": "RemoveTopicPermission"}
    assert others.keys() == {row.name for row in ACTIONS} & {row.name for row in TOPIC_ACTIONS}


@pytest.mark.parametrize("row", ACTIONS, ids=lambda row: row.name)
def test_an_action_answers_something_where_the_service_does(row: Action) -> None:
    assert (row.result == "EmptyResult") == (SERVICE.operation_model(row.name).output_shape is None)


def test_permissions_are_those_of_aws() -> None:
    """AddPermission API page: "the batch actions are covered"; SQS developer guide: what is the owner's alone."""
    assert set(GRANTABLE) == {
        "ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl", "ListDeadLetterSourceQueues",
        "PurgeQueue", "ReceiveMessage", "SendMessage",
    }  # fmt: skip
    assert set(OWNER_ONLY) == {
        "AddPermission", "CancelMessageMoveTask", "CreateQueue", "DeleteQueue", "ListMessageMoveTasks", "ListQueues",
        "ListQueueTags", "RemovePermission", "SetQueueAttributes", "StartMessageMoveTask", "TagQueue", "UntagQueue",
    }  # fmt: skip
    assert PEEK.permission == "ReceiveMessage"
    batches = {row.name: row.permission for row in ACTIONS if row.permission != row.name}
    assert batches == {row.name: row.name.removesuffix("Batch") for row in ACTIONS if row.name.endswith("Batch")}


def test_facts_about_actions() -> None:
    assert {row.name for row in ACTIONS if row.is_read_only} == {
        row.name for row in ACTIONS if row.name.startswith(("Get", "List"))
    }
    assert {row.name for row in ACTIONS if row.is_root_only} == {"CreateQueue", "ListQueues"}


def test_table_needs_nothing_but_the_standard_library() -> None:
    """-S: no site-packages, so nothing that was installed can be found. The light client runs so."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import elasticq.model.actions; "
        "print(sorted(n for n in sys.modules if n.startswith('elasticq.model.')))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program, str(ROOT)], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "['elasticq.model.actions']"), done.stderr
