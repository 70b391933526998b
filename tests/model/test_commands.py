"""Commands and results have botocore's members under botocore's names."""

import botocore.session
import msgspec
import pytest

from elasticq.model import commands as c

SERVICE = botocore.session.Session().get_service_model("sqs")
CLASSES = [*c.Command.__subclasses__(), *c.FencedCommand.__subclasses__()]
COMMANDS = [kind for kind in CLASSES if kind.__name__ in SERVICE.operation_names]
RESERVED = {"StringListValues", "BinaryListValues"}  # AWS: not implemented, for future use


def members(kind: type) -> set[str]:
    """Without the extensions."""
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    return {name for name in names if not name.startswith("Elasticq")}


@pytest.mark.parametrize("kind", COMMANDS, ids=lambda kind: kind.__name__)
def test_command_has_exactly_the_members_of_the_action(kind: type[c.Command]) -> None:
    assert members(kind) == set(SERVICE.operation_model(kind.__name__).input_shape.members)


def test_every_action_has_a_command() -> None:
    assert len(COMMANDS) == len(SERVICE.operation_names)


@pytest.mark.parametrize(
    "kind", [c.SendMessageBatchEntry, c.DeleteMessageBatchEntry, c.ChangeMessageVisibilityBatchEntry]
)
def test_batch_entry_has_exactly_the_members_of_its_shape(kind: type) -> None:
    shape = SERVICE.shape_for(kind.__name__.replace("BatchEntry", "BatchRequestEntry"))
    assert members(kind) == set(shape.members)


def test_attribute_value_has_all_members_but_the_reserved_lists() -> None:
    assert members(c.MessageAttributeValue) == set(SERVICE.shape_for("MessageAttributeValue").members) - RESERVED


@pytest.mark.parametrize("kind", COMMANDS, ids=lambda kind: kind.__name__)
def test_an_empty_command_says_nothing(kind: type[c.Command]) -> None:
    for value in msgspec.structs.asdict(kind()).values():
        assert value is None or len(value) == 0


def test_no_two_commands_share_their_containers() -> None:
    c.CreateQueue().attributes["x"] = "y"
    assert c.CreateQueue().attributes == {}
