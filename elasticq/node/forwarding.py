"""The frames for calls that a member passes on to the master, and for their answers.

A frame is one kind byte and msgpack with a schema. The member that accepted a call numbers it. A number is executed
once, even if the network duplicates or reorders frames.

If an answer is lost with its link, the master does not undo its effect, because the client may have read the answer. A
second delivery would be worse than messages that stay in flight until their timeout.
"""

from collections import OrderedDict
from typing import Any, Final

import msgspec
from msgspec import Struct

from elasticq.engine.stored.invocations import KEY_BYTES
from elasticq.model import classes, commands, errors
from elasticq.model.actions import BY_NAME
from elasticq.model.commands import Call, Origin
from elasticq.model.errors import SqsError
from elasticq.model.ranges import CallText, ClusterId, Index, MemberId, Owner, PeerText, Term, TimeMs
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.replication.messages import FrameError

FRAME_KIND: Final = 2
"""The first byte of these frames. Replication's frames begin with their protocol version, 1."""

FORWARDED: Final = bytes((FRAME_KIND,))
FORWARD_TAG: Final = 1
ANSWER_TAG: Final = 2
SEEN_MAX: Final = 100_000  # executed numbers of one member that are remembered
Outcome = Result | SqsError


class ContentRefused(FrameError):
    """A forwarded message whose header can be read, but not its content. Its link stays open.

    A call with such content is answered with an error. An answer with such content ends its call.
    """

    def __init__(self, header: "Header", reason: str) -> None:
        super().__init__(reason)
        self.header = header


class Header(Struct, array_like=True, gc=False):
    """The first fields of each numbered message. ``tag`` identifies the message class."""

    tag: int
    cluster: ClusterId
    sender: MemberId
    to: MemberId
    incarnation: ClusterId
    number: Index


class ForwardingMessage(Struct, array_like=True, gc=False):
    """The header of each message.

    ``incarnation`` identifies the Node that accepted the call, among the Nodes of its process.
    """

    cluster: ClusterId
    sender: MemberId
    to: MemberId
    incarnation: ClusterId


class Forward(ForwardingMessage, tag=FORWARD_TAG):
    """A request to execute a call once.

    kind: the class of the command.
    is_relayed: a receiver that is not the master passes the call on to the master.
    deadline_ms: the cluster's real time after which the call is not executed, because its client is answered 503; 0:
        none.
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
    """The answer to a Forward, whose ``incarnation`` it repeats.

    kind: the class of the result or error.
    body: the result, or the message of the error.
    """

    number: Index
    kind: str
    body: msgspec.Raw


class _OfCall(ForwardingMessage):
    """A message about one call."""

    number: Index


class Withdraw(_OfCall, tag=3, kw_only=True):
    """A notice that the client of a waiting receive disconnected or, with ``wants_answer``, that it must be answered
    now.

    Members of versions without that field ignore it and forget the receive.
    """

    wants_answer: bool = False


class GiveBack(ForwardingMessage, tag=4):
    """A notice that the answer ``result`` could not be written to its client. It is numbered like a call."""

    number: Index
    result: ReceiveMessageResult


class NotMaster(ForwardingMessage, tag=5):
    """A notice that the call had no effect, because the sender is not the master."""

    number: Index


class MasterIs(ForwardingMessage, tag=6):
    """A report of the master for proxies only. Members learn the master from Appends.

    term: the sender's term.
    master: a member id; empty if the sender hears no master.
    time_ms: the cluster's real time; 0 if the sender does not know it.
    may_make_guids: False while the history of invocation ids is reserved for the ids of clients.
    """

    term: Term
    master: ClusterId
    time_ms: TimeMs
    may_make_guids: bool


AnyForwardingMessage = Forward | Answer | Withdraw | GiveBack | NotMaster | MasterIs

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[AnyForwardingMessage] = msgspec.msgpack.Decoder(AnyForwardingMessage)
_header_decoder: msgspec.msgpack.Decoder[Header] = msgspec.msgpack.Decoder(Header)


_COMMANDS: Final = {name: msgspec.msgpack.Decoder(kind) for name, kind in classes.COMMANDS.items()}
_RESULTS: Final = {name: msgspec.msgpack.Decoder(kind) for name, kind in classes.RESULTS.items()}
_ERRORS: Final[dict[str, type[SqsError]]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, SqsError) and kind is not SqsError
}
_TEXT: Final = msgspec.msgpack.Decoder(str)


_ANSWERS: Final = {name: row.result for name, row in BY_NAME.items()}
"""The class name of each command's result, by the class name of the command."""


def encode(forwarded: AnyForwardingMessage) -> bytes:
    buffer = bytearray((FRAME_KIND,))
    _encoder.encode_into(forwarded, buffer, 1)
    return bytes(buffer)


def decode(frame: bytes) -> AnyForwardingMessage:
    """Return the message. Raise FrameError if its header is malformed, and ContentRefused if only its content is."""
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
    """Raise FrameError if the frame came over the link to a member other than its sender.

    An empty ``link`` is unknown and passes.
    """
    if link and sender != link:
        raise FrameError("its sender is not the member at the other end of its link")


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
    """Return the call of ``forward``. Raise ContentRefused if it is malformed or of another version."""
    if len(forward.invocation) not in (0, KEY_BYTES):
        raise ContentRefused(_header_of(forward), "the invocation key of the call has the wrong length")
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
    """Return the message that answers a call. ``forward`` is (sender, incarnation, number) of the call."""
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
    """Return the result or error of ``answer``. Raise ContentRefused if it is malformed or of another version."""
    error = _ERRORS.get(answer.kind)
    if error is not None:
        return error(_decoded({"": _TEXT}, "", answer.body, answer))
    result: Result = _decoded(_RESULTS, answer.kind, answer.body, answer)
    return result


def fits(outcome: Outcome, command: commands.Command) -> bool:
    """Return whether ``outcome`` can be the answer to ``command``. An error can answer any command."""
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
    """The executed call numbers of one incarnation of a member. They ensure that each call is executed once."""

    def __init__(self, incarnation: str) -> None:
        self.incarnation = incarnation
        self._floor = 0  # all numbers up to here were executed or are too old
        self._above: OrderedDict[int, None] = OrderedDict()

    def take(self, number: int) -> bool:
        """Note ``number`` as executed. Return False if it was noted before, or is too old to be known."""
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
