"""One request of the slow path: its head, its body and its connection."""

from aiohttp import web
from msgspec import Struct

from elasticq.http.admission.caller import credential_of
from elasticq.http.connection.facts import Head
from elasticq.http.connection.head import wants_json
from elasticq.http.context import Connection


class Asked(Struct):
    """One request. aiohttp parsed the head after our strict reader, so both have the same headers."""

    request: web.BaseRequest
    head: Head
    body: bytes
    connection: Connection

    @property
    def path(self) -> str:
        return self.request.rel_url.raw_path

    @property
    def query(self) -> str:
        return self.request.rel_url.raw_query_string

    @property
    def credential(self) -> bytes:
        """Return the text with the scope of the signature, from a header or from the URL."""
        return credential_of(self.head.lines, self.head.authorization)

    @property
    def has_target(self) -> bool:
        """Return whether the request has the header of JSON 1.0 that names an action."""
        return "X-Amz-Target" in self.request.headers

    @property
    def wants_json(self) -> bool:
        """Return whether an Accept header asks for JSON instead of XML."""
        return any(wants_json(accept) for accept in self.request.headers.getall("Accept", ()))
