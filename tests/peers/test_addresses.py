"""host:port, read and written; IPv6 hosts stand in brackets."""

import pytest

from elasticq.peers.addresses import is_dialable, is_loopback, join, split


@pytest.mark.parametrize("host", ["localhost", "10.0.0.1", "::1", "fe80::1%eth0", ""])
def test_what_was_joined_is_split_again(host: str) -> None:
    assert split(join(host, 9326)) == (host, 9326)


@pytest.mark.parametrize("address", ["", "host", "host:", "host:x", "host:65536", "host:-1", "host:²", ":"])
def test_without_a_port_it_is_no_address(address: str) -> None:
    with pytest.raises(ValueError, match="is not host:port"):
        split(address)
    assert not is_dialable(address)


@pytest.mark.parametrize("address", ["a:0", "0.0.0.0:1", "[::]:1", ":1", "a" * 300 + ":1"])
def test_a_wildcard_is_nowhere_to_dial(address: str) -> None:
    assert not is_dialable(address)
    assert is_dialable("a:1")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("a.localhost.b", False),
        ("", False),
    ],
)
def test_loopback_is_this_machine(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
