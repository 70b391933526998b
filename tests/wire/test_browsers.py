"""Browsers: which pages may ask, and under which name."""

import pytest

from elasticq.wire.browsers import Browsers

BROWSERS = Browsers(hosts=["queues.example.com", "0.0.0.0", ""], origins=["https://app.example.com/"])
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"


def refusal(**headers: str) -> str:
    given = {name.replace("_", "-").lower(): value for name, value in headers.items()}
    return BROWSERS.refusal(lambda name: given.get(name.lower()))


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example", "User_Agent": "curl/8"},
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
