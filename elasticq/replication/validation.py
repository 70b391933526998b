"""Decides which messages of other members are taken: each is judged like a request, before it has changed anything.

The codec has judged each number by itself (model/ranges.py); here is what only shows beside other fields and this
member's own place. Whatever a correct member can have sent passes, however late or often it comes: what Raft's rules
answer or ignore is theirs. What is refused costs the link that brought it, never the process.
"""

from elasticq.model.ranges import TERM_JUMP_MAX, VOTERS_MAX
from elasticq.replication.messages import AnyMessage, Append, AppendReply, Found, FrameError
from elasticq.replication.records import Entry
from elasticq.replication.replica import MASTER, Replica


def validate(message: AnyMessage, replica: Replica) -> None:
    """Raises FrameError for a message that no member that keeps to the rules can have sent to this one."""
    _require(message.group == 0, "it is of a group that there is not")
    _require(message.sender != replica.member_id, "it bears this member's own id")
    if replica.term:  # a member that is new knows no term yet
        _require(message.term - replica.term <= TERM_JUMP_MAX, f"its term {message.term} is too far ahead")
    match message:
        case Append():
            _judge_append(message, replica)
        case AppendReply():
            _judge_reply(message, replica)
        case Found():
            _judge_entries([message.entry], 0, 0, message.term)


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise FrameError(reason)


def _judge_append(message: Append, replica: Replica) -> None:
    if message.term == replica.term:
        _require(replica.role != MASTER, "a second master in this member's own term")
        _require(replica.master in (None, message.sender), f"a second master in term {message.term}")
    _require(message.prev_term <= message.term, "its place in the log is of a later term than its own")
    _judge_entries(message.entries, message.prev_index, message.prev_term, message.term)
    if message.term >= replica.term and message.prev_index >= replica.log.base_index:
        _judge_history(message, replica)


def _judge_entries(entries: list[Entry], last_index: int, last_term: int, term_max: int) -> None:
    for entry in entries:
        _require(entry.index == last_index + 1, "its entries are not one after the other")
        _require(last_term <= entry.term <= term_max, "the terms of its entries fall, or are beyond its own")
        last_index, last_term = entry.index, entry.term
        if entry.voters is not None:
            ids = {voter.id for voter in entry.voters}
            _require(0 < len(ids) == len(entry.voters) <= VOTERS_MAX, "its voters are none, too many or not distinct")


def _judge_history(message: Append, replica: Replica) -> None:
    """Refuse an Append that contradicts what is committed here: no master of this cluster sends one."""
    log, committed = replica.log, replica.commit_index
    if message.prev_index <= committed:
        _require(log.term_at(message.prev_index) == message.prev_term, "another history of what is committed here")
        for entry in message.entries[: committed - message.prev_index]:
            _require(log.term_at(entry.index) == entry.term, "other entries than those that are committed here")


def _judge_reply(message: AppendReply, replica: Replica) -> None:
    if replica.role == MASTER and message.term == replica.term:
        _require(message.round <= replica.lease.round, "it answers a round that never was")
        _require(not message.ok or message.match_index <= replica.log.last_index, "it has more than this master's log")
