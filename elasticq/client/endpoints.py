"""The endpoints of a cluster: those that the caller gave, and those that its admin ports name."""

from collections.abc import Iterable
from http.client import HTTPException
from ipaddress import IPv4Address, IPv6Address, ip_address
from json import load
from math import inf
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import urlopen

from elasticq.client.connection import tls_context

LEARN_S: Final = 2.0
REMEMBER_S: Final = 5.0


class Endpoints:
    """The endpoints of one client. Threads share it without a lock, as a changed field is replaced as a whole."""

    def __init__(
        self,
        own: str,
        given: Iterable[str],
        admin: Iterable[str],
        verify: bool | str = True,
        remember_s: float = REMEMBER_S,
    ) -> None:
        """Start with the given endpoints. verify: for the certificates of admin ports, as in boto3.

        Raise ValueError if an endpoint is not a URL.
        """
        self.own = _checked(own)
        self.current = self.own
        self._given = tuple(dict.fromkeys((self.own, *map(_checked, given))))
        self._known = self._given
        self._admin = tuple(map(_checked, admin))
        self._verify = verify
        self._remember_s = remember_s
        self._due_s = -inf

    @property
    def is_due(self) -> bool:
        """Return whether ``learn`` would ask: there are admin ports, and none was asked in the last seconds."""
        return bool(self._admin) and self._due_s <= monotonic()

    @property
    def is_new(self) -> bool:
        """Return whether there are admin ports and none was asked yet."""
        return bool(self._admin) and self._due_s == -inf

    def leave(self, failed: str) -> None:
        """Make the endpoint after ``failed`` the current one, unless another thread already did."""
        if self.current == failed:
            known = self._known
            at = known.index(failed) if failed in known else -1
            self.current = known[(at + 1) % len(known)]

    def learn(self) -> None:
        """Ask the admin ports in turn, each for up to LEARN_S, until one names the members of its cluster.

        Do nothing unless ``is_due``. Members that only an earlier answer named are dropped. If no port answers, the
        known endpoints stay, as the given admin ports may all belong to members that died.
        """
        if not self.is_due:
            return
        self._due_s = monotonic() + self._remember_s  # meanwhile other threads use the known endpoints
        learnt = self._members()
        self._due_s = monotonic() + self._remember_s
        if learnt:
            self._known = tuple(dict.fromkeys((*self._given, *learnt)))

    def _members(self) -> list[str]:
        for admin in self._admin:
            tls = tls_context(self._verify) if admin.startswith("https:") else None
            try:
                with urlopen(f"{admin}/cluster", timeout=LEARN_S, context=tls) as answer:
                    return reachable(load(answer), urlsplit(admin).hostname or "")
            except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError):
                continue
        return []


def reachable(told: Any, admin_host: str) -> list[str]:
    """Return the URLs of the SQS ports in ``told``, an answer to ``GET /cluster``.

    They are for a client that reaches ``admin_host``. If a member listens on all addresses, its answer names none of
    them. For such a member, the function uses the host of its peers' port. If that host is unknown too, it uses
    ``admin_host`` for the member that answered, and omits any other member. It also omits a member that listens on its
    loopback only, unless ``admin_host`` is a loopback address.

    Raise LookupError, TypeError, ValueError or AttributeError if ``told`` is not such an answer.
    """
    found = []
    for member in told["members"]:
        parts = urlsplit(member.get("http") or "")
        host = parts.hostname or ""
        if _is_unspecified(host):
            host = urlsplit(f"//{member['address']}").hostname or ""
            if not host or _is_unspecified(host):
                host = admin_host if member["id"] == told["member"] else ""
        if host and (not _is_loopback(host) or _is_loopback(admin_host)):
            written = f"[{host}]" if ":" in host else host
            found.append(f"{parts.scheme}://{written}" + (f":{parts.port}" if parts.port else ""))
    return found


def _is_unspecified(host: str) -> bool:
    ip = _ip(host)
    return ip is not None and ip.is_unspecified


def _is_loopback(host: str) -> bool:
    ip = _ip(host)
    return host == "localhost" or (ip is not None and ip.is_loopback)


def _ip(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no URL of a port, such as http://127.0.0.1:9324")
    return url.rstrip("/")
