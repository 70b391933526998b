"""Requests as botocore signs them, at any time: the oracle for what we check."""

import datetime
from collections.abc import Mapping
from unittest.mock import patch
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from elasticq.wire.sigv4 import Key
from tests.http.desk import HOST, WALL_MS

KEY = Key("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "111111111111")
OTHER_KEY = Key("AKIDOTHER", "another secret / with + signs", "222222222222")
JSON_HEADERS = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.ListQueues"}
FORM_HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}
NOW_S = WALL_MS // 1_000


def target(action: str) -> dict[str, str]:
    return JSON_HEADERS | {"X-Amz-Target": f"AmazonSQS.{action}"}


def signed(
    body: bytes = b"{}",
    headers: Mapping[str, str] = JSON_HEADERS,
    *,
    method: str = "POST",
    url: str = "/",
    key: Key = KEY,
    at_s: int = NOW_S,
    region: str = "us-east-1",
    service: str = "sqs",
    presigned_s: int = 0,
) -> bytes:
    """A whole HTTP request; ``presigned_s``: by its URL, valid for so long."""
    request = AWSRequest(method, f"http://{HOST}{url}", dict(headers), body)
    credentials = Credentials(key.access_key_id, key.secret_access_key)
    now = datetime.datetime.fromtimestamp(at_s, datetime.UTC)
    with patch("botocore.auth.get_current_datetime", lambda *_, **__: now.replace(tzinfo=None)):
        if presigned_s:
            SigV4QueryAuth(credentials, service, region, expires=presigned_s).add_auth(request)
        else:
            SigV4Auth(credentials, service, region).add_auth(request)
    parts = urlsplit(request.url)
    line = f"{method} {parts.path or '/'}{'?' + parts.query if parts.query else ''} HTTP/1.1"
    sent = [f"{name}: {value}" for name, value in request.headers.items()]
    length = [f"Content-Length: {len(body)}"] if method == "POST" else []
    return "\r\n".join([line, f"Host: {HOST}", *sent, *length]).encode() + b"\r\n\r\n" + body
