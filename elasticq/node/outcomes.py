"""The kinds of outcomes that a master treats differently."""

from typing import Final

from elasticq.model.errors import SqsError
from elasticq.model.results import ReceiveMessageResult, Result, SendMessageBatchResult, SendMessageResult

# Compiled code finds these names of its own module without a dict lookup, and those of an interpreted one with it.
_ReceiveMessageResult: Final = ReceiveMessageResult
_SendMessageBatchResult: Final = SendMessageBatchResult
_SendMessageResult: Final = SendMessageResult


def found_nothing(result: Result | SqsError) -> bool:
    """Return whether this is the result of a receive that found no message and may wait."""
    return type(result) is _ReceiveMessageResult and not result.messages and not result.leased


def is_plain(result: Result | SqsError) -> bool:
    """Return whether this is the result of a receive without a lease. Results under a lease may need no mutation."""
    return type(result) is _ReceiveMessageResult and not result.leased


def is_standard_send(result: Result | SqsError) -> bool:
    """Return whether a send stored messages in a standard queue. Only such sends follow the acknowledgement modes."""
    if type(result) is _SendMessageResult:
        return result.sequence_number is None
    if type(result) is not _SendMessageBatchResult or not result.successful:
        return False
    return result.successful[0].sequence_number is None
