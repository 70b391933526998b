"""The caller of a request: principal, account and region from its signature, and the key of one SDK call."""

import re
from hashlib import blake2b
from logging import getLogger
from typing import Final

from elasticq.model.names import ACCOUNT, ACCOUNT_CHARS, ANONYMOUS, REGION, account_of, owner_in

CREDENTIALS_MAX: Final = 1_024
CREDENTIAL_BYTES_MAX: Final = 256
REGIONS_LOGGED_MAX: Final = 32
_EMPTY: Final = blake2b(digest_size=16)
"""An empty hash: copying it costs half as much as making a new one."""
_CREDENTIAL: Final = re.compile(rb"(?:\A|[ ,])Credential=([^,]*)")
_OF_A_URL: Final = re.compile(rb"[?&]X-Amz-Credential=([^& ]*)")

_log = getLogger(__name__)


class Callers:
    """Principal and owner (model/names.py) by the credential of a signature, with a bounded memory.

    own_region: ``node.region``. The owner of its queues is the plain account. Empty if all regions share their queues.
    """

    def __init__(self, default_account: str, own_region: str = "") -> None:
        self._default_account = default_account
        self._own_region = own_region
        self._anonymous = (ANONYMOUS, default_account)
        self._known: dict[bytes, tuple[str, str]] = {}
        self._logged_regions: set[str] = set()

    def identify(self, authorization: bytes) -> tuple[str, str]:
        """Return principal and owner of an Authorization header. Does not check the signature."""
        start = authorization.partition(b",")[0]  # AWS4-HMAC-SHA256 Credential=<access key id>/<day>/<region>/sqs/...
        return self._known.get(start) or self._learn(start, authorization)

    def identify_request(self, lines: list[bytes], authorization: bytes) -> tuple[str, str]:
        """Return principal and owner of a request whose signature may be in its URL instead of a header.

        lines: those of the head, the request line first.
        """
        return self.identify(credential_of(lines, authorization))

    def owner(self, account: str, lines: list[bytes], authorization: bytes) -> str:
        """Return the owner of the account's queues in the region that the request was signed for."""
        return account + self.identify_request(lines, authorization)[1][ACCOUNT_CHARS:]

    def in_region(self, owner: str, region: str) -> str:
        """Return the owner of the queues in a region of the account of ``owner``.

        A text that is not the name of a region means the node's own region, as does a missing signature. Clients of
        local servers often sign with an invented region name.
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
            self._log_foreign_region(region)
        if found.start() < len(start):  # otherwise a header with the same start could name another caller
            if len(self._known) >= CREDENTIALS_MAX:
                self._known.clear()
            self._known[start] = caller
        return caller

    def _log_foreign_region(self, region: str) -> None:
        """Log the first call for each foreign region. A client that did not intend this misses its queues."""
        if region not in self._logged_regions and len(self._logged_regions) < REGIONS_LOGGED_MAX:
            self._logged_regions.add(region)
            hint = "each region has its own queues; with node.single_region = true all regions share their queues"
            fields = {"region": region, "own_region": self._own_region, "hint": hint}
            _log.info("calls_of_another_region", extra={"fields": fields})


def credential_of(lines: list[bytes], authorization: bytes) -> bytes:
    """Return the text that contains the credential: the header, or the parameter of a presigned URL in its form."""
    presigned = None if authorization else _OF_A_URL.search(lines[0])
    if presigned is None:
        return authorization
    return b"Credential=" + presigned[1].replace(b"%2F", b"/").replace(b"%2f", b"/")


def invocation(principal: str, owner: str, action: str, invocation_id: bytes, body: bytes, path: str = "/") -> bytes:
    """Return 16 bytes that all attempts of one call share; empty if the client sent no invocation id.

    An application may give several calls one id (x-elasticq-guid). So the hash includes everything that defines the
    request: also the region, which is part of ``owner`` (model/names.py), and for a form the path, which may name
    the queue. Different parts cannot give the same hash input: only the body can contain a NUL. Region and path
    begin with a slash, which principals and actions cannot contain.
    """
    if not invocation_id:
        return b""
    who, what = principal + owner[ACCOUNT_CHARS:], action if path == "/" else action + path
    invocation_hash = _EMPTY.copy()
    invocation_hash.update(b"%b\0%b\0%b\0" % (who.encode(), what.encode(), invocation_id))
    invocation_hash.update(body)
    return invocation_hash.digest()
