"""The detection of elasticq at an endpoint, by the Server header of its /health."""

from functools import cache
from typing import Final
from urllib.parse import urlsplit

from elasticq.client.connection import Connection, tls_context

PATIENCE_S: Final = 5.0


def is_elasticq(endpoint: str, *, verify: bool | str = True) -> bool:
    """Return whether elasticq answers at the endpoint. Answers are cached. Raise Unreachable if there is no answer."""
    return _is_elasticq(endpoint.rstrip("/"), verify)


@cache
def _is_elasticq(endpoint: str, verify: bool | str) -> bool:
    parts = urlsplit(endpoint)
    if not parts.hostname:
        raise ValueError(f"{endpoint!r} is no endpoint, such as http://127.0.0.1:9324")
    is_tls = parts.scheme == "https"
    tls = tls_context(verify) if is_tls else None
    connection = Connection(parts.hostname, parts.port or (443 if is_tls else 80), tls, PATIENCE_S, PATIENCE_S)
    host = parts.netloc.rpartition("@")[2]
    request = f"GET /health HTTP/1.1\r\nHost: {host}\r\nUser-Agent: elasticq-light\r\nConnection: close\r\n\r\n"
    try:
        answer = connection.exchange(request.encode())
    finally:
        connection.close()
    return answer.header(b"server").lower().startswith(b"elasticq/")
