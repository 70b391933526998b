"""The errors that close a connection to another member, each with its reason.

PeerError
├── FrameError: bytes that are not valid frames
│   ├── WrongLength
│   ├── WrongVersion
│   ├── WrongChecksum
│   ├── UnexpectedKind
│   ├── BadMessage
│   └── RefusedFrame
├── HandshakeError: a process that may not connect to this one
│   ├── WrongSecret
│   ├── OtherProtocol
│   ├── OtherClusterName
│   ├── TwoClusters
│   └── SelfMet
├── Unanswered: the other side accepted a connection and did not finish the handshake in time
├── SlowReader: the other side does not read the frames sent to it
└── TransferBroken: the source did not deliver the whole snapshot
    └── Unreachable: no connection could be opened
"""

NO_ANSWER = "no answer"  # the start of a failure that a dead network causes; a dead process refuses at once
CLOSED = "the connection was closed at once"


class PeerError(Exception):
    """The cause for closing a connection. ``reason``: a short constant for logs and counters; the text has details."""

    reason = "peer_error"


class FrameError(PeerError):
    """Received bytes that are not a valid frame. The rest of the stream cannot be read."""

    reason = "bad_frame"


class WrongLength(FrameError):
    """A frame longer than its kind allows, or a damaged header."""

    reason = "wrong_length"


class WrongVersion(FrameError):
    """A frame format of the other side that this build does not support."""

    reason = "wrong_version"


class WrongChecksum(FrameError):
    """A wrong CRC or MAC: a frame was changed, repeated or left out, or the secrets differ."""

    reason = "wrong_checksum"


class UnexpectedKind(FrameError):
    """A frame whose kind is unknown, or not allowed in this phase of the connection."""

    reason = "unexpected_kind"


class BadMessage(FrameError):
    """A control message whose body does not match its schema."""

    reason = "bad_message"


class RefusedFrame(FrameError):
    """A frame that the node refused, because no correct member would send it."""

    reason = "refused_frame"


class HandshakeError(PeerError):
    """A handshake that failed because the other side may not connect to this process."""

    reason = "handshake"


class WrongSecret(HandshakeError):
    """A failed proof of the cluster secret, or a secret on only one side."""

    reason = "wrong_secret"


class OtherProtocol(HandshakeError):
    """Two sides with no protocol in common, or two incompatible builds of an unreleased protocol."""

    reason = "other_protocol"


class OtherClusterName(HandshakeError):
    """Two sides whose clusters have different names."""

    reason = "other_cluster_name"


class TwoClusters(HandshakeError):
    """Two sides whose clusters have the same name but different ids."""

    reason = "two_clusters"


class SelfMet(HandshakeError):
    """A connection of this process to itself. It is normal if the seeds list all members."""

    reason = "self"


class Unanswered(PeerError):
    """A handshake that the other side did not finish in time."""

    reason = "unanswered"


class SlowReader(PeerError):
    """Too many bytes of frames that the other side has not read. Raft repeats the frames that are dropped."""

    reason = "send_buffer_full"


class TransferBroken(PeerError):
    """A snapshot transfer whose source refused, failed or sent nothing for too long."""

    reason = "transfer_broken"


class Unreachable(TransferBroken):
    """An address where nobody answers, or where TLS failed. why: the cause without the address."""

    reason = "unreachable"

    def __init__(self, address: str, why: str) -> None:
        super().__init__(f"{address}: {why}")
        self.why = why
