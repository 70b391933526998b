"""Peer settings that are unsafe or contradict each other are refused when they are made."""

from typing import Any

import pytest

from elasticq.peers.settings import PeerSettings, PeerSettingsError


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "localhost", "::1"])
def test_loopback_needs_no_protection(host: str) -> None:
    assert PeerSettings(host=host).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "queue.example"])
def test_a_bind_beyond_loopback_needs_a_secret_or_tls(host: str) -> None:
    with pytest.raises(PeerSettingsError, match="--cluster-secret-file"):
        PeerSettings(host=host)
    PeerSettings(host=host, secret=b"open sesame")
    PeerSettings(host=host, tls_cert="c", tls_key="k", tls_ca="a")


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": 65_536},
        {"seeds": ("host",)},
        {"seeds": ("host:0",)},
        {"seeds": ("host:x",)},
        {"advertise": "host"},
        {"tls_cert": "only.pem"},
        {"rate_bytes_per_s": -1},
        {"send_buffer_bytes": 0},
    ],
    ids=str,
)
def test_contradictions_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(PeerSettingsError):
        PeerSettings(**wrong)
