"""The signer of the cluster that this process is a member of, which also signs envelopes for queues.

To create a signer takes some tenths of a second. So it is created once, outside the loop's thread if possible.
"""

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elasticq.push.signer import Signer


class Signatures:
    """The holder of the signer, usable from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._signers: dict[bytes, Signer] = {}

    def signer(self, key: bytes) -> "Signer":
        """Return the signer of the cluster with this key (State.mac_key). The first call creates it."""
        from elasticq.push.signer import Signer

        with self._lock:
            if key not in self._signers:
                self._signers = {key: Signer(key)}
            return self._signers[key]

    def sign(self, key: bytes, envelope: dict[str, str]) -> tuple[str, str]:
        """Return the signature of an envelope, and the name of the certificate that verifies it."""
        return self.signer(key).seal(envelope)
