"""Who sent a request: principal, account and region from its signature, and the mark of one SDK call."""

import re
from hashlib import blake2b
from logging import getLogger
from typing import Final

from elasticq.model.names import ACCOUNT, ACCOUNT_CHARS, ANONYMOUS, REGION, account_of, owner_in

CREDENTIALS_MAX: Final = 1_024
CREDENTIAL_BYTES_MAX: Final = 256
REGIONS_TOLD_MAX: Final = 32
_EMPTY: Final = blake2b(digest_size=16)
"""A hash that has taken in nothing: its copy costs half of a new one."""
_CREDENTIAL: Final = re.compile(rb"(?:\A|[ ,])Credential=([^,]*)")
_OF_A_URL: Final = re.compile(rb"[?&]X-Amz-Credential=([^& ]*)")

_log = getLogger(__name__)


class Callers:
    """Principal and owner (model/names.py) by the credential of a signature; remembers a bounded number of them.

    own_region: ``node.region``, whose queues belong to an account without more; empty where no regions are told apart.
    """

    __slots__ = ("_anonymous", "_default_account", "_known", "_own_region", "_told")

    def __init__(self, default_account: str, own_region: str = "") -> None:
        self._default_account = default_account
        self._own_region = own_region
        self._anonymous = (ANONYMOUS, default_account)
        self._known: dict[bytes, tuple[str, str]] = {}
        self._told: set[str] = set()

    def identify(self, authorization: bytes) -> tuple[str, str]:
        """Return principal and owner of an Authorization header; signatures are not checked here."""
        start = authorization.partition(b",")[0]  # AWS4-HMAC-SHA256 Credential=<access key id>/<day>/<region>/sqs/...
        return self._known.get(start) or self._learn(start, authorization)

    def identify_request(self, lines: list[bytes], authorization: bytes) -> tuple[str, str]:
        """Return principal and owner of a request that may be signed by its URL instead of by a header.

        lines: of its head, the request line first.
        """
        return self.identify(credential_of(lines, authorization))

    def owner(self, account: str, lines: list[bytes], authorization: bytes) -> str:
        """Return the owner of the account's queues in the region that a request was signed for."""
        return account + self.identify_request(lines, authorization)[1][ACCOUNT_CHARS:]

    def in_region(self, owner: str, region: str) -> str:
        """Return the owner of the queues in a region of the account of ``owner``.

        What is no region's name means the node's own region, as no signature at all does: clients that sign with
        anything for a local server write many things there.
        """
        is_own = region == self._own_region or not self._own_region or REGION.match(region) is None
        return owner_in(account_of(owner), "" if is_own else region)

    def _learn(self, start: bytes, authorization: bytes) -> tuple[str, str]:
        if not authorization:
            return self._anonymous
        found = _CREDENTIAL.search(authorization)
        if found is None or len(start) > CREDENTIAL_BYTES_MAX:
            return self._anonymous
        key, *scope = found[1].split(b"/")
        principal = key.decode("ascii") if key.isalnum() else ANONYMOUS
        account = principal if ACCOUNT.match(principal) else self._default_account
        region = scope[1].decode("latin-1") if len(scope) > 1 else ""
        caller = principal, self.in_region(account, region)
        if caller[1] != account:
            self._tell(region)
        if found.start() < len(start):  # else other headers that begin so may name another one
            if len(self._known) >= CREDENTIALS_MAX:
                self._known.clear()
            self._known[start] = caller
        return caller

    def _tell(self, region: str) -> None:
        """Log that calls of another region come, once for each: who did not mean that misses their queues."""
        if region not in self._told and len(self._told) < REGIONS_TOLD_MAX:
            self._told.add(region)
            hint = "each region has queues of its own; node.single_region = true makes all regions one"
            fields = {"region": region, "own_region": self._own_region, "hint": hint}
            _log.info("calls_of_another_region", extra={"fields": fields})


def credential_of(lines: list[bytes], authorization: bytes) -> bytes:
    """Return the text that holds the credential of a request: the header, or what a presigned URL has in its place."""
    presigned = None if authorization else _OF_A_URL.search(lines[0])
    if presigned is None:
        return authorization
    return b"Credential=" + presigned[1].replace(b"%2F", b"/").replace(b"%2f", b"/")


def invocation(principal: str, owner: str, action: str, invocation_id: bytes, body: bytes, path: str = "/") -> bytes:
    """Return 16 bytes that all attempts of one call share; empty where the client sent no invocation id.

    An application may give several calls one id (x-elasticq-guid), so all that says what is asked for counts: the
    region, which ``owner`` tells (model/names.py), and of a form also the path, which may name its queue.
    The parts that are hashed cannot run into each other: none but the body can hold a NUL, no principal and no
    action holds a slash, with which region and path begin.
    """
    if not invocation_id:
        return b""
    who, what = principal + owner[ACCOUNT_CHARS:], action if path == "/" else action + path
    invocation_hash = _EMPTY.copy()
    invocation_hash.update(b"%b\0%b\0%b\0" % (who.encode(), what.encode(), invocation_id))
    invocation_hash.update(body)
    return invocation_hash.digest()
