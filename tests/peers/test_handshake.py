"""Both sides prove that they know the secret and read the same hellos; all else is refused."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.peers.errors import (
    BadMessage,
    FrameError,
    HandshakeError,
    OtherClusterName,
    OtherProtocol,
    SelfMet,
    TwoClusters,
    UnexpectedKind,
    WrongSecret,
)
from elasticq.peers.frames import HELLO, PROOF
from elasticq.peers.handshake import Handshake, check_cluster, make_hello
from elasticq.peers.messages import PROTOCOL_MAX, Hello, encode
from tests.peers.community import make_peer

SECRET = b"open sesame"


def make_side(
    name: str, *, is_dialler: bool, secret: bytes = SECRET, also: bytes = b"", nonce: bytes = b"", **changes: str
) -> Handshake:
    nonce = nonce or name[0].encode() * 32
    hello = make_hello(make_peer(name, **changes), "link", is_keyed=bool(secret), nonce=nonce)
    return Handshake(hello, secret, is_dialler=is_dialler, also=also)


def shake(dialler: Handshake, acceptor: Handshake) -> None:
    """Carry frames to and fro until nobody has any."""
    sides = [acceptor, dialler]
    frames = dialler.start()
    while frames:
        side = sides[0]
        sides.reverse()
        frames = [answer for frame in frames for answer in side.step(*frame)]


@pytest.mark.parametrize("secret", [b"", SECRET])
def test_two_members_prove_each_other(secret: bytes) -> None:
    dialler = make_side("a", is_dialler=True, secret=secret)
    acceptor = make_side("b", is_dialler=False, secret=secret)
    shake(dialler, acceptor)
    assert dialler.is_proven
    assert acceptor.is_proven
    assert dialler.theirs == acceptor.ours
    assert acceptor.theirs == dialler.ours


def test_each_direction_and_each_connection_has_its_own_key() -> None:
    keys = set()
    for nonce in (b"1" * 32, b"2" * 32):
        dialler = make_side("a", is_dialler=True, nonce=nonce)
        acceptor = make_side("b", is_dialler=False)
        shake(dialler, acceptor)
        assert dialler.keys is not None
        assert acceptor.keys == dialler.keys[::-1]
        keys |= set(dialler.keys)
    assert len(keys) == 4


OLD, NEW = b"open sesame", b"open barley"


@pytest.mark.parametrize("dialler", [(OLD, NEW), (NEW, OLD)])
@pytest.mark.parametrize("acceptor", [(OLD, b""), (OLD, NEW), (NEW, OLD), (NEW, b"")])
def test_who_knows_two_secrets_goes_on_with_the_one_that_is_proven(
    dialler: tuple[bytes, bytes], acceptor: tuple[bytes, bytes]
) -> None:
    one = make_side("a", is_dialler=True, secret=dialler[0], also=dialler[1])
    other = make_side("b", is_dialler=False, secret=acceptor[0], also=acceptor[1])
    shake(one, other)
    assert one.keys is not None
    assert other.keys == one.keys[::-1]
    assert one.is_proven
    assert other.is_proven


def test_each_step_of_a_change_of_secrets_links_with_the_step_before() -> None:
    steps = [(OLD, b""), (OLD, NEW), (NEW, OLD), (NEW, b"")]
    for before, after in pairwise(steps):
        for dialler, acceptor in ((before, after), (after, before)):
            one = make_side("a", is_dialler=True, secret=dialler[0], also=dialler[1])
            other = make_side("b", is_dialler=False, secret=acceptor[0], also=acceptor[1])
            shake(one, other)
            assert one.is_proven
            assert other.is_proven


def test_third_secret_is_none_of_two() -> None:
    one = make_side("a", is_dialler=True, secret=OLD, also=NEW)
    with pytest.raises(WrongSecret):
        shake(one, make_side("b", is_dialler=False, secret=b"else", also=OLD))


def test_a_wrong_secret_is_found_by_the_dialler() -> None:
    with pytest.raises(WrongSecret):
        shake(make_side("a", is_dialler=True), make_side("b", is_dialler=False, secret=b"else"))


def test_a_wrong_secret_is_found_by_the_acceptor() -> None:
    dialler = make_side("a", is_dialler=True, secret=b"else")
    acceptor = make_side("b", is_dialler=False)
    acceptor.step(*dialler.start()[0])
    with pytest.raises(WrongSecret):
        acceptor.step(PROOF, b"p" * 32)
    assert not acceptor.is_proven


def test_a_secret_on_one_side_only_is_refused() -> None:
    with pytest.raises(WrongSecret, match="only one side"):
        shake(make_side("a", is_dialler=True, secret=b""), make_side("b", is_dialler=False))


def test_a_replayed_dialler_proves_nothing() -> None:
    dialler, acceptor = make_side("a", is_dialler=True), make_side("b", is_dialler=False)
    hello = dialler.start()[0]
    answers = acceptor.step(*hello)
    proof = next(frame for answer in answers for frame in dialler.step(*answer))
    later = make_side("b", is_dialler=False, nonce=b"n" * 32)
    later.step(*hello)
    with pytest.raises(WrongSecret):
        later.step(*proof)


def test_a_reflected_proof_proves_nothing() -> None:
    acceptor = make_side("b", is_dialler=False)
    answers = acceptor.step(*make_side("a", is_dialler=True).start()[0])
    with pytest.raises(WrongSecret):
        acceptor.step(*answers[1])


def test_a_changed_hello_breaks_the_proof() -> None:
    dialler, acceptor = make_side("a", is_dialler=True), make_side("b", is_dialler=False)
    hello, proof = acceptor.step(*dialler.start()[0])
    changed = msgspec.structs.replace(acceptor.ours, peer=make_peer("b", address="elsewhere:1"))
    assert encode(changed) != hello[1]
    dialler.step(HELLO, encode(changed))
    with pytest.raises(WrongSecret):
        dialler.step(*proof)


def test_another_cluster_name_is_refused_with_what_to_do() -> None:
    with pytest.raises(OtherClusterName, match="seeds"):
        shake(make_side("a", is_dialler=True), make_side("b", is_dialler=False, cluster_name="other"))


def test_a_member_recognizes_itself() -> None:
    with pytest.raises(SelfMet):
        shake(make_side("a", is_dialler=True), make_side("a", is_dialler=False, nonce=b"n" * 32))


def test_protocol_ranges_must_overlap() -> None:
    acceptor = make_side("b", is_dialler=False)
    hello = Hello(2, 9, "link", True, b"n" * 32, 0, 0, make_peer("a"))
    with pytest.raises(OtherProtocol, match="2 to 9"):
        acceptor.step(HELLO, encode(hello))


@pytest.mark.parametrize("schema", ["", "0123456789abcdef"])
def test_builds_of_one_protocol_that_misunderstand_each_other_are_refused(schema: str) -> None:
    acceptor = make_side("b", is_dialler=False)
    hello = Hello(1, PROTOCOL_MAX, "link", True, b"n" * 32, 0, 0, make_peer("a"), schema)
    with pytest.raises(OtherProtocol, match="different builds"):
        acceptor.step(HELLO, encode(hello))


def test_a_proof_before_a_hello_is_out_of_turn() -> None:
    with pytest.raises(UnexpectedKind):
        make_side("b", is_dialler=False).step(PROOF, b"p" * 32)


def test_two_clusters_of_one_name_are_told_apart() -> None:
    with pytest.raises(TwoClusters, match="their members cannot link"):
        check_cluster(make_peer("a", cluster="one"), make_peer("b", cluster="two"))
    check_cluster(make_peer("a", cluster="one"), make_peer("b", cluster=""))


@given(st.binary(max_size=300))
def test_a_hello_of_noise_is_a_bad_message(noise: bytes) -> None:
    with pytest.raises(BadMessage):
        make_side("b", is_dialler=False).step(HELLO, noise)


@given(st.data())
def test_a_changed_hello_raises_nothing_but_peer_errors(data: st.DataObject) -> None:
    hello = bytearray(make_side("a", is_dialler=True).start()[0][1])
    hello[data.draw(st.integers(0, len(hello) - 1))] = data.draw(st.integers(0, 255))
    try:
        make_side("b", is_dialler=False).step(HELLO, bytes(hello))
    except (FrameError, HandshakeError):
        return
