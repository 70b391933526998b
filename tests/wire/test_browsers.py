"""Browsers: which pages may ask, and under which name."""

from pathlib import Path

import pytest

from elasticq.wire.browsers import LOCAL_ENDS, Browsers

BROWSERS = Browsers(hosts=["queues.example.com", "0.0.0.0", ""], origins=["https://app.example.com/"])
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"


def refusal(*, is_unsigned: bool = True, **headers: str) -> str:
    given = {name.replace("_", "-").lower(): value for name, value in headers.items()}
    return BROWSERS.refusal(lambda name: given.get(name.lower()), is_unsigned=is_unsigned)


@pytest.mark.parametrize(
    "headers",
    [
        {},  # a client of HTTP/1.0
        {"User_Agent": "curl/8"},
        {"Host": "localhost:9324", "Origin": "http://localhost:9324", "Sec_Fetch_Site": "same-origin"},
        {"Host": "127.0.0.1:9324", "Origin": "http://127.0.0.1:9324"},
        {"Host": "[::1]:9324", "Origin": "http://[::1]:9324"},
        {"Host": "10.1.2.3:9324", "Sec_Fetch_Site": "none"},
        {"Host": "sqs.localhost", "Sec_Fetch_Mode": "navigate"},
        {"Host": "QUEUES.example.com.", "Sec_Fetch_Site": "none"},
        {"Host": "localhost:9324", "Origin": "https://app.example.com", "Sec_Fetch_Site": "cross-site"},
        {"Host": "localhost:9324", "User_Agent": CHROME},
    ],
)
def test_clients_and_allowed_pages_pass(headers: dict[str, str]) -> None:
    assert refusal(**headers) == ""


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "localhost:9324", "Origin": "https://evil.example"},
        {"Host": "localhost:9324", "Origin": "null"},
        {"Host": "localhost:9324", "Origin": ""},
        {"Host": "localhost:9324", "Origin": "http://localhost:3000"},
        {"Host": "localhost:9324", "Origin": "https://app.example.com.evil.example"},
        {"Host": "localhost:9324", "Origin": "http://app.example.com"},
        {"Host": "localhost:9324", "Sec_Fetch_Site": "cross-site"},
        {"Host": "evil.example"},
        {"Host": "evil.example:9324", "User_Agent": "x"},
        {"Host": "evil.example:9324", "Origin": "http://evil.example:9324", "Sec_Fetch_Site": "same-origin"},
        {"Host": "evil.example:9324", "Sec_Fetch_Mode": "cors"},
        {"Host": "evil.example:9324", "User_Agent": CHROME},
        {"Host": "localhost.evil.example", "User_Agent": CHROME},
        {"Host": "127.0.0.1.evil.example", "User_Agent": CHROME},
        {"Host": "", "Origin": "http://"},
        {"Origin": "http://"},
        {"Host": "[::1", "Origin": "http://[::1"},
    ],
)
def test_other_pages_and_rebound_names_are_refused(headers: dict[str, str]) -> None:
    assert "allowed_" in refusal(**headers)


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Host": "evil.example:9324", "User_Agent": "curl/8"}])
def test_a_signed_request_without_a_mark_may_name_any_host(headers: dict[str, str]) -> None:
    assert refusal(is_unsigned=False, **headers) == ""
    assert refusal(is_unsigned=False, Sec_Fetch_Mode="cors", **headers) != ""


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST.:9324",
        "127.0.0.1:9324",
        "[::1]:9324",
        "[fe80::1]",
        "192.168.1.7",
        "elasticq:9324",
        "my_service-1",
        "sqs.localhost",
        "nas.local",
        "host.docker.internal:9324",
        "elasticq.queues.svc:9324",
        "elasticq-0.elasticq-peers.queues.svc.cluster.local:9324",
        "localhost.localstack.cloud:4566",
        "sqs.us-east-1.localhost.localstack.cloud:4566",
        "Queues.Example.com:443",
        "sqs.us-east-1.amazonaws.com",
        "sns.us-gov-west-1.amazonaws.com",
        "queue.amazonaws.com",
        "us-west-2.queue.amazonaws.com",
        "sqs.cn-north-1.amazonaws.com.cn",
        *(f"x{end}" for end in LOCAL_ENDS),
        *(f"a.x{end.upper()}:9324" for end in LOCAL_ENDS),
    ],
)
def test_names_that_no_stranger_answers_for_are_allowed(host: str) -> None:
    assert BROWSERS.is_allowed_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        ".",
        "evil.example",
        "localhost.evil.example",
        "evil.example.",
        "evil.local.example",
        "127.0.0.1.evil.example",
        "evil%2Eexample",
        "evil@localhost",
        "localhost:9324:9324",
        "localhost:",
        "[::1",
        "::1",
        "localstack.cloud",
        "evil.localstack.cloud",
        "notlocalhost.localstack.cloud.evil.example",
        "elasticq.queues",  # a namespace may be called like a domain
        "svc.example",
        "elasticmq.myns",
        "amazonaws.com",
        "sqs.amazonaws.com.evil.example",
        "sqs-1.us-east-1.elb.amazonaws.com",  # a load balancer, which any customer of Amazon can have
        "ec2-192-0-2-1.compute-1.amazonaws.com",
        "sqs.example.amazonaws.com",
        "notfritz.box",
        *(f"x{end}.evil.example" for end in LOCAL_ENDS),
        *(f"x{end[1:]}.example" for end in LOCAL_ENDS),
    ],
)
def test_other_names_are_not(host: str) -> None:
    assert not BROWSERS.is_allowed_host(host)


def test_security_page_says_why_each_end_is_safe() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "security.md").read_text()
    for end, reason in LOCAL_ENDS.items():
        assert f"| `{end}` | {reason} |" in page


def test_the_refusal_names_host_and_settings_and_is_short() -> None:
    text = refusal(Host="a\udc80b." + "x" * 10_000)
    assert "auth.allowed_hosts" in text
    assert "http.public_url" in text
    assert "'a?b.xxx" in text
    assert len(text) < 500


@pytest.mark.parametrize(
    ("headers", "is_browser"),
    [
        ({}, False),
        ({"User-Agent": "curl/8.5.0"}, False),
        ({"User-Agent": "python-requests/2.32 Mozilla/"}, False),
        ({"User-Agent": CHROME}, True),
        ({"Referer": "http://localhost:3000/"}, True),
        ({"Origin": "http://localhost:9324"}, True),
        ({"Sec-Fetch-Dest": "image"}, True),
    ],
)
def test_a_get_that_changes_something_is_refused_to_browsers(headers: dict[str, str], is_browser: bool) -> None:
    given = {name.lower(): value for name, value in headers.items()}

    def header(name: str) -> str | None:
        return given.get(name.lower())

    assert ("SendMessage by GET must be signed" in BROWSERS.get_refusal(header, "SendMessage")) == is_browser
    assert Browsers(are_gets_strict=True).get_refusal(header, "SendMessage")
