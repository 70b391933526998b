"""Validation of the messages of other members. Each is validated like a request, before it changes anything.

The decoder has validated each number by itself (model/ranges.py). This module validates fields together with other
fields and with this member's state. It accepts every message that a correct member can have sent, even a late or
repeated one. Raft's rules then decide whether to answer or ignore it. A refused message closes the link that it came
over, but never ends the process.
"""

from elasticq.model.ranges import TERM_JUMP_MAX, VOTERS_MAX
from elasticq.replication.messages import AnyMessage, Append, AppendReply, Found, FrameError
from elasticq.replication.records import Entry
from elasticq.replication.replica import MASTER, Replica


def validate(message: AnyMessage, replica: Replica) -> None:
    """Raise FrameError for a message that no correct member can have sent to this one."""
    _require(message.group == 0, "it names an unknown group")
    _require(message.sender != replica.member_id, "its sender has this member's own id")
    if replica.term:  # a new member knows no term yet
        _require(message.term - replica.term <= TERM_JUMP_MAX, f"its term {message.term} is too far ahead")
    match message:
        case Append():
            _validate_append(message, replica)
        case AppendReply():
            _validate_reply(message, replica)
        case Found():
            _validate_entries([message.entry], 0, 0, message.term)


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise FrameError(reason)


def _validate_append(message: Append, replica: Replica) -> None:
    if message.term == replica.term:
        _require(replica.role != MASTER, "a second master in this member's own term")
        _require(replica.master in (None, message.sender), f"a second master in term {message.term}")
    _require(message.prev_term <= message.term, "the term before its entries is newer than its own")
    _validate_entries(message.entries, message.prev_index, message.prev_term, message.term)
    if message.term >= replica.term and message.prev_index >= replica.log.base_index:
        _validate_history(message, replica)


def _validate_entries(entries: list[Entry], last_index: int, last_term: int, term_max: int) -> None:
    for entry in entries:
        _require(entry.index == last_index + 1, "its entries are not consecutive")
        _require(last_term <= entry.term <= term_max, "the terms of its entries fall, or are newer than its own")
        last_index, last_term = entry.index, entry.term
        if entry.voters is not None:
            ids = {voter.id for voter in entry.voters}
            _require(0 < len(ids) == len(entry.voters) <= VOTERS_MAX, "it names no voters, too many or one twice")


def _validate_history(message: Append, replica: Replica) -> None:
    """Refuse an Append that contradicts committed entries. No master of this cluster sends one."""
    log, committed = replica.log, replica.commit_index
    if message.prev_index <= committed:
        _require(log.term_at(message.prev_index) == message.prev_term, "its log differs from committed entries")
        for entry in message.entries[: committed - message.prev_index]:
            _require(log.term_at(entry.index) == entry.term, "its entries differ from committed entries")


def _validate_reply(message: AppendReply, replica: Replica) -> None:
    if replica.role == MASTER and message.term == replica.term:
        _require(message.round <= replica.lease.round, "it answers a round that was never sent")
        _require(not message.ok or message.match_index <= replica.log.last_index, "it has more than this master's log")
