"""Single HTTP requests to a server under test, by the standard library. They are thread-safe and keep no connection."""

import json
from http.client import HTTPConnection
from typing import Any, Final
from urllib.parse import urlsplit

from elasticq.client.errors import SqsError
from elasticq.client.sns import Sns
from elasticq.model.actions import TARGET_PREFIX

PATIENCE_S: Final = 30.0


class CallFailed(Exception):
    """A refusal of a call. code: AWS's or the server's error code; status: the HTTP status."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}" if code else message)
        self.status = status
        self.code = code


class Caller:
    """A sender of requests for ``account``. The number of the account is its access key id."""

    def __init__(self, endpoint_url: str, account: str, region: str) -> None:
        address = urlsplit(endpoint_url)
        assert address.hostname is not None
        self._endpoint_url, self._account, self._region = endpoint_url, account, region
        self._host, self._port = address.hostname, address.port
        credential = f"{account}/20000101/{region}/sqs/aws4_request"
        self._authorization = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature=0"

    def sqs(self, action: str, **members: Any) -> dict[str, Any]:
        """Call an action of SQS with JSON 1.0. Return its answer. Raise CallFailed or OSError."""
        target = {"X-Amz-Target": f"{TARGET_PREFIX}.{action}"}
        return self._send("POST", "/", members, "application/x-amz-json-1.0", target)

    def sns(self, action: str, **members: Any) -> dict[str, Any]:
        """Call an action of SNS, by its name in boto3, such as create_topic. Return its answer.

        Raise CallFailed or OSError.
        """
        with Sns(self._endpoint_url, self._region, (self._account, "test"), retry_s=0) as client:
            try:
                return dict(getattr(client, action)(**members))
            except SqsError as error:
                raise CallFailed(error.status, error.code, error.message) from error

    def order(self, method: str, path: str, **members: Any) -> dict[str, Any]:
        """Call a path that ``testing.enabled`` opens. Return its answer. Raise CallFailed or OSError."""
        return self._send(method, path, members, "application/json", {})

    def _send(
        self, method: str, path: str, members: dict[str, Any], content_type: str, headers: dict[str, str]
    ) -> dict[str, Any]:
        connection = HTTPConnection(self._host, self._port, timeout=PATIENCE_S)
        try:
            head = {"Content-Type": content_type, "Authorization": self._authorization, **headers}
            connection.request(method, path, json.dumps(members).encode(), head)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        return _answer_of(response.status, text)


def _answer_of(status: int, text: str) -> dict[str, Any]:
    try:
        answer = json.loads(text) if text else {}
    except ValueError:
        answer = {"message": text}
    if status < 400:
        return dict(answer)
    code = str(answer.get("code") or answer.get("__type", "").rpartition("#")[2])
    raise CallFailed(status, code, str(answer.get("message", text)))
