"""Calls that a member passes on to the master, and their answers: frames beside those of replication.

A frame is one kind byte and schema'd msgpack. A call is numbered by the member
that accepted it; a number is executed once, whatever the network does. An answer
that is lost with its link is not taken back: its client may have read it, and a
second delivery is worse than messages that stay hidden for their timeout.
"""

from collections import OrderedDict
from typing import Any, Final

import msgspec
from msgspec import Struct

from elasticq.engine.stored.invocations import KEY_BYTES
from elasticq.model import (
    commands,
    errors,
    extensions,
    group_commands,
    group_results,
    results,
    topic_commands,
    topic_results,
)
from elasticq.model.actions import BY_NAME
from elasticq.model.commands import Call, Origin
from elasticq.model.errors import SqsError
from elasticq.model.ranges import CallText, ClusterId, Index, MemberId, Owner, PeerText, Term, TimeMs
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.replication.messages import FrameError

FRAME_KIND: Final = 2
"""The first byte of these frames; replication's frames begin with their protocol version, 1."""

FORWARDED: Final = bytes((FRAME_KIND,))
FORWARD_TAG: Final = 1
ANSWER_TAG: Final = 2
SEEN_MAX: Final = 100_000  # numbers of one member that are remembered as executed
Outcome = Result | SqsError


class ContentRefused(FrameError):
    """A forwarded message with a header that can be read, and a content that cannot. Its link stays.

    A call with such content is answered with an error; an answer with such content ends the call that it is for.
    """

    def __init__(self, header: "Header", reason: str) -> None:
        super().__init__(reason)
        self.header = header


class Header(Struct, array_like=True, gc=False):
    """The fields with which each numbered message begins; ``tag`` names its class."""

    tag: int
    cluster: ClusterId
    sender: MemberId
    to: MemberId
    incarnation: ClusterId
    number: Index


class ForwardingMessage(Struct, array_like=True, gc=False):
    """The header of each message; ``incarnation`` tells one Node of the member that accepted the call from the next."""

    cluster: ClusterId
    sender: MemberId
    to: MemberId
    incarnation: ClusterId


class Forward(ForwardingMessage, tag=FORWARD_TAG):
    """Asks to execute a call once. ``kind``: the command's class.

    is_relayed: a receiver that is not the master passes the call on to it.
    deadline_ms: the cluster's real time after which the call is not executed, as its client is answered 503; 0: none.
    """

    number: Index
    kind: str
    command: msgspec.Raw
    principal: PeerText
    account: Owner
    endpoint: CallText
    invocation: bytes
    origin: Origin | None = None
    is_relayed: bool = False
    trace_header: CallText = ""
    deadline_ms: TimeMs = 0


class Answer(ForwardingMessage, tag=ANSWER_TAG):
    """Answers a Forward, whose ``incarnation`` it repeats.

    kind: the class of the result or error; body: the result, or the message of the error.
    """

    number: Index
    kind: str
    body: msgspec.Raw


class _OfCall(ForwardingMessage):
    """Is about a call."""

    number: Index


class Withdraw(_OfCall, tag=3, kw_only=True):
    """Says that the client of a waiting receive left; or with ``wants_answer`` that it is to be answered now.

    Members of versions without that field read the others, and forget the receive.
    """

    wants_answer: bool = False


class GiveBack(ForwardingMessage, tag=4):
    """Says that the answer ``result`` could not be written to its client; it is numbered like calls."""

    number: Index
    result: ReceiveMessageResult


class NotMaster(ForwardingMessage, tag=5):
    """Says that the call had no effect, as the sender of this message is not the master."""

    number: Index


class MasterIs(ForwardingMessage, tag=6):
    """Tells a proxy, and nobody else, who is master as far as the sender knows; members tell each other by Appends.

    term: the sender's; master: a member id, empty where it hears none; time_ms: the cluster's real time, 0 where it
    does not know it; may_make_guids: false while the history of GUIDs is left to clients' own ids.
    """

    term: Term
    master: ClusterId
    time_ms: TimeMs
    may_make_guids: bool


AnyForwardingMessage = Forward | Answer | Withdraw | GiveBack | NotMaster | MasterIs

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[AnyForwardingMessage] = msgspec.msgpack.Decoder(AnyForwardingMessage)
_header_decoder: msgspec.msgpack.Decoder[Header] = msgspec.msgpack.Decoder(Header)


def _classes(module: Any, base: type) -> dict[str, Any]:
    """The subclasses of ``base`` in ``module``, by their names; without ``base`` itself."""
    found = {name: kind for name, kind in vars(module).items() if isinstance(kind, type) and issubclass(kind, base)}
    return {name: kind for name, kind in found.items() if kind is not base}


