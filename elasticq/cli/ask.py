"""One HTTP request to a server, by the standard library.

The first request imports the library's HTTP client: all commands import this module, but ``server`` sends no request.
"""

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from http.client import HTTPConnection

ANSWER_BYTES_MAX: Final = 32 * 1_048_576
"""Enough for the list of 100,000 queues."""


class BadUrl(Exception):
    """A URL that is not an http or https URL with a host."""


class Unreachable(Exception):
    """A URL where no server answers, or not with HTTP."""


class Answer(NamedTuple):
    """A response. document: the JSON object in its body, empty if there is none."""

    status: int
    document: dict[str, Any]


def ask(
    url: str,
    method: str,
    path: str,
    timeout_s: float,
    document: dict[str, Any] | None = None,
    port: int | None = None,
    token: str = "",
) -> Answer:
    """Send a request to the server at ``url`` and return its answer. Raise BadUrl or Unreachable without one.

    port: the default if the URL has none. The system's authorities, or those in SSL_CERT_FILE, verify certificates.
    """
    status, body = ask_bytes(url, method, path, timeout_s, document, port, token)
    return Answer(status, _object(body))


def ask_bytes(
    url: str,
    method: str,
    path: str,
    timeout_s: float,
    document: dict[str, Any] | None = None,
    port: int | None = None,
    token: str = "",
) -> tuple[int, bytes]:
    """Return status and body of the answer. Arguments and errors are those of ``ask``.

    Return at most the first ANSWER_BYTES_MAX bytes of the body.
    """
    from http.client import HTTPException

    connection = _connection(url, port, timeout_s)
    body = None if document is None else json.dumps(document).encode()
    headers = {} if body is None else {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read(ANSWER_BYTES_MAX)
    except (OSError, HTTPException) as error:
        raise Unreachable(f"{url} does not answer: {error}") from error
    finally:
        connection.close()


def _connection(url: str, port: int | None, timeout_s: float) -> "HTTPConnection":
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    try:
        address = urlsplit(url)
        if address.scheme == "http" and address.hostname:
            return HTTPConnection(address.hostname, address.port or port, timeout=timeout_s)
        if address.scheme == "https" and address.hostname:
            return HTTPSConnection(address.hostname, address.port or port, timeout=timeout_s)
    except (ValueError, HTTPException) as error:
        raise BadUrl(f"{url} is not an http URL: {error}") from error
    raise BadUrl(f"{url} is not an http URL")


def _object(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
