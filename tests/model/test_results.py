"""Results carry nothing over from one answer to the next."""

import pytest

from elasticq.model import results


@pytest.mark.parametrize(
    "kind",
    [
        results.ListQueuesResult,
        results.QueueAttributesResult,
        results.SendMessageBatchResult,
        results.BatchResult,
        results.ReceiveMessageResult,
    ],
)
def test_no_two_results_share_their_containers(kind: type[results.Result]) -> None:
    first, second = kind(), kind()
    for name in kind.__struct_fields__:
        value = getattr(first, name)
        if isinstance(value, list | dict):
            assert value is not getattr(second, name)


def test_a_batch_error_is_the_senders_fault_unless_said_otherwise() -> None:
    assert results.BatchError("a", "Code", "words").sender_fault
