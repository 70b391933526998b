"""The authentication of requests, for auth = lax and auth = strict.

strict: every call needs a valid signature by a configured key. Principal and
account follow from the key, the region from the signed scope. The policies of
queues are enforced. lax: a signature is checked if its key is known; other
callers are accepted without a check. With auth = off there is no Authenticator,
and all callers are accepted without a check.
"""

from collections.abc import Iterable

from elasticq.http.admission.caller import Callers
from elasticq.model.commands import Origin
from elasticq.wire.operations import SERVICES
from elasticq.wire.services import Services
from elasticq.wire.sigv4 import Key, Verifier


class Authenticator:
    """The check of signatures, before the server reads more of a request than its framing.

    now_s: the wall clock in seconds, which the owner sets once a second.
    """

    def __init__(
        self, keys: Iterable[Key], callers: Callers, now_s: int, *, is_strict: bool, services: Services = SERVICES
    ) -> None:
        self._services = services
        self._verifier = Verifier(keys, *services)
        self._callers = callers
        self.is_strict = is_strict
        self.now_s = now_s

    def renew(self, keys: Iterable[Key]) -> None:
        """Replace all keys with these."""
        self._verifier = Verifier(keys, *self._services)

    def admit(self, lines: list[bytes], authorization: bytes, body: bytes) -> tuple[str, str]:
        """Return principal and owner (model/names.py) of the caller. Raise the SqsError that the client gets."""
        if not self.is_strict and not self._verifier.knows(lines, authorization):
            return self._callers.identify_request(lines, authorization)
        key = self._verifier.check(lines, authorization, body, self.now_s)
        return key.access_key_id, self._callers.owner(key.account, lines, authorization)

    def is_signed(self, lines: list[bytes], authorization: bytes) -> bool:
        """Return whether ``admit`` checks the signature of such a request."""
        return self.is_strict or self._verifier.knows(lines, authorization)

    def origin(self, peer: object, *, is_secure: bool) -> Origin | None:
        """Return the facts of a connection that policies use: address and TLS. None if policies are not enforced.

        peer: the peername of the transport.
        """
        if not self.is_strict:
            return None
        return Origin(str(peer[0]) if isinstance(peer, tuple) else "", is_secure)
