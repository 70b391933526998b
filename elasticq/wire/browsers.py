"""The check of requests that web pages send through browsers, and which pages may send them.

Any web page can make a browser on this machine send requests to
http://localhost:9324. The page cannot stop the browser from adding Origin or
Sec-Fetch-Site. So a request with such a mark of a browser is checked (CSRF).

A page can also let the name of its own server resolve to 127.0.0.1 (DNS
rebinding). Then the browser treats this server as the page's own. Over plain
HTTP it adds only a User-Agent, which the page may change. Only the Host header
shows the attack. So the Host of every unsigned request must be a name that no
foreign name server can point to this server.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable
from typing import Final

MARKS: Final[tuple[bytes, ...]] = (
    b"origin",
    b"sec-fetch-site",
    b"sec-fetch-mode",
    b"sec-fetch-dest",
    b"sec-fetch-user",
)
"""Names, in lower case, of headers that browsers add and that pages cannot remove."""
AGENT: Final = b"Mozilla/"
"""The start of every browser's User-Agent, unless a page changed it."""

HOST_CHARS_SHOWN_MAX: Final = 253
_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([0-9a-z._-]+?)\.?)(?::[0-9]{1,5})?")
_LOCAL_NAMES: Final = ("localhost.localdomain", "localhost.localstack.cloud")
"""Names of 127.0.0.1. The second is LocalStack's, and is in the code of its former users."""
LOCAL_ENDS: Final = {
    ".localhost": "loopback only (RFC 6761)",
    ".test": "never in the public DNS (RFC 6761)",
    ".local": "multicast DNS and Kubernetes, never in the public DNS (RFC 6762)",
    ".home.arpa": "home networks, never in the public DNS (RFC 8375)",
    ".internal": "reserved by ICANN for private networks (2024)",
    ".home": "ICANN does not delegate it, because home networks use it (2018)",
    ".corp": "ICANN does not delegate it, because companies use it (2018)",
    ".lan": "not a domain of the public DNS; routers give it",
    ".consul": "not a domain of the public DNS; Consul answers for it",
    ".svc": "not a domain of the public DNS; services of Kubernetes are NAME.NAMESPACE.svc",
    ".fritz.box": "belongs to the maker of the routers that answer for it (WIPO case D2024-0706)",
    ".localhost.localstack.cloud": "belongs to LocalStack, which points it to 127.0.0.1",
}
"""The ends of names that are always allowed, and why no stranger's name server can answer for each."""
_OF_AWS: Final = re.compile(
    r"(?:(?:queue|(?:sqs|sns)(?:-fips)?|sts)(?:\.[a-z]{2}(?:-[a-z]+)+-[0-9])?|[a-z]{2}(?:-[a-z]+)+-[0-9]\.queue)"
    r"\.amazonaws\.com(?:\.cn)?"
)
"""The endpoints of SQS, SNS and STS. Other names below amazonaws.com can point to machines of Amazon's customers."""


class Browsers:
    """The rules for requests of browsers.

    hosts: names of this server, in addition to those that are always safe (``is_allowed_host``).
    origins: origins of foreign pages that may send requests, as scheme://host[:port].
    are_gets_strict: whether an unsigned GET of any client must not change anything.
    """

    def __init__(
        self, hosts: Iterable[str] = (), origins: Iterable[str] = (), *, are_gets_strict: bool = False
    ) -> None:
        self._are_gets_strict = are_gets_strict
        self._hosts = frozenset(host.lower().strip("[]") for host in hosts if host)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def refusal(self, header: Callable[[str], str | None], *, is_unsigned: bool = True) -> str:
        """Return why the request is refused; empty if it is allowed. ``header`` returns a header by its name.

        is_unsigned: check the Host even without a mark of a browser. A client of HTTP/1.0 may send no Host.
        """
        origin, site = header("Origin"), (header("Sec-Fetch-Site") or "").lower()
        marked = _is_marked(header)
        host = header("Host") or ""
        if (marked or (is_unsigned and host)) and not self.is_allowed_host(host):
            shown = host[:HOST_CHARS_SHOWN_MAX].encode("ascii", "replace").decode()
            return (
                f"This server refuses the Host {shown!r}, because any name server could point that name to it: "
                "add it to auth.allowed_hosts, or to http.public_url or admin.public_url, or use --auth strict."
            )
        if not marked:
            return ""
        if origin is not None and not self.is_allowed_origin(origin, host):
            return "Pages of this origin may not use this server: see allowed_origins."
        if origin is None and site == "cross-site":
            return "Pages of another site may not use this server: see allowed_origins."
        return ""

    def get_refusal(self, header: Callable[[str], str | None], action: str) -> str:
        """Return why an unsigned GET of an action that changes something is refused; empty if it is allowed.

        Any link or image makes a browser send a GET. Its User-Agent then begins with Mozilla/, which the page cannot
        change. Its Referer names the page, unless the page forbids that. Programs send neither.
        """
        if self._are_gets_strict:
            return f"{action} by GET must be signed: use POST."
        if _is_marked(header) or header("Referer") is not None:
            return f"{action} by GET must be signed if it comes from a browser: use POST, or another program."
        return ""

    def is_allowed_host(self, host: str) -> bool:
        """Return whether ``host`` (host or host:port) is a name of this server.

        That is a listed name, an IP address, a local name, or a name of one label, as networks of containers use.
        """
        found = _HOST.fullmatch(host.lower())
        if found is None:
            return False
        name = found[1] or found[2]
        if name in self._hosts or name in _LOCAL_NAMES or name.endswith(tuple(LOCAL_ENDS)) or _is_address(name):
            return True
        if _OF_AWS.fullmatch(name):
            return True
        return found[1] is None and "." not in name

    def is_allowed_origin(self, origin: str, host: str) -> bool:
        """Return whether ``origin`` is listed, or is this server itself."""
        origin = origin.lower()
        return origin in self._origins or origin in (f"http://{host.lower()}", f"https://{host.lower()}")

    def is_foreign(self, origin: str) -> bool:
        """Return whether ``origin`` is listed, so that its pages need CORS headers to read an answer."""
        return origin.lower() in self._origins


def _is_marked(header: Callable[[str], str | None]) -> bool:
    """Return whether a request has a mark of a browser."""
    agent = header("User-Agent") or ""
    return agent.startswith(AGENT.decode()) or any(header(mark.decode()) is not None for mark in MARKS)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
