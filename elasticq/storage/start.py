"""The start of a member: its log and its rows are checked against each other and joined."""

from elasticq.replication.records import BEGINNING, Base, Durable, Entry, Vote, Voter
from elasticq.storage.errors import DataError
from elasticq.storage.log.acknowledged_end import End
from elasticq.storage.log.segments import LogImage


def compose(vote: Vote, entries: list[Entry], applied: Base) -> Durable:
    """Return what is durable: the entries of the log, and the rows up to ``applied``.

    Entries that the rows already hold are included, because another member may need them. A log that ends before
    ``applied`` is ignored. Raise DataError if entries between the rows and the log are missing, or if the log's term
    is below the term of the rows.
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
            "log begins after them. Restore a backup, or run 'elasticq repair DIR'."
        )
    base = Base(first.index, first.term, first.time_ms, _voters_at(first, entries, applied))
    return Durable(vote, entries[1:], base, applied.index)


def _voters_at(first: Entry, entries: list[Entry], applied: Base) -> tuple[Voter, ...] | None:
    """Return the voters at ``first``; None if a later entry up to ``applied`` changed them, so they are unknown."""
    if first.voters is not None:
        return first.voters
    later = entries[1 : applied.index - first.index + 1]
    return applied.voters if all(entry.voters is None for entry in later) else None


def others_of(member_id: str, entries: list[Entry], applied: Base) -> tuple[str, ...]:
    """Return the ids of the other voters, from the newest entry that names voters; empty if there are none."""
    named = [entry.voters for entry in entries if entry.voters is not None]
    newest = named[-1] if named else applied.voters or ()
    return tuple(voter.id for voter in newest if voter.id != member_id)


def judge_end(
    image: LogImage, end: End | None, applied: Base, *, others: tuple[str, ...], was_lazy: bool, torn_bytes: int
) -> list[str]:
    """Return lines for the operator that say what the log lost at its end; empty if it lost nothing.

    ``end`` is how far the log once reached, None if unknown. ``others`` are the ids of the other voters.
    ``was_lazy``: the durability was not ``fsync``, so a power cut may have lost the newest entries.
    ``torn_bytes``: how many bytes of an unfinished record were cut off.

    Raise DataError if the operator has to decide. A voter that forgot what it acknowledged can make the whole cluster
    lose it. A single voter can continue with what the log still has, unless the rows are ahead of the log.
    """
    is_behind = image.last_index < applied.index
    place = f"The log ends at entry {image.last_index} in term {image.vote.term}"
    if end is None:
        if is_behind and image.last_index and not others and not was_lazy:
            raise DataError(f"{place} and the rows are at entry {applied.index}: it has lost its tail. {_BEGIN_ANEW}")
        return [f"The last {torn_bytes} bytes of the log were no whole record, and were cut."] if torn_bytes else []
    if end.last_index <= image.last_index and end.term <= image.vote.term:
        return []
    told = f"{place}, and had reached entry {end.last_index} in term {end.term}: it has lost its tail."
    if was_lazy:
        return [f"{told} A durability that is not 'fsync' promises no more."]
    if others:
        raise DataError(f"{told} {_REPLACE}")
    if is_behind:
        raise DataError(f"{told} The rows are at entry {applied.index}. {_BEGIN_ANEW}")
    if end.last_index <= image.last_index:
        return [f"{told} No entry is missing."]
    return [f"{told} Entries {image.last_index + 1} to {end.last_index} are lost, although they were acknowledged."]


_BEGIN_ANEW = "Restore a backup, or run 'elasticq repair DIR': it starts a new log after the rows."
_REPLACE = (
    "This member must not vote any more, as it has forgotten what it acknowledged. "
    "Empty its directory, start it, and give the order 'elasticq cluster replace'."
)
