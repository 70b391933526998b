"""Tells what a web page made a browser send from what a client sends, and which pages may.

A page of anybody can make a browser on this machine ask for http://localhost:9324.
It cannot keep the browser from adding Origin or Sec-Fetch-Site, so a request
that carries a mark of a browser is judged (CSRF). A page can also have the name
of its own server resolve to 127.0.0.1 (DNS rebinding): then the browser takes
this server for the page's own, and only the Host header tells. Clients that are
no browsers carry no mark and are not asked where they think they are.
"""

import ipaddress
from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import urlsplit

MARKS: Final = (b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest", b"sec-fetch-user")
"""Header names in lower case that browsers add and pages cannot take away."""
AGENT: Final = b"Mozilla/"
"""Beginning of every browser's User-Agent: a rebound GET over plain HTTP carries no other mark."""

_LOCAL_NAMES: Final = ("localhost", "localhost.localdomain")


class Browsers:
    """Judges requests of browsers.

    hosts: names under which this server may be addressed besides loopback and plain IP addresses, which no
    foreign name server can point here; origins: pages of elsewhere that may ask, as scheme://host[:port].
    """

    __slots__ = ("_hosts", "_origins")

    def __init__(self, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._hosts = frozenset(host.lower().strip("[]") for host in hosts if host)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def refusal(self, header: Callable[[str], str | None]) -> str:
        """Why the request is refused; empty: it is not. ``header`` gives a header by its name."""
        origin, site = header("Origin"), header("Sec-Fetch-Site")
        agent = header("User-Agent") or ""
        marked = any(header(mark.decode()) is not None for mark in MARKS)
        if not marked and not agent.startswith(AGENT.decode()):
            return ""
        host = header("Host") or ""
        if not self.is_allowed_host(host):
            return "The Host of this request is not one of this server: see allowed_hosts."
        if origin is not None and not self.is_allowed_origin(origin, host):
            return "Pages of this origin may not use this server: see allowed_origins."
        if origin is None and site == "cross-site":
            return "Pages of another site may not use this server: see allowed_origins."
        return ""

    def is_allowed_host(self, host: str) -> bool:
        """host or host:port."""
        name = _host_name(host)
        return name in self._hosts or name in _LOCAL_NAMES or name.endswith(".localhost") or _is_address(name)

    def is_allowed_origin(self, origin: str, host: str) -> bool:
        """Listed, or a page of this very server."""
        origin = origin.lower()
        return origin in self._origins or origin in (f"http://{host.lower()}", f"https://{host.lower()}")

    def is_foreign(self, origin: str) -> bool:
        """Whether ``origin`` is a listed one: it needs CORS headers to read an answer."""
        return origin.lower() in self._origins


def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
