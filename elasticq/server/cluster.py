"""The settings of the cluster: how it finds its members, and which settings contradict each other."""

import ipaddress
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from elasticq.peers.settings import PeerSettings, server_context
from elasticq.server.secret_files import check_mode

NODES_MAX: Final = 15
HOLD_S_MAX: Final = 50
"""SDKs wait 60 s for an answer. Three attempts of 60 s end within the 300 s for which invocation ids are kept."""
PROXY: Final = "proxy"
SECRET_BYTES_MAX: Final = 4_096
SECRET_BYTES_ADVISED: Final = 16
ALSO: Final = ".also"

MemberName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
        description="a name of 1 to 63 letters, digits, ., _ and -, which begins with a letter or a digit",
    ),
]
"""The name of a member or of a cluster."""


class Cluster(Struct, frozen=True, forbid_unknown_fields=True):
    """The role of this process in its cluster, how it finds other members, and when it acknowledges a send.

    ``with_discovery`` sets ``discovery`` if no source sets it. With "none" no port listens for peers.
    """

    role: Literal["member", "proxy"] = "member"
    nodes: Annotated[int, Meta(ge=1, le=NODES_MAX)] = 1
    name: MemberName = "elasticq"
    peer_host: Annotated[str, Meta(min_length=1, max_length=253)] = "127.0.0.1"
    peer_port: Annotated[int, Meta(ge=0, le=65_535)] = 9326
    advertise: str = ""
    seeds: Annotated[list[str], Meta(max_length=64)] = field(default_factory=list)
    discovery: Literal["zeroconf", "seeds", "none"] = "none"
    secret_file: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    tls_ca: str = ""
    ack_mode: Literal["async", "one", "majority", "all"] = "majority"
    hold_s: Annotated[int, Meta(ge=0, le=HOLD_S_MAX)] = 25
    transfer_mb_per_s: Annotated[int, Meta(ge=1, le=10_000)] = 50


def with_discovery(cluster: Cluster) -> Cluster:
    """Return the settings with a discovery: seeds if there are some, zeroconf for several nodes, else none."""
    if cluster.seeds:
        return replace(cluster, discovery="seeds")
    return replace(cluster, discovery="zeroconf") if cluster.nodes > 1 else cluster


def contradictions(cluster: Cluster) -> list[str]:
    """Return a text for each contradiction between settings, with a way out. It reads the files that they name."""
    found = [*_of_discovery(cluster), *_of_addresses(cluster), *_of_secrets(cluster)]
    if cluster.role == PROXY:
        return found + _of_proxies(cluster)
    if cluster.discovery != "none" and not found and not is_loopback(cluster.peer_host) and not _is_guarded(cluster):
        found.append(
            f"cluster.peer_host {cluster.peer_host} admits other machines: set cluster.secret_file "
            "(--cluster-secret-file) or the three cluster.tls_ settings, or listen on 127.0.0.1"
        )
    return found


def doubts(cluster: Cluster) -> list[str]:
    """Return a text for each setting that works but is likely a mistake."""
    found = []
    if cluster.nodes % 2 == 0:
        found.append(f"{cluster.nodes} nodes survive no more failures than {cluster.nodes - 1}: use an odd number")
    here = is_loopback(cluster.peer_host) and not cluster.advertise and cluster.role != PROXY
    if here and any(not is_loopback(host_of(seed)) for seed in cluster.seeds):
        found.append(f"the machines of cluster.seeds cannot reach cluster.peer_host {cluster.peer_host}")
    if cluster.secret_file and len(read_secret(cluster)) < SECRET_BYTES_ADVISED:
        found.append(f"cluster.secret_file holds less than {SECRET_BYTES_ADVISED} bytes: easy to guess")
    return found


def read_secret(cluster: Cluster) -> bytes:
    """Return the secret without its line end, empty without one. Raise ValueError if the file cannot be used."""
    return _read(Path(cluster.secret_file)) if cluster.secret_file else b""


