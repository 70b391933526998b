"""The rules for entries of a batch, in AWS's order."""

import pytest

from elasticq.engine.actions.batches import batch_entries_max, check_entries, failed
from elasticq.model.commands import DeleteMessageBatchEntry
from elasticq.model.errors import (
    BatchEntryIdsNotDistinct,
    EmptyBatchRequest,
    InvalidBatchEntryId,
    InvalidParameterValue,
    QueueDoesNotExist,
    SqsError,
    TooManyEntriesInBatchRequest,
)
from tests.engine.desk import Desk


def entries(*ids: str | None) -> list[DeleteMessageBatchEntry]:
    return [DeleteMessageBatchEntry(name, "handle") for name in ids]


def test_ids_come_back_in_their_order() -> None:
    for ids in (
        ["b", "a", "A-_9" * 20],
        ["1", "Z9"],
        ["-", "--", "_"],
        ["a-b", "c-d"],
        ["0a3c5f1e-7b22-4d0e"],
    ):
        assert check_entries(entries(*ids), "Entry", 10) == ids


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        ((), EmptyBatchRequest),
        (tuple("abcdefghijk"), TooManyEntriesInBatchRequest),
        ((None,), InvalidBatchEntryId),
        (("",), InvalidBatchEntryId),
        (("a b",), InvalidBatchEntryId),
        (("a\n",), InvalidBatchEntryId),
        (("a" * 81,), InvalidBatchEntryId),
        (("a", "b", "a"), BatchEntryIdsNotDistinct),
        (("a_", "b", "a_"), BatchEntryIdsNotDistinct),
        (("a-b", "a-b"), BatchEntryIdsNotDistinct),
        (("a", "\u0663"), InvalidBatchEntryId),  # a digit, and not one of ASCII
        (("a", "a", "a b"), BatchEntryIdsNotDistinct),
        (("a", "a b", "a"), InvalidBatchEntryId),
    ],
)
def test_bad_entries_are_refused_as_a_whole(ids: tuple[str | None, ...], error: type[SqsError]) -> None:
    with pytest.raises(error):
        check_entries(entries(*ids), "Entry", 10)


def test_a_page_size_of_ours_allows_more_entries() -> None:
    context = Desk().context
    assert (batch_entries_max(context, None), batch_entries_max(context, 1_000)) == (10, 1_000)
    for page_size in (0, 1_001):
        with pytest.raises(InvalidParameterValue):
            batch_entries_max(context, page_size)


def test_a_failed_entry_tells_code_and_fault_of_its_error() -> None:
    told = failed("a", QueueDoesNotExist())
    assert (told.id, told.code, told.sender_fault) == ("a", QueueDoesNotExist().code, True)
