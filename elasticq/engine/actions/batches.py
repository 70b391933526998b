"""The common rules of batch actions: the number and ids of entries, and errors of single entries."""

import re
from collections.abc import Sequence
from typing import Final, Protocol

from elasticq.engine.context import ExecutionContext
from elasticq.engine.stored.contents import check_range
from elasticq.model import limits
from elasticq.model.errors import (
    BatchEntryIdsNotDistinct,
    EmptyBatchRequest,
    InvalidBatchEntryId,
    SqsError,
    TooManyEntriesInBatchRequest,
)
from elasticq.model.results import BatchError

ENTRY_ID_CHARS_MAX: Final = 80
_ENTRY_ID: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{ENTRY_ID_CHARS_MAX}}}\Z")


class _Entry(Protocol):
    @property
    def id(self) -> str | None: ...


def check_page_size(page_size: int) -> int:
    """Return the value of ElasticqPageSize, our own parameter. Raise InvalidParameterValue if it is out of range."""
    return check_range(
        page_size, 1, limits.PAGE_SIZE_MAX, "ElasticqPageSize", f"Must be between 1 and {limits.PAGE_SIZE_MAX}"
    )


def batch_entries_max(context: ExecutionContext, page_size: int | None) -> int:
    """Return the maximum number of entries of a batch: its ElasticqPageSize, or the limit in force.

    Raise InvalidParameterValue if the page size is out of range.
    """
    return context.limits.batch_entries if page_size is None else check_page_size(page_size)


def check_entries(entries: Sequence[_Entry], entry_type: str, entries_max: int) -> list[str]:
    """Return the ids of the entries.

    Raise EmptyBatchRequest, TooManyEntriesInBatchRequest, InvalidBatchEntryId or BatchEntryIdsNotDistinct.
    """
    if not entries:
        raise EmptyBatchRequest(f"There should be at least one {entry_type} in the request.")
    if len(entries) > entries_max:
        raise TooManyEntriesInBatchRequest(
            f"Maximum number of entries per request are {entries_max}. You have sent {len(entries)}."
        )
    ids = [entry.id or "" for entry in entries]
    if not _are_simple(ids):
        _check_each(ids)
    return ids


def _are_simple(ids: list[str]) -> bool:
    """Return whether the ids are distinct and have 1 to 80 letters, digits and hyphens each.

    This fast check of all ids at once suffices for nearly all calls. If it fails, ``_check_each`` decides.
    """
    for name in ids:
        if not name or len(name) > ENTRY_ID_CHARS_MAX:
            return False
    characters = "".join(ids).replace("-", "")
    return characters.isascii() and characters.isalnum() and len(set(ids)) == len(ids)


def _check_each(ids: list[str]) -> None:
    seen: set[str] = set()
    for name in ids:
        if not _ENTRY_ID.match(name):
            raise InvalidBatchEntryId
        if name in seen:
            raise BatchEntryIdsNotDistinct(f"Id {name} repeated.")
        seen.add(name)


def failed(entry_id: str, error: SqsError) -> BatchError:
    """Return the BatchResultErrorEntry of an entry that failed with this error."""
    return BatchError(entry_id, error.code, error.message, error.sender_fault)
