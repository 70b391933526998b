"""The settings of the peer port, checked by their constructor."""

from typing import Literal

from msgspec import Struct

from elasticq.peers.addresses import is_dialable, is_loopback, split

Discovery = Literal["zeroconf", "seeds", "none"]


class PeerSettingsError(ValueError):
    """The settings contradict each other or are unsafe; the text says what to do."""


class PeerSettings(Struct, frozen=True, kw_only=True):
    """Settings of the peer port.

    listens: false for a proxy, which dials others and which nobody dials;
    host, port: where to listen, port 0: from the kernel; advertise: host:port at which others reach this
    member, empty: the listening address, or the one of each connection when it listens on all;
    seeds: host:port of some members, itself allowed; secret: the same on all members, empty: none;
    also: a second secret, of a member that has the next or the last one already or still, empty: none;
    tls_cert, tls_key, tls_ca: PEM files, all three or none; rate_bytes_per_s: of all snapshots that
    this member serves together, 0: unlimited; send_buffer_bytes: a link that has more unsent is dropped;
    connections_max: of this port, with those in a TLS handshake; at most half of them have proved nothing yet.
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
            raise PeerSettingsError("mutual TLS needs all of certificate, key and CA")
        if self.listens and not (is_loopback(self.host) or self.secret or files):
            raise PeerSettingsError(
                f"the peer port would listen on {self.host or 'all addresses'}, beyond this machine, unprotected: "
                "give a cluster secret (--cluster-secret-file) or TLS files, or listen on 127.0.0.1"
            )
        if self.rate_bytes_per_s < 0 or self.send_buffer_bytes < 1:
            raise PeerSettingsError("rate_bytes_per_s must be at least 0, send_buffer_bytes at least 1")

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
