"""Why a connection to another member was closed, each with its reason.

PeerError
├── FrameError: bytes that are no frames of ours
│   ├── WrongLength
│   ├── WrongVersion
│   ├── WrongChecksum
│   ├── UnexpectedKind
│   ├── BadMessage
│   └── RefusedFrame
├── HandshakeError: frames of somebody who does not belong here
│   ├── WrongSecret
│   ├── OtherProtocol
│   ├── OtherClusterName
│   ├── TwoClusters
│   └── SelfMet
├── SlowReader: it does not read what it is sent
└── TransferBroken: a snapshot did not come whole from this source
    └── Unreachable: no connection at all
"""


class PeerError(Exception):
    """Why a connection is closed. ``reason`` is a short constant for logs and counters; the text says more."""

    reason = "peer_error"


class FrameError(PeerError):
    """The bytes are no frame; what came after them cannot be read any more."""

    reason = "bad_frame"


class WrongLength(FrameError):
    """A frame is longer than its kind may be, or its header is damaged."""

    reason = "wrong_length"


class WrongVersion(FrameError):
    """The other side's format of frames is not understood here."""

    reason = "wrong_version"


class WrongChecksum(FrameError):
    """The CRC or MAC is wrong: the frame was changed, repeated or left out, or the secret is another one."""

    reason = "wrong_checksum"


class UnexpectedKind(FrameError):
    """The kind of frame is unknown, or not allowed in this phase of the connection."""

    reason = "unexpected_kind"


class BadMessage(FrameError):
    """The body of a control message does not keep to its schema."""

    reason = "bad_message"


class RefusedFrame(FrameError):
    """The node was sent a frame that no member sends that keeps to the rules."""

    reason = "refused_frame"


class HandshakeError(PeerError):
    """The other side may not talk to this member."""

    reason = "handshake"


class WrongSecret(HandshakeError):
    """The other side could not prove that it knows the cluster secret, or only one side has one."""

    reason = "wrong_secret"


class OtherProtocol(HandshakeError):
    """The other side speaks other protocols, or is another build of a protocol that is not released yet."""

    reason = "other_protocol"


class OtherClusterName(HandshakeError):
    """The other side belongs to a cluster of another name."""

    reason = "other_cluster_name"


class TwoClusters(HandshakeError):
    """Both sides belong to clusters of one name, but not to the same cluster."""

    reason = "two_clusters"


class SelfMet(HandshakeError):
    """This process dialled itself, as a seed list that names everybody makes it do."""

    reason = "self"


class SlowReader(PeerError):
    """Frames that the other side has not read have reached their bound; Raft sends again what was dropped."""

    reason = "send_buffer_full"


class TransferBroken(PeerError):
    """The source of a snapshot refused, failed or fell silent."""

    reason = "transfer_broken"


class Unreachable(TransferBroken):
    """Nobody answers at that address, or TLS failed."""

    reason = "unreachable"
