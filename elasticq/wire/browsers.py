"""Tells what a web page made a browser send from what a client sends, and which pages may.

A page of anybody can make a browser on this machine ask for http://localhost:9324.
It cannot keep the browser from adding Origin or Sec-Fetch-Site, so a request
that carries a mark of a browser is judged (CSRF). A page can also have the name
of its own server resolve to 127.0.0.1 (DNS rebinding): then the browser takes
this server for the page's own, adds no mark over plain HTTP but a User-Agent,
which the page may change, and only the Host header tells. So where no signature
does, the Host of every request must be a name that no stranger's name server
can point here.
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
"""How the User-Agent of every browser begins, unless a page changed it."""

HOST_CHARS_SHOWN_MAX: Final = 253
_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([0-9a-z._-]+?)\.?)(?::[0-9]{1,5})?")
_LOCAL_NAMES: Final = ("localhost.localdomain", "localhost.localstack.cloud")
"""The second is LocalStack's name for 127.0.0.1, which stands in the code of users who come from there."""
_LOCAL_ENDS: Final = (".localhost", ".local", ".internal", ".svc", ".localhost.localstack.cloud")
"""No name server of the Internet may answer for the first three. Kubernetes' services are NAME.NAMESPACE.svc, and in
whole NAME.NAMESPACE.svc.cluster.local."""


class Browsers:
    """Judges requests of browsers.

    hosts: names under which this server may be addressed besides those that no foreign name server can point here
    (``is_allowed_host``); origins: pages of elsewhere that may ask, as scheme://host[:port]; are_gets_strict: no
    unsigned GET may change something, whoever sends it.
    """

    __slots__ = ("_are_gets_strict", "_hosts", "_origins")

    def __init__(
        self, hosts: Iterable[str] = (), origins: Iterable[str] = (), *, are_gets_strict: bool = False
    ) -> None:
        self._are_gets_strict = are_gets_strict
        self._hosts = frozenset(host.lower().strip("[]") for host in hosts if host)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def refusal(self, header: Callable[[str], str | None], *, is_unsigned: bool = True) -> str:
        """Why the request is refused; empty: it is not. ``header`` gives a header by its name.

        is_unsigned: its Host is judged although it has no mark of a browser. A client of HTTP/1.0 may send none.
        """
        origin, site = header("Origin"), (header("Sec-Fetch-Site") or "").lower()
        marked = _is_marked(header)
        host = header("Host") or ""
        if (marked or (is_unsigned and host)) and not self.is_allowed_host(host):
            shown = host[:HOST_CHARS_SHOWN_MAX].encode("ascii", "replace").decode()
            return (
                f"This server does not answer to the Host {shown!r}, which a name server of anybody could point here: "
                "name it in auth.allowed_hosts or http.public_url, or use --auth strict."
            )
        if not marked:
            return ""
        if origin is not None and not self.is_allowed_origin(origin, host):
            return "Pages of this origin may not use this server: see allowed_origins."
        if origin is None and site == "cross-site":
            return "Pages of another site may not use this server: see allowed_origins."
        return ""

    def get_refusal(self, header: Callable[[str], str | None], action: str) -> str:
        """Why an unsigned GET of an action that changes something is refused; empty: it is not.

        Any link or image makes a browser GET, with Mozilla/ in front of its User-Agent, which no page can change
        there; where it came from stands in Referer, unless the page forbade that. Programs send none of these.
        """
        if self._are_gets_strict:
            return f"{action} by GET must be signed: use POST."
        if _is_marked(header) or header("Referer") is not None:
            return f"{action} by GET must be signed where it comes from a browser: use POST, or a program."
        return ""

    def is_allowed_host(self, host: str) -> bool:
        """host or host:port: listed, an address, a name of one label, as in networks of containers, or a local name."""
        found = _HOST.fullmatch(host.lower())
        if found is None:
            return False
        name = found[1] or found[2]
        if name in self._hosts or name in _LOCAL_NAMES or name.endswith(_LOCAL_ENDS) or _is_address(name):
            return True
        return found[1] is None and "." not in name

    def is_allowed_origin(self, origin: str, host: str) -> bool:
        """Whether ``origin`` is listed, or is this server itself."""
        origin = origin.lower()
        return origin in self._origins or origin in (f"http://{host.lower()}", f"https://{host.lower()}")

    def is_foreign(self, origin: str) -> bool:
        """Whether ``origin`` is listed: its pages need CORS headers to read an answer."""
        return origin.lower() in self._origins


def _is_marked(header: Callable[[str], str | None]) -> bool:
    """Whether a request has a mark of a browser."""
    agent = header("User-Agent") or ""
    return agent.startswith(AGENT.decode()) or any(header(mark.decode()) is not None for mark in MARKS)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
