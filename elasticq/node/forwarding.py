"""Calls that a member passes on to the master, and their answers: frames beside those of replication.

A frame is one kind byte and schema'd msgpack. A call is numbered by the member
that accepted it; a number is executed once, whatever the network does. An answer
that is lost with its link is not taken back: its client may have read it, and
messages in two hands are worse than messages that stay hidden for their timeout.
"""

from collections import OrderedDict
from typing import Any, Final

import msgspec
from msgspec import Struct

from elasticq.engine.invocations import KEY_BYTES
from elasticq.model import commands, errors, extensions, results
from elasticq.model.actions import BY_NAME
from elasticq.model.commands import Call, Origin
from elasticq.model.errors import SqsError
from elasticq.model.ranges import CallText, ClusterId, Index, MemberId, PeerText
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.replication.messages import FrameError

FRAME_KIND: Final = 2
"""First byte; replication's frames begin with their protocol version, 1."""

SEEN_MAX: Final = 100_000  # numbers of one member that are remembered as executed
Outcome = Result | SqsError


class UnknownKind(FrameError):
    """A well-formed forwarded message of another version: its link stays, its command or answer is not known here."""


class ForwardingMessage(Struct, array_like=True, gc=False, kw_only=True):
    """Header: ``incarnation`` tells one life of the accepting member from the next."""

    cluster: ClusterId
    sender: MemberId
    to: MemberId
    incarnation: ClusterId


class Forward(ForwardingMessage, tag=1):
    """Execute it, once. ``kind`` is the command's class; ``is_relayed``: who is not the master passes it on to it."""

    number: Index
    kind: str
    command: msgspec.Raw
    principal: PeerText
    account: PeerText
    endpoint: CallText
    invocation: bytes
    origin: Origin | None = None
    is_relayed: bool = False
    trace_header: CallText = ""


class Answer(ForwardingMessage, tag=2):
    """``incarnation`` is the Forward's; ``kind``: class of the result, or of the error and ``body`` its message."""

    number: Index
    kind: str
    body: msgspec.Raw


class Withdraw(ForwardingMessage, tag=3):
    """The client of a waiting receive left."""

    number: Index


class GiveBack(ForwardingMessage, tag=4):
    """The messages of this answer could not be written to its client; numbered like calls."""

    number: Index
    result: ReceiveMessageResult


class NotMaster(ForwardingMessage, tag=5):
    """Nothing was done: the sender of this is not the master."""

    number: Index


AnyForwardingMessage = Forward | Answer | Withdraw | GiveBack | NotMaster

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[AnyForwardingMessage] = msgspec.msgpack.Decoder(AnyForwardingMessage)


def _classes(module: Any, base: type) -> dict[str, Any]:
    """The subclasses of ``base`` in ``module``, by their names; without ``base`` itself."""
    found = {name: kind for name, kind in vars(module).items() if isinstance(kind, type) and issubclass(kind, base)}
    return {name: kind for name, kind in found.items() if kind is not base}


_COMMANDS: Final = {
    name: msgspec.msgpack.Decoder(kind)
    for module in (commands, extensions)
    for name, kind in _classes(module, commands.Command).items()
}
_RESULTS: Final = {name: msgspec.msgpack.Decoder(kind) for name, kind in _classes(results, Result).items()}
_ERRORS: Final[dict[str, type[SqsError]]] = _classes(errors, SqsError)
_TEXT: Final = msgspec.msgpack.Decoder(str)


_ANSWERS: Final = {name: row.result for name, row in BY_NAME.items()}
"""The name of the class of a command -> that of its result."""


def encode(forwarded: AnyForwardingMessage) -> bytes:
    buffer = bytearray((FRAME_KIND,))
    _encoder.encode_into(forwarded, buffer, 1)
    return bytes(buffer)


def decode(frame: bytes) -> AnyForwardingMessage:
    """Raises FrameError for anything that ``encode`` did not make."""
    try:
        return _decoder.decode(memoryview(frame)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(str(error)) from error


def forward_of(
    call: Call, cluster: str, sender: str, to: str, incarnation: str, number: int, *, is_relayed: bool = False
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
    )


def call_of(forward: Forward) -> Call:
    """Raises FrameError for a command that this version does not know, or for no call."""
    if len(forward.invocation) not in (0, KEY_BYTES):
        raise FrameError("the mark of a call has another length")
    return Call(
        _decoded(_COMMANDS, forward.kind, forward.command),
        forward.principal,
        forward.account,
        forward.endpoint,
        forward.invocation,
        forward.origin,
        forward.trace_header,
    )


def answer_of(outcome: Outcome, forward: tuple[str, str, int], cluster: str, sender: str) -> Answer:
    """``forward``: (sender, boot, number) of the call."""
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
    """Raises FrameError for a result that this version does not know."""
    error = _ERRORS.get(answer.kind)
    if error is not None:
        return error(_decoded({"": _TEXT}, "", answer.body))
    result: Result = _decoded(_RESULTS, answer.kind, answer.body)
    return result


def fits(outcome: Outcome, command: commands.Command) -> bool:
    """Whether it can be the answer to this command; an error can be one to all."""
    return isinstance(outcome, SqsError) or type(outcome).__name__ == _ANSWERS[type(command).__name__]


def _decoded(decoders: dict[str, Any], kind: str, body: msgspec.Raw) -> Any:
    decoder = decoders.get(kind)
    if decoder is None:
        raise UnknownKind(f"unknown kind {kind[:40]!r}")
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(str(error)) from error


class Numbers:
    """Which numbers of one life of a member were executed: each once, late ones too."""

    __slots__ = ("_above", "_floor", "incarnation")

    def __init__(self, incarnation: str) -> None:
        self.incarnation = incarnation
        self._floor = 0  # all up to here were taken or are too old
        self._above: OrderedDict[int, None] = OrderedDict()

    def take(self, number: int) -> bool:
        """True the first time."""
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
