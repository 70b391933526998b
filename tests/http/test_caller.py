"""Who calls, by the Authorization header, and which attempts are of one call."""

from hashlib import blake2b

import pytest

from elasticq.http.caller import KEYS_MAX, Callers, invocation

SIGNED = b"AWS4-HMAC-SHA256 Credential=%b/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0"


@pytest.mark.parametrize(
    ("key", "caller"),
    [
        (b"111122223333", ("111122223333", "111122223333")),
        (b"AKIAEXAMPLE", ("AKIAEXAMPLE", "000000000000")),
        (b"", ("anonymous", "000000000000")),
        (b"no key", ("anonymous", "000000000000")),
        (b"A" * 200, ("anonymous", "000000000000")),
        (b"\xc3\xa4", ("anonymous", "000000000000")),
    ],
)
def test_a_key_of_twelve_digits_is_an_account(key: bytes, caller: tuple[str, str]) -> None:
    callers = Callers("000000000000")
    assert callers.identify(SIGNED % key) == caller
    assert callers.identify(SIGNED % key) == caller, "known now"


def test_what_is_remembered_is_bounded() -> None:
    callers = Callers("000000000000")
    for number in range(3 * KEYS_MAX):
        assert callers.identify(SIGNED % b"KEY%d" % number)[0] == f"KEY{number}"
    assert len(callers._known) <= KEYS_MAX


def test_an_invocation_is_of_its_caller_action_id_and_body() -> None:
    mark = invocation("a", "SendMessage", b"id", b"body")
    others = [
        invocation("b", "SendMessage", b"id", b"body"),
        invocation("a", "DeleteMessage", b"id", b"body"),
        invocation("a", "SendMessage", b"id2", b"body"),
        invocation("a", "SendMessage", b"id", b"2body"),
    ]
    assert mark == invocation("a", "SendMessage", b"id", b"body")
    assert len({mark, *others}) == 5
    assert mark == blake2b(b"a\0SendMessage\0id\0body", digest_size=16).digest()  # it is stored: it must stay


@pytest.mark.parametrize("invocation_id", [b"", b"x" * 257])
def test_without_a_usable_id_there_is_no_mark(invocation_id: bytes) -> None:
    assert invocation("a", "SendMessage", invocation_id, b"body") == b""
