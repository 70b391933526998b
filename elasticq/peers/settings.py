"""The settings of the peer port. Their constructor validates them."""

import ssl
from typing import Literal

from msgspec import Struct

from elasticq.peers.addresses import is_dialable, is_loopback, split

Discovery = Literal["zeroconf", "seeds", "none"]


class PeerSettingsError(ValueError):
    """Invalid, contradictory or unsafe settings. The text describes what to do."""


class PeerSettings(Struct, frozen=True, kw_only=True):
    """The settings of the peer port. The constructor raises PeerSettingsError if they are invalid.

    - listens: False for a proxy, which dials members but is never dialled.
    - host, port: the listening address. The kernel chooses port 0.
    - advertise: host:port at which others reach this member. If empty, it is the listening address. A member that
      listens on all addresses then reports the local address of each connection.
    - seeds: host:port of some members. This member's own address is allowed.
    - secret: the cluster secret, the same on all members, empty for none.
    - also: a second secret that this member knows while the cluster changes its secret, empty for none.
    - tls_cert, tls_key, tls_ca: PEM files, all three or none.
    - rate_bytes_per_s: bound for all snapshots together that this member sends, 0 for unlimited.
    - send_buffer_bytes: a link with more unsent bytes is closed.
    - connections_max: bound of this port, TLS handshakes included. At most half may be unauthenticated.
    """

    listens: bool = True
    host: str = "127.0.0.1"
    port: int = 9326
    advertise: str = ""
    seeds: tuple[str, ...] = ()
    discovery: Discovery = "none"
    cluster_name: str = "elasticq"
    secret: bytes = b""
    also: bytes = b""
    tls_cert: str = ""
    tls_key: str = ""
    tls_ca: str = ""
    rate_bytes_per_s: int = 50_000_000
    send_buffer_bytes: int = 64 * 1_048_576
    connections_max: int = 768

    def __post_init__(self) -> None:
        self._check_addresses()
        files = [path for path in (self.tls_cert, self.tls_key, self.tls_ca) if path]
        if files and len(files) < 3:
            raise PeerSettingsError("mutual TLS needs a certificate, a key and a CA")
        if self.listens and not (is_loopback(self.host) or self.secret or files):
            raise PeerSettingsError(
                f"the peer port would be reachable from other machines without protection, on "
                f"{self.host or 'all addresses'}: set a cluster secret (--cluster-secret-file) or TLS files, "
                "or listen on 127.0.0.1"
            )
        if self.rate_bytes_per_s < 0 or self.send_buffer_bytes < 1:
            raise PeerSettingsError("rate_bytes_per_s must be at least 0, and send_buffer_bytes at least 1")

    def _check_addresses(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise PeerSettingsError(f"peer port {self.port} is not from 0 to 65535")
        for seed in self.seeds:
            if not is_dialable(seed):
                raise PeerSettingsError(f"seed {seed!r} is not host:port")
        if self.advertise:
            try:
                split(self.advertise)
            except ValueError as error:
                raise PeerSettingsError(f"advertise: {error}") from error

    @property
    def has_tls(self) -> bool:
        return bool(self.tls_cert)


def server_context(settings: PeerSettings) -> ssl.SSLContext | None:
    return _context(settings, ssl.PROTOCOL_TLS_SERVER)


def client_context(settings: PeerSettings) -> ssl.SSLContext | None:
    return _context(settings, ssl.PROTOCOL_TLS_CLIENT)


def _context(settings: PeerSettings, side: int) -> ssl.SSLContext | None:
    """Return a TLS context, None without TLS. Raise PeerSettingsError if the files cannot be used."""
    if not settings.has_tls:
        return None
    context = ssl.SSLContext(side)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
        context.load_verify_locations(settings.tls_ca)
    except OSError as error:
        raise PeerSettingsError(
            f"TLS files {settings.tls_cert}, {settings.tls_key}, {settings.tls_ca}: {error}"
        ) from error
    return context