_COMMANDS: Final = {
    name: msgspec.msgpack.Decoder(kind)
    for module in (commands, topic_commands, extensions, group_commands)
    for name, kind in _classes(module, commands.Command).items()
    if name in BY_NAME
}
_RESULTS: Final = {
    name: msgspec.msgpack.Decoder(kind)
    for module in (results, topic_results, group_results)
    for name, kind in _classes(module, Result).items()
}
_ERRORS: Final[dict[str, type[SqsError]]] = _classes(errors, SqsError)
_TEXT: Final = msgspec.msgpack.Decoder(str)


_ANSWERS: Final = {name: row.result for name, row in BY_NAME.items()}
"""The class name of each command's result, by the class name of the command."""


def encode(forwarded: AnyForwardingMessage) -> bytes:
    buffer = bytearray((FRAME_KIND,))
    _encoder.encode_into(forwarded, buffer, 1)
    return bytes(buffer)


def decode(frame: bytes) -> AnyForwardingMessage:
    """Return the message. Raises FrameError if its header is broken, ContentRefused if its content is."""
    content = memoryview(frame)[1:]
    try:
        return _decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error)
    try:
        header = _header_decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(str(error)) from error
    raise ContentRefused(header, reason)


def _header_of(message: Forward | Answer) -> Header:
    tag = FORWARD_TAG if isinstance(message, Forward) else ANSWER_TAG
    return Header(tag, message.cluster, message.sender, message.to, message.incarnation, message.number)


def check_sender(sender: str, link: str) -> None:
    """Raises FrameError for a frame that came over the link to another member than its sender, if that is known."""
    if link and sender != link:
        raise FrameError("it was sent in the name of another member than the one at the end of its link")


def forward_of(
    call: Call,
    cluster: str,
    sender: str,
    to: str,
    incarnation: str,
    number: int,
    *,
    is_relayed: bool = False,
    deadline_ms: int = 0,
) -> Forward:
    return Forward(
        cluster=cluster,
        sender=sender,
        to=to,
        incarnation=incarnation,
        number=number,
        kind=type(call.command).__name__,
        command=msgspec.Raw(_encoder.encode(call.command)),
        principal=call.principal,
        account=call.account,
        endpoint=call.endpoint,
        invocation=call.invocation,
        origin=call.origin,
        is_relayed=is_relayed,
        trace_header=call.trace_header,
        deadline_ms=deadline_ms,
    )


def call_of(forward: Forward) -> Call:
    """Return the call of ``forward``. Raises ContentRefused if it is malformed or of another version."""
    if len(forward.invocation) not in (0, KEY_BYTES):
        raise ContentRefused(_header_of(forward), "the invocation key of the call has another length")
    return Call(
        _decoded(_COMMANDS, forward.kind, forward.command, forward),
        forward.principal,
        forward.account,
        forward.endpoint,
        forward.invocation,
        forward.origin,
        forward.trace_header,
        forward.deadline_ms,
    )


def answer_of(outcome: Outcome, forward: tuple[str, str, int], cluster: str, sender: str) -> Answer:
    """The message that answers a call; ``forward`` is (sender, incarnation, number) of the call."""
    to, incarnation, number = forward
    body: object = outcome.message if isinstance(outcome, SqsError) else outcome
    return Answer(
        cluster=cluster,
        sender=sender,
        to=to,
        incarnation=incarnation,
        number=number,
        kind=type(outcome).__name__,
        body=msgspec.Raw(_encoder.encode(body)),
    )


def outcome_of(answer: Answer) -> Outcome:
    """Return the result or error of ``answer``. Raises ContentRefused if it is malformed or of another version."""
    error = _ERRORS.get(answer.kind)
    if error is not None:
        return error(_decoded({"": _TEXT}, "", answer.body, answer))
    result: Result = _decoded(_RESULTS, answer.kind, answer.body, answer)
    return result


def fits(outcome: Outcome, command: commands.Command) -> bool:
    """True if ``outcome`` can be the answer to ``command``; an error can be the answer to any."""
    return isinstance(outcome, SqsError) or type(outcome).__name__ == _ANSWERS[type(command).__name__]


def _decoded(decoders: dict[str, Any], kind: str, body: msgspec.Raw, of: Forward | Answer) -> Any:
    decoder = decoders.get(kind)
    if decoder is None:
        raise ContentRefused(_header_of(of), f"unknown kind {kind[:40]!r}")
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ContentRefused(_header_of(of), str(error)) from error


class Numbers:
    """The call numbers of one incarnation of a member that were executed, so that each is executed once."""

    __slots__ = ("_above", "_floor", "incarnation")

    def __init__(self, incarnation: str) -> None:
        self.incarnation = incarnation
        self._floor = 0  # all up to here were taken or are too old
        self._above: OrderedDict[int, None] = OrderedDict()

    def take(self, number: int) -> bool:
        """Note ``number`` as executed; False if it was noted before, or is too old to be known."""
        if number <= self._floor or number in self._above:
            return False
        self._above[number] = None
        while self._floor + 1 in self._above:
            self._floor += 1
            del self._above[self._floor]
        if len(self._above) > SEEN_MAX:
            self._floor = min(self._above)
            del self._above[self._floor]
        return True
