"""What is kept between checks; what is a good signature is tested with the oracle in tests/http/test_door.py."""

import pytest

from elasticq.model.errors import InvalidClientTokenId, SignatureDoesNotMatch
from elasticq.model.times import basic, basic_s
from elasticq.wire import sigv4
from elasticq.wire.sigv4 import PREPARED_MAX, Key, Verifier
from tests.http.signing import JSON_HEADERS, KEY, NOW_S, signed, target


def taken_apart(request: bytes) -> tuple[list[bytes], bytes, bytes]:
    """Lines, Authorization and body."""
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    authorization = next(line for line in lines if line.startswith(b"Authorization: "))
    return lines, authorization.partition(b": ")[2], body


def test_nothing_is_kept_of_a_request_that_was_refused() -> None:
    verifier = Verifier([KEY])
    for secret, error in (("guessed", SignatureDoesNotMatch), ("x", SignatureDoesNotMatch)):
        with pytest.raises(error):
            verifier.check(*taken_apart(signed(key=Key(KEY.access_key_id, secret, ""))), NOW_S)
    with pytest.raises(InvalidClientTokenId):
        verifier.check(*taken_apart(signed(key=Key("AKIDNOBODY", "x", ""))), NOW_S)
    assert not verifier._signers


def test_what_is_kept_is_bounded() -> None:
    verifier = Verifier([KEY])
    for second in range(PREPARED_MAX * 2):
        verifier.check(*taken_apart(signed(at_s=NOW_S + second)), NOW_S + second)
    (signer,) = verifier._signers.values()
    assert 0 < len(signer.prepared) <= PREPARED_MAX
    for number in range(sigv4.SIGNERS_MAX + 10):
        verifier.check(*taken_apart(signed(region=f"region-{number}")), NOW_S)
    assert 0 < len(verifier._signers) <= sigv4.SIGNERS_MAX


def test_headers_in_another_order_are_read_anew() -> None:
    verifier = Verifier([KEY])
    lines, authorization, body = taken_apart(signed(b"{}", JSON_HEADERS | {"X-Amz-Meta-A": "1"}))
    for _ in range(3):
        assert verifier.check(lines, authorization, body, NOW_S) == KEY
        lines[1:] = lines[-1:] + lines[1:-1]


def test_a_signed_header_that_stands_twice_is_both() -> None:
    verifier = Verifier([KEY])
    lines, authorization, body = taken_apart(signed(b"{}", JSON_HEADERS | {"X-Amz-Meta-A": "1,2"}))
    lines.remove(b"X-Amz-Meta-A: 1,2")
    assert verifier.check([*lines, b"X-Amz-Meta-A: 1", b"x-amz-meta-a:  2 "], authorization, body, NOW_S) == KEY
    with pytest.raises(SignatureDoesNotMatch):
        verifier.check([*lines, b"X-Amz-Meta-A: 2", b"x-amz-meta-a: 1"], authorization, body, NOW_S)


def test_the_signing_key_is_that_of_the_day() -> None:
    verifier = Verifier([KEY])
    midnight_s = basic_s(basic(NOW_S)[:8] + "T000000Z") or 0
    for at_s in (midnight_s - 1, midnight_s, midnight_s + 1):
        assert verifier.check(*taken_apart(signed(b"{}", target("SendMessage"), at_s=at_s)), midnight_s) == KEY
