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
    """Asks who would vote for the sender in ``term`` (its own + 1); it changes nothing at the addressee."""

    last_index: Index
    last_term: Term


class PreVoteReply(Message, tag=2):
    """Answers a PreVote; ``term`` is the replier's own, ``asked_term`` that of the PreVote."""

    asked_term: Term
    granted: bool


class RequestVote(Message, tag=3):
    """Asks for a vote in ``term``; ``transfer``: the old master asked for this election, so stickiness is waived."""

    last_index: Index
    last_term: Term
    transfer: bool


class _VoteReply(Message):
    """The fields of a VoteReply that members sent before there was ``linked_term``."""

    granted: bool
    linked: bool
    time_ms: TimeMs


class VoteReply(_VoteReply, tag=4, kw_only=True):
    """Answers a RequestVote; ``time_ms`` is cluster time at sending if the voter is ``linked``, else its wall clock.

    linked_term: the term of the master it is linked to. A class of its own puts it last on the wire, behind the
    header, where members of an older version do not look for it; it is 0 where they send none.
    """

    linked_term: int = 0


class Append(Message, tag=5):
    """Carries the entries after (prev_index, prev_term); a heartbeat has none.

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
    """Answers an Append.

    match_index: if ok, the log is durable and equal to the master's up to here; else a hint where to go on.
    """

    ok: bool
    match_index: Index
    round: Index


class TimeoutNow(Message, tag=7):
    """Asks the addressee to stand for election at once, for a planned transfer of the mastership."""


class Join(Message, tag=8):
    """Asks a master for the log: the sender is no voter and hears no master. ``term`` is the sender's own."""


class Offer(Message, tag=9):
    """Offers a snapshot at ``index`` or above, as the entries after the addressee's log are forgotten here."""

    index: Index


class Found(Message, tag=10):
    """Asks for one more founder: ``entry`` is the first of the log, the same for all, and names them as voters."""

    entry: Entry


AnyMessage = PreVote | PreVoteReply | RequestVote | VoteReply | Append | AppendReply | TimeoutNow | Join | Offer | Found

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[AnyMessage] = msgspec.msgpack.Decoder(AnyMessage)


def encode(message: AnyMessage) -> bytes:
    """The frame of ``message``: one version byte, then msgpack."""
    return bytes((PROTOCOL_VERSION,)) + _encoder.encode(message)


def decode(frame: bytes) -> AnyMessage:
    """Raises FrameError for anything that ``encode`` did not make."""
    if not frame or frame[0] != PROTOCOL_VERSION:
        raise FrameError("unknown protocol version")
    try:
        return _decoder.decode(memoryview(frame)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(str(error)) from error
