"""Who sent a request: principal and account from its Authorization, and the mark of one SDK call."""

from hashlib import blake2b
from typing import Final

from elasticq.model.names import ACCOUNT

ANONYMOUS: Final = "anonymous"
KEYS_MAX: Final = 1_024
KEY_BYTES_MAX: Final = 192
INVOCATION_ID_BYTES_MAX: Final = 256
_EMPTY: Final = blake2b(digest_size=16)
"""A hash that has taken in nothing: its copy costs half of a new one."""


class Callers:
    """Principal and account by access key id; remembers a bounded number of them."""

    __slots__ = ("_anonymous", "_default_account", "_known")

    def __init__(self, default_account: str) -> None:
        self._default_account = default_account
        self._anonymous = (ANONYMOUS, default_account)
        self._known: dict[bytes, tuple[str, str]] = {}

    def identify(self, authorization: bytes) -> tuple[str, str]:
        """Return principal and account of an Authorization header; signatures are not checked here."""
        start = authorization.partition(b"/")[0]  # AWS4-HMAC-SHA256 Credential=<access key id>
        return self._known.get(start) or self._learn(start)

    def _learn(self, start: bytes) -> tuple[str, str]:
        key = start.partition(b"Credential=")[2]
        if len(start) > KEY_BYTES_MAX or not key.isalnum():
            return self._anonymous
        principal = key.decode("ascii")
        caller = principal, principal if ACCOUNT.match(principal) else self._default_account
        if len(self._known) >= KEYS_MAX:
            self._known.clear()
        self._known[start] = caller
        return caller


def invocation(principal: str, action: str, invocation_id: bytes, body: bytes) -> bytes:
    """Return 16 bytes that all attempts of one SDK call share; empty where the client sent no usable invocation id.

    The parts that are hashed cannot run into each other: none but the body can hold a NUL.
    """
    if not invocation_id or len(invocation_id) > INVOCATION_ID_BYTES_MAX:
        return b""
    invocation_hash = _EMPTY.copy()
    invocation_hash.update(b"%b\0%b\0%b\0" % (principal.encode(), action.encode(), invocation_id))
    invocation_hash.update(body)
    return invocation_hash.digest()
