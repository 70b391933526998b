"""The kinds of outcomes that a master treats differently."""

from elasticq.model.errors import SqsError
from elasticq.model.results import ReceiveMessageResult, Result, SendMessageBatchResult, SendMessageResult


def found_nothing(result: Result | SqsError) -> bool:
    """Return whether this is the result of a receive that found no message and may wait."""
    return type(result) is ReceiveMessageResult and not result.messages and not result.leased


def is_plain(result: Result | SqsError) -> bool:
    """Return whether this is the result of a receive without a lease. Results under a lease may need no mutation."""
    return type(result) is ReceiveMessageResult and not result.leased


def is_standard_send(result: Result | SqsError) -> bool:
    """Return whether a send stored messages in a standard queue. Only such sends follow the acknowledgement modes."""
    if type(result) is SendMessageResult:
        return result.sequence_number is None
    if type(result) is not SendMessageBatchResult or not result.successful:
        return False
    return result.successful[0].sequence_number is None
