"""An operator's program: plain HTTP to the admin port of a real server."""

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded", "HX-Request": "true"}
PATIENCE_S = 60


class Operator:
    """Asks one admin port; ``headers`` go with each request."""

    def __init__(self, url: str, **headers: str) -> None:
        self.url = url
        self.headers = headers

    def ask(
        self, path: str, body: bytes | None = None, headers: dict[str, str] | None = None, method: str | None = None
    ) -> tuple[int, str, dict[str, str]]:
        """Return status, text and headers of the answer; redirects are followed."""
        request = Request(self.url + path, body, {**self.headers, **(headers or {})}, method=method)
        try:
            with urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode(), dict(answer.headers)
        except HTTPError as error:
            with error:
                return error.code, error.read().decode(), dict(error.headers)

    def get(self, path: str) -> Any:
        status, text, _ = self.ask(path)
        assert status == 200, (path, status, text)
        return json.loads(text)

    def act(self, action: str, given: dict[str, Any], query: str = "") -> tuple[int, Any]:
        """Execute an action of SQS by the API."""
        status, text, _ = self.ask(f"/api/actions/{action}{query}", json.dumps(given).encode(), JSON)
        return status, json.loads(text)
