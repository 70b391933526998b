"""The signer of the cluster that this process is a member of, and what signs envelopes for queues with it.

A signer takes some tenths of a second to make, so that it is made once, outside of the loop's thread where that can be.
"""

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elasticq.push.signer import Signer


class Signatures:
    def __init__(self) -> None:
        self._lock = Lock()
        self._signers: dict[bytes, Signer] = {}

    def signer(self, key: bytes) -> "Signer":
        """Return the signer of the cluster with this key (State.mac_key), which is made at the first call."""
        from elasticq.push.signer import Signer

        with self._lock:
            if key not in self._signers:
                self._signers = {key: Signer(key)}
            return self._signers[key]

    def sign(self, key: bytes, envelope: dict[str, str]) -> tuple[str, str]:
        """Return the signature of an envelope, and the name of the certificate that it is verified with."""
        return self.signer(key).seal(envelope)
