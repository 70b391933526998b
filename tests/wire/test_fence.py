"""The header X-Elasticq-Fence says what the members of a fence say, and a wrong one is refused, not passed over."""

import pytest

from elasticq.model import commands as c
from elasticq.model.errors import InvalidParameterValue
from elasticq.wire.fence import NO_FENCE, add_fence


@pytest.mark.parametrize(
    "command",
    [
        c.ReceiveMessage("q"),
        c.DeleteMessage("q"),
        c.DeleteMessageBatch("q"),
        c.ChangeMessageVisibility("q"),
        c.ChangeMessageVisibilityBatch("q"),
    ],
)
def test_the_members_are_filled_in(command: c.Command) -> None:
    add_fence(command, "my.group_1;9223372036854775807;12")
    fence = command.elasticq_group, command.elasticq_token, command.elasticq_partition
    assert fence == ("my.group_1", 2**63 - 1, 12)


def test_a_partition_is_optional_and_other_calls_have_no_fence() -> None:
    command = c.ReceiveMessage("q")
    add_fence(command, "g;7")
    assert (command.elasticq_token, command.elasticq_partition) == (7, None)
    sent = c.SendMessage("q")
    add_fence(sent, "anything")
    assert sent == c.SendMessage("q")


@pytest.mark.parametrize(
    "text",
    [NO_FENCE, "g", "g;", ";7", "g;x", "g;-1", "g;7;", "g;7;x", "g;7;1;2", "g;9223372036854775808", "g 1;7", "g;٧"],
)
def test_a_header_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameterValue, match="X-Elasticq-Fence"):
        add_fence(c.ReceiveMessage("q"), text)


def test_two_fences_are_refused() -> None:
    with pytest.raises(InvalidParameterValue, match="not both"):
        add_fence(c.ReceiveMessage("q", elasticq_group="g", elasticq_token=1), "g;1")