def read_also(cluster: Cluster) -> bytes:
    """Return the second accepted secret: that of the file named like the secret's, with ``.also`` appended.

    It is empty if there is no such file. Raise ValueError if the file cannot be used.
    """
    path = Path(f"{cluster.secret_file}{ALSO}")
    return _read(path) if cluster.secret_file and path.exists() else b""


def _read(path: Path) -> bytes:
    try:
        check_mode("cluster.secret_file", path, path.stat())
        with path.open("rb") as file:
            secret = file.read(SECRET_BYTES_MAX + 1).strip()
    except OSError as error:
        raise ValueError(f"cluster.secret_file {path} cannot be read: {error.strerror or error}") from error
    if not secret:
        raise ValueError(f"cluster.secret_file {path} is empty: write the same secret on every member")
    if len(secret) > SECRET_BYTES_MAX:
        raise ValueError(f"cluster.secret_file {path} is longer than {SECRET_BYTES_MAX} bytes")
    return secret


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach ``host``. Names other than localhost are not resolved."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def host_of(address: str) -> str:
    """Return the host of host:port, an IPv6 address without its brackets."""
    return address.rpartition(":")[0].strip("[]")


def is_address(text: str) -> bool:
    """Return whether a text is host:port, with a port from 1 to 65535, and an IPv6 address in brackets."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) <= 65_535):
        return False
    if host.startswith("[") and host.endswith("]"):
        return _is_ipv6(host[1:-1])
    return 0 < len(host) <= 253 and not set(host) & set(":[]/@") and not any(letter.isspace() for letter in host)


def _is_ipv6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True


def _is_guarded(cluster: Cluster) -> bool:
    return bool(cluster.secret_file or cluster.tls_cert)


def _of_discovery(cluster: Cluster) -> list[str]:
    if cluster.discovery != "none":
        return []
    if cluster.seeds:
        return ["cluster.discovery none would ignore cluster.seeds: remove one of both"]
    if cluster.nodes > 1:
        return [
            f"cluster.nodes is {cluster.nodes}, but discovery is none: set seeds (--seeds HOST:PORT,...), or "
            "--discovery zeroconf on a local network, or --discovery seeds to wait for calls of other members"
        ]
    return []


def _of_proxies(cluster: Cluster) -> list[str]:
    found = []
    if cluster.nodes != 1:
        found.append(f"cluster.role proxy does not form a cluster: remove cluster.nodes {cluster.nodes} (--nodes)")
    if cluster.discovery != "zeroconf" and not cluster.seeds:
        found.append(
            "cluster.role proxy must find its cluster: set seeds (--seeds HOST:PORT,...), "
            "or --discovery zeroconf on a local network"
        )
    if cluster.advertise:
        found.append("no member calls a proxy (cluster.role): remove cluster.advertise")
    return found


def _of_addresses(cluster: Cluster) -> list[str]:
    found = [
        f"cluster.seeds: {seed!r} is not host:port, such as 10.0.0.1:9326"
        for seed in cluster.seeds
        if not is_address(seed)
    ]
    if cluster.advertise and not is_address(cluster.advertise):
        found.append(f"cluster.advertise: {cluster.advertise!r} is not host:port, such as 10.0.0.1:9326")
    return found


def _of_secrets(cluster: Cluster) -> list[str]:
    found = []
    try:
        read_secret(cluster)
        read_also(cluster)
    except ValueError as error:
        found.append(str(error))
    files = {name: getattr(cluster, name) for name in ("tls_cert", "tls_key", "tls_ca")}
    missing = [name for name, path in files.items() if not path]
    if 0 < len(missing) < len(files):
        found.append(f"mutual TLS needs cluster.{' and cluster.'.join(missing)} too, or none of the three")
    found += [unreadable for name, path in files.items() if path and (unreadable := _unreadable(name, Path(path)))]
    if not missing and not found:
        try:
            server_context(PeerSettings(**files))
        except ValueError as error:
            found.append(str(error))
    return found


def _unreadable(name: str, path: Path) -> str:
    try:
        with path.open("rb"):
            return ""
    except OSError as error:
        return f"cluster.{name} {path} cannot be read: {error.strerror or error}"
