"""AWS Signature Version 4 for the calls of one client.

Within one second, only the body differs between calls. The hashes over all other parts are computed once and copied,
so a call costs four small hashes. The key of the day is derived once. Source of the rules: AWS's "Create a signed
request".
"""

import hmac
from hashlib import sha256
from time import gmtime, strftime
from typing import Any

from elasticq.client.credentials import Credentials

_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))
_TARGETS_MAX = 64


class _Prepared:
    """The parts of a signature that are the same for one path and target within one second."""

    def __init__(self, second: int, head: bytes, canonical: Any, inner: Any, outer: Any) -> None:
        self.second = second
        self.head = head
        self.canonical = canonical
        self.inner = inner
        self.outer = outer


class Signer:
    """The signer of the POSTs of one client. Threads may share it, as cached parts are replaced and never changed."""

    def __init__(self, credentials: Credentials, region: str, host: str, service: str = "sqs") -> None:
        self._credentials = credentials
        self._region = region
        self._host = host
        self._service = service
        self._key: tuple[str, bytes] = ("", b"")
        self._prepared: dict[tuple[str, str, str], _Prepared] = {}

    def headers(self, path: str, content_type: str, target: str, body: bytes, now_s: int) -> bytes:
        """Return the header lines X-Amz-Date, X-Amz-Security-Token (if there is a token) and Authorization."""
        prepared = self._prepared.get((path, content_type, target))
        if prepared is None or prepared.second != now_s:
            prepared = self._prepare(path, content_type, target, now_s)
        canonical = prepared.canonical.copy()
        canonical.update(sha256(body).hexdigest().encode())
        inner = prepared.inner.copy()
        inner.update(canonical.hexdigest().encode())
        outer = prepared.outer.copy()
        outer.update(inner.digest())
        return b"%b%b\r\n" % (prepared.head, outer.hexdigest().encode())

    def _prepare(self, path: str, content_type: str, target: str, now_s: int) -> _Prepared:
        key_id, _, token = self._credentials
        time = strftime("%Y%m%dT%H%M%SZ", gmtime(now_s))
        signed = {"content-type": content_type, "host": self._host, "x-amz-date": time}
        if token:
            signed["x-amz-security-token"] = token
        if target:
            signed["x-amz-target"] = target
        names = ";".join(signed)
        lines = "".join([f"{name}:{value}\n" for name, value in signed.items()])
        canonical = sha256(f"POST\n{path}\n\n{lines}\n{names}\n".encode())
        scope = f"{time[:8]}/{self._region}/{self._service}/aws4_request"
        padded = self._day_key(time[:8]).ljust(64, b"\0")
        inner = sha256(padded.translate(_INNER) + f"AWS4-HMAC-SHA256\n{time}\n{scope}\n".encode())
        outer = sha256(padded.translate(_OUTER))
        head = f"X-Amz-Date: {time}\r\n" + (f"X-Amz-Security-Token: {token}\r\n" if token else "")
        head += f"Authorization: AWS4-HMAC-SHA256 Credential={key_id}/{scope}, SignedHeaders={names}, Signature="
        prepared = _Prepared(now_s, head.encode(), canonical, inner, outer)
        if len(self._prepared) >= _TARGETS_MAX:
            self._prepared = {}
        self._prepared[path, content_type, target] = prepared
        return prepared

    def _day_key(self, day: str) -> bytes:
        known_day, key = self._key
        if known_day != day:
            key = b"AWS4" + self._credentials.secret_access_key.encode()
            for part in (day, self._region, self._service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._key = day, key
        return key
