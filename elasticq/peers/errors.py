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
│   ├── OtherClusterName
│   ├── TwoClusters
│   └── SelfMet
├── SlowReader: it does not read what it is sent
└── TransferBroken: a snapshot did not come whole from this source
    └── Unreachable: no connection at all
"""


class PeerError(Exception):
    """``reason`` is a short constant for logs and counters; the text says more."""

    reason = "peer_error"


class FrameError(PeerError):
    """The bytes are no frame; what came after them cannot be read any more."""

    reason = "bad_frame"


class WrongLength(FrameError):
    """Longer than its kind may be, or the header is damaged."""

    reason = "wrong_length"


class WrongVersion(FrameError):
    """A format of frames, or a range of protocols, that is not understood here."""

    reason = "wrong_version"


class WrongChecksum(FrameError):
    """The CRC or MAC does not fit: changed, repeated or left out on the way, or another secret."""

    reason = "wrong_checksum"


class UnexpectedKind(FrameError):
    """Unknown, or not in this phase of the connection."""

    reason = "unexpected_kind"


class BadMessage(FrameError):
    """The body of a control message does not keep to its schema."""

    reason = "bad_message"


class RefusedFrame(FrameError):
    """The node cannot have been sent this by a member that keeps to the rules."""

    reason = "refused_frame"


class HandshakeError(PeerError):
    """The other side may not talk to this member."""

    reason = "handshake"


class WrongSecret(HandshakeError):
    """It could not prove that it knows the cluster secret, or only one side has one."""

    reason = "wrong_secret"


class OtherClusterName(HandshakeError):
    """It belongs to a cluster of another name."""

    reason = "other_cluster_name"


class TwoClusters(HandshakeError):
    """Same name, but both belong to a cluster, and not to the same one."""

    reason = "two_clusters"


class SelfMet(HandshakeError):
    """This process dialled itself (a seed list that names everybody)."""

    reason = "self"


class SlowReader(PeerError):
    """Its unread frames have reached the bound; Raft sends again what was dropped."""

    reason = "send_buffer_full"


class TransferBroken(PeerError):
    """The source refused, failed or fell silent."""

    reason = "transfer_broken"


class Unreachable(TransferBroken):
    """Nobody answers at that address, or TLS failed."""

    reason = "unreachable"
