"""The table against the service model that ships with boto3: every member of an action is known."""

import botocore.session
import msgspec
import pytest
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StructureShape

from elasticq.model.actions import ACTIONS as ACTIONS_TABLE
from elasticq.model.actions import EXTENSIONS
from elasticq.model.group_commands import GroupCommand
from elasticq.wire import json, xml
from elasticq.wire.operations import BY_HAND, OPERATIONS, SQS, Kind

SERVICE: ServiceModel = botocore.session.get_session().get_service_model("sqs")
ACTIONS = [
    "CreateQueue", "GetQueueUrl", "ListQueues", "DeleteQueue", "GetQueueAttributes", "SetQueueAttributes",
    "SendMessage", "SendMessageBatch", "ReceiveMessage", "DeleteMessage", "DeleteMessageBatch",
    "ChangeMessageVisibility", "ChangeMessageVisibilityBatch", "PurgeQueue",
    "TagQueue", "UntagQueue", "ListQueueTags", "AddPermission", "RemovePermission", "ListDeadLetterSourceQueues",
    "StartMessageMoveTask", "CancelMessageMoveTask", "ListMessageMoveTasks",
]  # fmt: skip
FENCE = {"ElasticqGroup", "ElasticqToken", "ElasticqPartition"}
OURS = [row.name for row in EXTENSIONS]
RESERVED = {"StringListValues", "BinaryListValues"}  # "not implemented, reserved for future use" (AWS)


def sample(shape: Shape) -> object:
    """A JSON value with every member of ``shape``."""
    if isinstance(shape, StructureShape):
        return {name: sample(member) for name, member in shape.members.items() if name not in RESERVED}
    if isinstance(shape, MapShape):
        return {"key": sample(shape.value)}
    if isinstance(shape, ListShape):
        return [sample(shape.member)]
    return {"string": "text", "integer": 7, "blob": "aGVsbG8="}[shape.type_name]


def test_table_holds_each_action_once() -> None:
    assert sorted(ACTIONS) == sorted(SERVICE.operation_names)
    assert sorted(OPERATIONS) == sorted([*ACTIONS, *OURS])
    assert {f"AmazonSQS.{name}".encode(): operation for name, operation in OPERATIONS.items()} == SQS.by_target
    assert all(operation.name == operation.command.__name__ for operation in OPERATIONS.values())


@pytest.mark.parametrize("action", ACTIONS)
def test_every_member_of_the_service_model_is_known_to_the_command(action: str) -> None:
    members = sample(SERVICE.operation_model(action).input_shape)
    command = OPERATIONS[action].decoder.decode(msgspec.json.encode(members))
    known = msgspec.json.decode(msgspec.json.encode(command))
    assert {name: value for name, value in known.items() if not name.startswith("Elasticq")} == members


@pytest.mark.parametrize("action", ACTIONS)
def test_every_member_of_the_service_model_has_a_query_form(action: str) -> None:
    shape = OPERATIONS[action].shape
    names = {*shape.texts, *shape.integers, *(member.name for member in shape.lists.values())}
    known = set(OPERATIONS[action].command.__struct_encode_fields__)
    own = {name for name in known if name.startswith("Elasticq")}
    assert names == known - own | own & FENCE, "what a call must not be executed without is read in both protocols"
    assert {*shape.texts, *shape.integers} - FENCE == {
        name
        for name, member in SERVICE.operation_model(action).input_shape.members.items()
        if member.type_name in ("string", "integer")
    }


@pytest.mark.parametrize(
    ("action", "names"),
    [
        ("CreateQueue", {"Attribute": Kind.PAIRS, "Tag": Kind.PAIRS}),
        ("SetQueueAttributes", {"Attribute": Kind.PAIRS}),
        ("GetQueueAttributes", {"AttributeName": Kind.NAMES}),
        ("SendMessage", {"MessageAttribute": Kind.ATTRIBUTES, "MessageSystemAttribute": Kind.ATTRIBUTES}),
        (
            "ReceiveMessage",
            {
                "AttributeName": Kind.NAMES,
                "MessageSystemAttributeName": Kind.NAMES,
                "MessageAttributeName": Kind.NAMES,
            },
        ),
        ("TagQueue", {"Tag": Kind.PAIRS, "Tags": Kind.PAIRS}),
        ("UntagQueue", {"TagKey": Kind.NAMES}),
        ("AddPermission", {"AWSAccountId": Kind.NAMES, "ActionName": Kind.NAMES}),
        ("SendMessageBatch", {"SendMessageBatchRequestEntry": Kind.ENTRIES}),
        ("DeleteMessageBatch", {"DeleteMessageBatchRequestEntry": Kind.ENTRIES}),
        ("ChangeMessageVisibilityBatch", {"ChangeMessageVisibilityBatchRequestEntry": Kind.ENTRIES}),
    ],
)
def test_lists_have_the_singular_names_of_the_query_protocol(action: str, names: dict[str, Kind]) -> None:
    assert {name: member.kind for name, member in OPERATIONS[action].shape.lists.items()} == names


def test_facts_about_actions() -> None:
    read_only = {name for name, operation in OPERATIONS.items() if operation.read_only}
    assert read_only == {name for name in ACTIONS if name.startswith(("Get", "List"))} | {"ElasticqDescribeGroups"}
    of_groups = {row.name for row in EXTENSIONS if issubclass(OPERATIONS[row.name].command, GroupCommand)}
    root_only = {name for name, operation in OPERATIONS.items() if operation.root_only}
    assert root_only == {"CreateQueue", "ListQueues"} | of_groups
    batches = {operation.name: operation.entry_name for operation in OPERATIONS.values() if operation.entry_name}
    assert batches == {name: f"{name}RequestEntry" for name in ACTIONS if name.endswith("Batch")}


def test_a_result_is_written_by_hand_or_by_its_fields() -> None:
    assert {kind.__name__ for kind in json._WRITERS} == BY_HAND
    assert {kind.__name__ for kind in xml._WRITERS} == BY_HAND - {"PeekResult"}  # of JSON only
    by_hand = {row.name for row in (*ACTIONS_TABLE, *EXTENSIONS) if row.result in BY_HAND}
    assert {name for name, operation in OPERATIONS.items() if not operation.result} == by_hand


@pytest.mark.parametrize("action", [name for name in ACTIONS if OPERATIONS[name].result])
def test_an_answer_has_the_members_of_the_service_model(action: str) -> None:
    members = SERVICE.operation_model(action).output_shape.members
    assert {member.name for member in OPERATIONS[action].result} == set(members)
