"""What members say to each other: frames as schema'd msgpack, nothing executable.

Every frame carries cluster, group (0 today), sender, addressee and term. A
frame that does not decode raises ``FrameError`` and changes nothing.
"""

import msgspec
from msgspec import Struct

from elasticq.model.ranges import ClusterId, Index, MemberId, Term, TimeMs
from elasticq.replication.records import Entry

PROTOCOL_VERSION = 1


class FrameError(Exception):
    """The bytes are no frame of this protocol version."""


class Message(Struct, array_like=True, gc=False, kw_only=True):
    """Header of every message; ``sender`` and ``to`` are member ids."""

    cluster: ClusterId
    group: int
    sender: MemberId
    to: MemberId
    term: Term


class PreVote(Message, tag=1):
    """Would you vote for me in ``term`` (mine + 1)? Changes nothing at the addressee."""

    last_index: Index
    last_term: Term


class PreVoteReply(Message, tag=2):
    """``term`` is the replier's own; ``asked_term`` the one asked for."""

    asked_term: Term
    granted: bool


class RequestVote(Message, tag=3):
    """``transfer``: the old master asked for this election, so stickiness is waived."""

    last_index: Index
    last_term: Term
    transfer: bool


class _VoteReply(Message):
    """As members told it before they told ``linked_term``."""

    granted: bool
    linked: bool
    time_ms: TimeMs


class VoteReply(_VoteReply, tag=4, kw_only=True):
    """Carries the voter's clock: ``linked`` cluster time at sending, else its wall clock.

    linked_term: of the master it is linked to; last on the wire, behind the header (so the class of its own),
    where members of an older version do not look for it. It is 0 where they send none.
    """

    linked_term: int = 0


class Append(Message, tag=5):
    """Entries after (prev_index, prev_term); empty as heartbeat.

    round: grows with every broadcast, echoed by the reply (lease, check-quorum);
    time_ms: cluster time at sending, the link of the followers' clocks; is_news: it only tells the
    commit index and wants no answer.
    """

    prev_index: Index
    prev_term: Term
    commit_index: Index
    round: Index
    time_ms: TimeMs
    entries: list[Entry]
    is_news: bool = False


class AppendReply(Message, tag=6):
    """``match_index``: durable and equal to the master's log up to here (when ok), else a hint where to go on."""

    ok: bool
    match_index: Index
    round: Index


class TimeoutNow(Message, tag=7):
    """Planned hand-over: stand for election at once."""


class Join(Message, tag=8):
    """I am no voter and hear no master: send me the log. ``term`` is the sender's own."""


class Offer(Message, tag=9):
    """What comes after the addressee's log is forgotten here: take a snapshot at ``index`` or above."""

    index: Index


class Found(Message, tag=10):
    """Be one of the founders: ``entry`` is the first of the log, the same for all, and names them as voters."""

    entry: Entry


AnyMessage = PreVote | PreVoteReply | RequestVote | VoteReply | Append | AppendReply | TimeoutNow | Join | Offer | Found

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[AnyMessage] = msgspec.msgpack.Decoder(AnyMessage)


def encode(message: AnyMessage) -> bytes:
    """One version byte, then the message."""
    return bytes((PROTOCOL_VERSION,)) + _encoder.encode(message)


def decode(frame: bytes) -> AnyMessage:
    """Raises FrameError for anything that ``encode`` did not make."""
    if not frame or frame[0] != PROTOCOL_VERSION:
        raise FrameError("unknown protocol version")
    try:
        return _decoder.decode(memoryview(frame)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(str(error)) from error
