"""The messages between members: frames of msgpack with a schema.

Every frame carries cluster, group (always 0), sender, addressee and term. A frame that cannot be decoded raises
``FrameError`` and changes nothing.
"""

import msgspec
from msgspec import Struct

from elasticq.model.ranges import ClusterId, Index, MemberId, Term, TimeMs
from elasticq.replication.records import Entry

PROTOCOL_VERSION = 1


class FrameError(Exception):
    """The error that the bytes are not a frame of this protocol version."""


class Message(Struct, array_like=True, gc=False, kw_only=True):
    """The header of every message. ``sender`` and ``to`` are member ids."""

    cluster: ClusterId
    group: int
    sender: MemberId
    to: MemberId
    term: Term


class PreVote(Message, tag=1):
    """A question whether the addressee would vote for the sender in ``term`` (its own + 1). It changes nothing
    there."""

    last_index: Index
    last_term: Term


class PreVoteReply(Message, tag=2):
    """The answer to a PreVote. ``term`` is the replier's own, ``asked_term`` that of the PreVote."""

    asked_term: Term
    granted: bool


class RequestVote(Message, tag=3):
    """A request for a vote in ``term``.

    With ``transfer`` the old master asked for this election, so stickiness is waived.
    """

    last_index: Index
    last_term: Term
    transfer: bool


class VoteReply(Message, tag=4):
    """The answer to a RequestVote.

    linked: the voter's clock is linked to a master.
    time_ms: cluster time at sending if the voter is linked, otherwise its wall clock.
    linked_term: the term of that master.
    """

    granted: bool
    linked: bool
    time_ms: TimeMs
    linked_term: int = 0


class Append(Message, tag=5):
    """A message with the entries after (prev_index, prev_term). A heartbeat has no entries.

    round: grows with every broadcast. The reply repeats it (lease, check-quorum).
    time_ms: cluster time at sending, to which followers link their clocks.
    is_news: it only carries the commit index and needs no answer.
    """

    prev_index: Index
    prev_term: Term
    commit_index: Index
    round: Index
    time_ms: TimeMs
    entries: list[Entry]
    is_news: bool = False


class AppendReply(Message, tag=6):
    """The answer to an Append.

    match_index: if ok, this log is durable and equal to the master's up to here. If not ok, it is a hint: the logs may
        be equal up to here.
    """

    ok: bool
    match_index: Index
    round: Index


class TimeoutNow(Message, tag=7):
    """A request to start an election at once, for a planned hand-over of the mastership."""


class Join(Message, tag=8):
    """A request to a master for the log, by a member that is no voter and hears no master.

    ``term`` is the sender's own.
    """


class Offer(Message, tag=9):
    """An offer of a snapshot at ``index`` or above, because the sender has forgotten the entries that the addressee
    needs."""

    index: Index


class Found(Message, tag=10):
    """A request to become a founder.

    ``entry`` is the first of the log, equal for all founders, and names them as voters.
    """

    entry: Entry


AnyMessage = PreVote | PreVoteReply | RequestVote | VoteReply | Append | AppendReply | TimeoutNow | Join | Offer | Found

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[AnyMessage] = msgspec.msgpack.Decoder(AnyMessage)


def encode(message: AnyMessage) -> bytes:
    """Return the frame of ``message``: one version byte, then msgpack."""
    return bytes((PROTOCOL_VERSION,)) + _encoder.encode(message)


def decode(frame: bytes) -> AnyMessage:
    """Return the message of a frame. Raise FrameError for anything that ``encode`` did not make."""
    if not frame or frame[0] != PROTOCOL_VERSION:
        raise FrameError("unknown protocol version")
    try:
        return _decoder.decode(memoryview(frame)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(str(error)) from error
