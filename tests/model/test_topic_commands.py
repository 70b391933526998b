"""Commands of topics have botocore's members under botocore's names, and results the members of its answers."""

import botocore.session
import msgspec
import pytest
from botocore.model import ListShape, StructureShape

from elasticq.model import topic_commands as t
from elasticq.model import topic_results
from elasticq.model.actions import TOPIC_ACTIONS, Action
from elasticq.wire.operations import SNS

SERVICE = botocore.session.Session().get_service_model("sns")
ROWS = [row for row in TOPIC_ACTIONS if row.command != "NothingThere"]
NOT_WRITTEN = {"number", "topic", "is_shown", "counts"}


def members(kind: type) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_command_has_exactly_the_members_of_the_action(row: Action) -> None:
    assert members(vars(t)[row.command]) == set(SERVICE.operation_model(row.name).input_shape.members)


@pytest.mark.parametrize("kind", [t.PublishBatchRequestEntry, t.Tag], ids=lambda kind: kind.__name__)
def test_item_of_a_list_has_exactly_the_members_of_its_shape(kind: type) -> None:
    assert members(kind) == set(SERVICE.shape_for(kind.__name__).members)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_result_has_exactly_the_members_of_the_answer(row: Action) -> None:
    shape = SERVICE.operation_model(row.name).output_shape
    names = {field.name for field in msgspec.structs.fields(vars(topic_results)[row.result])} - NOT_WRITTEN
    written = {"".join(map(str.capitalize, name.split("_"))) for name in names}
    assert written == (set(shape.members) if shape is not None else set())


@pytest.mark.parametrize(
    ("name", "kind"), [("Topic", topic_results.ListedTopic), ("Subscription", topic_results.ListedSubscription)]
)
def test_what_is_listed_has_exactly_the_members_of_its_shape(name: str, kind: type) -> None:
    assert members(kind) == set(SERVICE.shape_for(name).members)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_lists_and_maps_of_forms_are_wrapped_as_the_service_model_wraps_them(row: Action) -> None:
    shape = SERVICE.operation_model(row.name).input_shape
    wrapped = {name: member for name, member in shape.members.items() if member.type_name in ("list", "map")}
    lists = SNS.operations[row.name].shape.lists
    assert lists.keys() == wrapped.keys()
    for name, member in lists.items():
        assert member.wrapper == ("member" if isinstance(wrapped[name], ListShape) else "entry")
        if member.entry is not None:
            item = wrapped[name].member
            assert isinstance(item, StructureShape)
            assert member.entry.texts | member.entry.lists.keys() == set(item.members)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_empty_command_says_nothing(row: Action) -> None:
    for value in msgspec.structs.asdict(vars(t)[row.command]()).values():
        assert value is None or len(value) == 0
