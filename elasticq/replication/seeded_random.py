"""Pseudo-random numbers from given entropy. Replication itself draws no randomness."""

from hashlib import blake2b


class SeededRandom:
    """A stream of 64-bit numbers from ``entropy``, made by blake2b in counter mode."""

    def __init__(self, entropy: bytes) -> None:
        self._entropy = entropy
        self._counter = 0

    def between(self, low: int, high: int) -> int:
        """Return an integer in [low, high]."""
        self._counter += 1
        digest = blake2b(self._counter.to_bytes(8, "big"), key=self._entropy[:64], digest_size=8).digest()
        return low + int.from_bytes(digest, "big") % (high - low + 1)

    def token(self, purpose: bytes, size_bytes: int) -> bytes:
        """Return secret bytes for ``purpose``. They are the same for the same entropy."""
        return blake2b(purpose, key=self._entropy[:64], digest_size=size_bytes).digest()
