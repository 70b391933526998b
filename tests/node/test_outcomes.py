"""What a master asks of outcomes."""

import pytest

from elasticq.model.errors import QueueDoesNotExist, SqsError
from elasticq.model.results import (
    EmptyResult,
    ReceivedMessage,
    ReceiveMessageResult,
    Result,
    SendMessageBatchResult,
    SendMessageResult,
    SentEntry,
)
from elasticq.node.outcomes import found_nothing, is_plain, is_standard_send

MESSAGE = ReceivedMessage("m", "handle", "body")
ENTRY = SentEntry("1", 0, "m")


@pytest.mark.parametrize(
    ("outcome", "nothing", "plain", "standard"),
    [
        (ReceiveMessageResult(), True, True, False),
        (ReceiveMessageResult([MESSAGE]), False, True, False),
        (ReceiveMessageResult(leased=True), False, False, False),
        (SendMessageResult("m"), False, False, True),
        (SendMessageResult("m", "1"), False, False, False),
        (SendMessageBatchResult([ENTRY]), False, False, True),
        (SendMessageBatchResult(), False, False, False),
        (EmptyResult(), False, False, False),
        (QueueDoesNotExist(), False, False, False),
    ],
)
def test_outcomes_that_wait_or_follow_the_acknowledgement_modes(
    outcome: Result | SqsError, nothing: bool, plain: bool, standard: bool
) -> None:
    assert (found_nothing(outcome), is_plain(outcome), is_standard_send(outcome)) == (nothing, plain, standard)
