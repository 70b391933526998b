"""Functions to parse and build ``host:port`` texts. IPv6 hosts are in brackets."""

from ipaddress import ip_address

WILDCARDS = ("", "0.0.0.0", "::")


def split(address: str) -> tuple[str, int]:
    """Return host and port. Raise ValueError if there is no port from 0 to 65535."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ValueError(f"{address!r} is not host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


def join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_dialable(address: str) -> bool:
    """Return whether one can connect to an address: its host is no wildcard, and its port is not 0."""
    try:
        host, port = split(address)
    except ValueError:
        return False
    return port != 0 and host not in WILDCARDS and len(address) <= 300


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
