"""Who calls, by the Authorization header, and which attempts are of one call."""

from hashlib import blake2b

import pytest

from elasticq.http.admission.caller import CREDENTIALS_MAX, REGIONS_LOGGED_MAX, Callers, invocation

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
    for number in range(3 * CREDENTIALS_MAX):
        assert callers.identify(SIGNED % b"KEY%d" % number)[0] == f"KEY{number}"
    assert len(callers._known) <= CREDENTIALS_MAX


SCOPED = b"AWS4-HMAC-SHA256 Credential=AKIA/20260101/%b/sqs/aws4_request, SignedHeaders=host, Signature=0"


@pytest.mark.parametrize(
    ("region", "owner"),
    [
        (b"us-east-1", "000000000000"),
        (b"eu-west-1", "000000000000/eu-west-1"),
        (b"elasticmq", "000000000000/elasticmq"),
        (b"", "000000000000"),
        (b"EU", "000000000000"),
        (b"a_b", "000000000000"),
        (b"\xc3\xa4", "000000000000"),
        (b"x" * 33, "000000000000"),
    ],
)
def test_the_scope_names_the_region_and_what_is_no_region_means_the_nodes_own(region: bytes, owner: str) -> None:
    callers = Callers("000000000000", "us-east-1")
    for _ in range(2):  # the second is known
        assert callers.identify(SCOPED % region) == ("AKIA", owner)
    assert Callers("000000000000").identify(SCOPED % region) == ("AKIA", "000000000000"), "regions are not told apart"


def test_the_same_key_signs_for_two_regions() -> None:
    callers = Callers("000000000000", "us-east-1")
    owners = [callers.identify(SCOPED % region)[1] for region in (b"eu-west-1", b"us-east-1", b"eu-west-1")]
    assert owners == ["000000000000/eu-west-1", "000000000000", "000000000000/eu-west-1"]


@pytest.mark.parametrize("key", [b"dev-key", b"DEV_KEY", b"", b"\xc3\xa4"])
def test_a_key_that_names_nobody_signs_for_a_region_all_the_same(key: bytes) -> None:
    callers = Callers("000000000000", "us-east-1")
    header = (SCOPED % b"eu-west-1").replace(b"AKIA", key)
    for _ in range(2):
        assert callers.identify(header) == ("anonymous", "000000000000/eu-west-1")


def test_another_region_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "elasticq.http.admission.caller")
    callers = Callers("000000000000", "us-east-1")
    for region in (b"us-east-1", b"eu-west-1", b"us-west-2", b"eu-west-1", b"no_region"):
        for key in (b"AKIA", b"AKIB"):
            callers.identify((SCOPED % region).replace(b"AKIA", key))
    assert [record.__dict__["fields"]["region"] for record in caplog.records] == ["eu-west-1", "us-west-2"]
    for number in range(3 * REGIONS_LOGGED_MAX):
        callers.identify(SCOPED % b"r%d" % number)
    assert len(caplog.records) == REGIONS_LOGGED_MAX


def test_parameters_of_a_signature_may_stand_in_any_order() -> None:
    callers = Callers("000000000000", "us-east-1")
    for key in (b"111122223333", b"444455556666"):
        header = b"AWS4-HMAC-SHA256 SignedHeaders=host, Credential=%b/20260101/eu-west-1/sqs/aws4_request, Signature=0"
        assert callers.identify(header % key)[1] == f"{key.decode()}/eu-west-1"


def test_a_credential_without_a_scope_is_a_key() -> None:
    callers = Callers("000000000000", "us-east-1")
    assert callers.identify(b"AWS4-HMAC-SHA256 Credential=111122223333") == ("111122223333", "111122223333")


def test_a_url_may_be_signed_instead() -> None:
    callers = Callers("000000000000", "us-east-1")
    line = b"GET /?Action=ListQueues&X-Amz-Credential=111122223333%2F20260101%2Feu-west-1%2Fsqs%2Faws4_request HTTP/1.1"
    assert callers.identify_request([line], b"") == ("111122223333", "111122223333/eu-west-1")
    assert callers.identify_request([line], SCOPED % b"us-west-2") == ("AKIA", "000000000000/us-west-2")
    assert callers.identify_request([b"GET /?Action=ListQueues HTTP/1.1"], b"") == ("anonymous", "000000000000")


OWN = "000000000000"


def test_an_invocation_is_of_its_caller_region_action_path_id_and_body() -> None:
    mark = invocation("a", OWN, "SendMessage", b"id", b"body")
    others = [
        invocation("b", OWN, "SendMessage", b"id", b"body"),
        invocation("a", f"{OWN}/eu-west-1", "SendMessage", b"id", b"body"),
        invocation("a", OWN, "DeleteMessage", b"id", b"body"),
        invocation("a", OWN, "SendMessage", b"id2", b"body"),
        invocation("a", OWN, "SendMessage", b"id", b"2body"),
        invocation("a", OWN, "SendMessage", b"id", b"body", f"/{OWN}/one"),
        invocation("a", OWN, "SendMessage", b"id", b"body", f"/{OWN}/other"),
    ]
    assert mark == invocation("a", OWN, "SendMessage", b"id", b"body", "/")
    assert len({mark, *others}) == 8
    assert mark == blake2b(b"a\0SendMessage\0id\0body", digest_size=16).digest()  # it is stored: it must stay


def test_an_id_of_any_length_counts_and_none_gives_no_mark() -> None:
    long = [b"x" * 15_000, b"x" * 15_000 + b"y"]
    assert len({invocation("a", OWN, "SendMessage", one, b"body") for one in long}) == 2
    assert invocation("a", OWN, "SendMessage", b"", b"body") == b""
