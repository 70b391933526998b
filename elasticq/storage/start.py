"""Log and rows as one, at the start of a member."""

from elasticq.replication.records import BEGINNING, Base, Durable, Entry, Vote, Voter
from elasticq.storage.errors import DataError


def compose(vote: Vote, entries: list[Entry], applied: Base) -> Durable:
    """The log's entries with the rows up to ``applied``; a log that ends below the rows counts for nothing.

    Entries that the rows hold already stay, as another member may need them. Raises DataError where
    something is missing between the two.
    """
    if vote.term < applied.term:
        raise DataError(
            f"The log is missing or older than the rows: its term is {vote.term}, theirs {applied.term}. "
            "Put the log back, restore a backup, or run 'elasticq repair DIR'."
        )
    if not entries or entries[-1].index < applied.index:
        return Durable(vote, [], applied, applied.index)
    first = entries[0]
    if first.index == 1:
        return Durable(vote, entries, BEGINNING, applied.index)
    if first.index == applied.index + 1:
        return Durable(vote, entries, applied, applied.index)
    if first.index > applied.index:
        raise DataError(
            f"Entries {applied.index + 1} to {first.index - 1} are missing: the rows end before them and the "
            "log begins behind them. Restore a backup, or run 'elasticq repair DIR'."
        )
    base = Base(first.index, first.term, first.time_ms, _voters_at(first, entries, applied))
    return Durable(vote, entries[1:], base, applied.index)


def _voters_at(first: Entry, entries: list[Entry], applied: Base) -> tuple[Voter, ...] | None:
    """Who they were at ``first``; None where a later entry, committed like all up to ``applied``, names others."""
    if first.voters is not None:
        return first.voters
    later = entries[1 : applied.index - first.index + 1]
    return applied.voters if all(entry.voters is None for entry in later) else None
