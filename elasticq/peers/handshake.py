"""The handshake: each side proves to the other that it knows the secret, and both derive the session keys.

It is pure: frames go in, frames come out.

    dialler                         acceptor
    HELLO(nonce, peer)  ──────────>
                        <────────── HELLO(nonce, peer), PROOF     (both with CRC seals)
    PROOF               ──────────>
    ... with a secret, each direction has its own key from here on ...

The root key is a keyed BLAKE2b over the bytes of both hellos, and so over both nonces. Proofs and session keys are
derived from it with labels that name the role. A replayed hello or proof fails because the nonce is new. A reflected
proof fails because its label differs. Without a secret the key is a constant. The proofs then only show that both
sides read the same hellos.

While a cluster changes its secret, a member may know two secrets. The acceptor proves the first of its own. The
dialler finds out which of its own two secrets that was, and continues with it.
"""

from hashlib import blake2b
from hmac import compare_digest

from elasticq.node.membership.peer import Peer
from elasticq.peers.errors import OtherClusterName, OtherProtocol, SelfMet, TwoClusters, UnexpectedKind, WrongSecret
from elasticq.peers.frames import HELLO, PROOF
from elasticq.peers.messages import PROTOCOL_MAX, PROTOCOL_MIN, SCHEMA, Hello, Purpose, decode, encode

NONCE_BYTES = 32
_KEY_BYTES = 32


def make_hello(
    peer: Peer, purpose: Purpose, *, is_keyed: bool, nonce: bytes, standing_ms: int = 0, uptime_ms: int = 0
) -> Hello:
    assert len(nonce) == NONCE_BYTES, "nonces are 32 random bytes"
    return Hello(PROTOCOL_MIN, PROTOCOL_MAX, purpose, is_keyed, nonce, standing_ms, uptime_ms, peer, SCHEMA)


class Handshake:
    """One side of one connection.

    theirs: the hello of the other side; do not trust it before ``is_proven``.
    keys: the keys for (sending, receiving) once ``is_proven``, None without a secret.
    """

    def __init__(self, ours: Hello, secret: bytes, *, is_dialler: bool, also: bytes = b"") -> None:
        """Start with a hello. also: a second secret, which a dialler uses if the acceptor proves that one."""
        self.ours = ours
        self.theirs: Hello | None = None
        self.is_proven = False
        self.keys: tuple[bytes, bytes] | None = None
        self._hello_bytes = encode(ours)
        self._secrets = (secret, also) if is_dialler and secret and also else (secret,)
        self._is_dialler = is_dialler
        self._root = b""
        self._roots: list[bytes] = []

    def start(self) -> list[tuple[int, bytes]]:
        """Return the frames to send before any frame was received, as (kind, body)."""
        return [(HELLO, self._hello_bytes)] if self._is_dialler else []

    def step(self, kind: int, body: bytes) -> list[tuple[int, bytes]]:
        """Handle a received frame and return the frames to send, as (kind, body).

        Raise FrameError for an unexpected frame, and HandshakeError if the other side may not connect.
        """
        if kind == HELLO and self.theirs is None:
            return self._take_hello(body)
        if kind == PROOF and self.theirs is not None and not self.is_proven:
            return self._take_proof(body)
        raise UnexpectedKind(f"a frame of kind {kind} is not the next one of the handshake")

    def _take_hello(self, body: bytes) -> list[tuple[int, bytes]]:
        hello = decode(body, Hello)
        self._check(hello)
        self.theirs = hello
        dialled, accepted = (self._hello_bytes, body) if self._is_dialler else (body, self._hello_bytes)
        self._roots = [_root_key(secret, dialled, accepted) for secret in self._secrets]
        self._root = self._roots[0]
        if self._is_dialler:
            return []
        return [(HELLO, self._hello_bytes), (PROOF, self._draw("proof", by_dialler=False))]

    def _check(self, hello: Hello) -> None:
        ours = self.ours
        if hello.protocol_min > ours.protocol_max or hello.protocol_max < ours.protocol_min:
            raise OtherProtocol(
                f"{hello.peer.name} speaks protocols {hello.protocol_min} to {hello.protocol_max}, "
                f"{ours.peer.name} {ours.protocol_min} to {ours.protocol_max}: upgrade the older one"
            )
        if hello.protocol_max == ours.protocol_max and hello.schema != ours.schema:
            raise OtherProtocol(
                f"{hello.peer.name} and {ours.peer.name} are different builds of protocol {ours.protocol_max} "
                "that do not understand each other: run the same build on all members"
            )
        if hello.peer.cluster_name != ours.peer.cluster_name:
            raise OtherClusterName(
                f"it belongs to cluster {hello.peer.cluster_name!r}, this member to {ours.peer.cluster_name!r}: "
                "remove its address from the seeds, or give both the same cluster name"
            )
        if hello.is_keyed != ours.is_keyed:
            raise WrongSecret("only one side has a cluster secret: give all members the same --cluster-secret-file")
        if len(hello.nonce) != NONCE_BYTES or hello.nonce == ours.nonce:
            raise WrongSecret("its nonce is not 32 new bytes")
        if self._is_dialler and (hello.peer.id, hello.peer.incarnation) == (ours.peer.id, ours.peer.incarnation):
            raise SelfMet("this is the member itself")

    def _take_proof(self, body: bytes) -> list[tuple[int, bytes]]:
        for root in self._roots:
            if compare_digest(body, _draw(root, "proof", by_dialler=not self._is_dialler)):
                self._root = root
                break
        else:
            raise WrongSecret("it has another cluster secret: give all members the same --cluster-secret-file")
        self.is_proven = True
        if self._secrets[0]:
            self.keys = (
                self._draw("frames", by_dialler=self._is_dialler),
                self._draw("frames", by_dialler=not self._is_dialler),
            )
        return [(PROOF, self._draw("proof", by_dialler=True))] if self._is_dialler else []

    def _draw(self, use: str, *, by_dialler: bool) -> bytes:
        return _draw(self._root, use, by_dialler=by_dialler)


def _draw(root: bytes, use: str, *, by_dialler: bool) -> bytes:
    label = f"{use} by {'dialler' if by_dialler else 'acceptor'}"
    return blake2b(label.encode(), key=root, digest_size=_KEY_BYTES).digest()


def _root_key(secret: bytes, dialled: bytes, accepted: bytes) -> bytes:
    key = blake2b(secret, digest_size=_KEY_BYTES, person=b"elasticq secret").digest()
    transcript = blake2b(key=key, digest_size=_KEY_BYTES, person=b"elasticq hello 1")
    transcript.update(len(dialled).to_bytes(8, "big"))
    transcript.update(dialled)
    transcript.update(accepted)
    return transcript.digest()


def check_cluster(ours: Peer, theirs: Peer) -> None:
    """Raise TwoClusters if the two sides belong to different clusters. Call it only for proven peers."""
    if ours.cluster and theirs.cluster and ours.cluster != theirs.cluster:
        raise TwoClusters(
            f"member {theirs.name} ({theirs.address}) belongs to cluster {theirs.cluster}, this member to "
            f"{ours.cluster}, both named {ours.cluster_name!r}: their members cannot link. Rename one of the clusters, "
            "or empty the data directories of the members that shall join the other one"
        )
