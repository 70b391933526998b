"""The signatures of notifications, as in SNS: RSA over some of their members. Clients fetch the certificate.

The key is derived from the secret that was made with the cluster. Every member therefore signs with the same key and
serves the same certificate, also after a restart or a restored backup. Nothing is stored. Deriving the key takes some
tenths of a second, so create a ``Signer`` outside of the event loop's thread.
"""

from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import blake2b, shake_256
from math import gcd, lcm
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import (
    RSAPrivateKey,
    RSAPrivateNumbers,
    RSAPublicNumbers,
    rsa_crt_dmp1,
    rsa_crt_dmq1,
    rsa_crt_iqmp,
)
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from elasticq.engine.stored.envelopes import CONFIRMATION, FAREWELL, NOTIFICATION

PRIME_BYTES: Final = 128
EXPONENT: Final = 65_537
_SMALL_PRIMES: Final = tuple(n for n in range(3, 2_000, 2) if all(n % d for d in range(3, int(n**0.5) + 1, 2)))
_TESTS: Final = 32  # rounds of Miller-Rabin; a composite number passes each round with a probability of at most 1/4
_FROM, _UNTIL = datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC)

_SIGNED_IN_CONFIRMATIONS: Final = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
SIGNED: Final = {
    NOTIFICATION: ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    CONFIRMATION: _SIGNED_IN_CONFIRMATIONS,
    FAREWELL: _SIGNED_IN_CONFIRMATIONS,
}
"""The signed members of each Type, in the order of signing. Absent members are left out."""


def text_to_sign(envelope: dict[str, Any]) -> str:
    """Return the text to sign: for each signed member a line with its name and a line with its value.

    Source: "Verifying the signatures of Amazon SNS messages" in the SNS developer guide.
    """
    names = SIGNED[envelope["Type"]]
    return "".join(f"{name}\n{envelope[name]}\n" for name in names if envelope.get(name) is not None)


class Signer:
    """The cluster's signing key.

    pem: the certificate. certificate_name: its file name, which contains a digest of the certificate.
    """

    def __init__(self, cluster_key: bytes) -> None:
        seed = blake2b(b"notification-signature", key=cluster_key, digest_size=32).digest()
        self._key = _private_key(seed)
        self.pem = _certificate(self._key, seed)
        self.certificate_name = f"SimpleNotificationService-{blake2b(self.pem, digest_size=16).hexdigest()}.pem"

    def sign(self, envelope: dict[str, Any]) -> str:
        """Return the Signature of an envelope. Use SHA-256 for SignatureVersion 2, else SHA-1."""
        digest = SHA256() if envelope.get("SignatureVersion") == "2" else SHA1()
        return b64encode(self._key.sign(text_to_sign(envelope).encode(), PKCS1v15(), digest)).decode()

    def seal(self, envelope: dict[str, Any]) -> tuple[str, str]:
        """Return the Signature of an envelope and the name of the certificate that verifies it."""
        return self.sign(envelope), self.certificate_name


def _private_key(seed: bytes) -> RSAPrivateKey:
    primes = _primes(seed)
    p = next(primes)
    q = next(each for each in primes if each != p)
    d = pow(EXPONENT, -1, lcm(p - 1, q - 1))
    public = RSAPublicNumbers(EXPONENT, p * q)
    numbers = RSAPrivateNumbers(p, q, d, rsa_crt_dmp1(d, p), rsa_crt_dmq1(d, q), rsa_crt_iqmp(p, q), public)
    # The library's check of the key holds the interpreter lock, and so blocks the event loop, for up to 0.3 s.
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


def _primes(seed: bytes) -> Iterator[int]:
    """Yield primes of 1,024 bits, derived from the seed, that RSA can use with EXPONENT."""
    highest_two_bits = 3 << (8 * PRIME_BYTES - 2)  # so the product of two primes has exactly 2,048 bits
    number = 0
    while True:
        drawn = shake_256(seed + number.to_bytes(4, "big")).digest(PRIME_BYTES)
        candidate = int.from_bytes(drawn, "big") | highest_two_bits | 1
        number += 1
        if gcd(candidate - 1, EXPONENT) == 1 and is_prime(candidate, drawn):
            yield candidate


def is_prime(number: int, seed: bytes) -> bool:
    """Return whether an odd number above 2,000 is a prime, by the Miller-Rabin test.

    The probability of error is at most 4 ** -32.
    """
    if any(number % small == 0 for small in _SMALL_PRIMES):
        return False
    twos = ((number - 1) & -(number - 1)).bit_length() - 1
    odd = (number - 1) >> twos
    for test in range(_TESTS):
        drawn = shake_256(seed + test.to_bytes(4, "big") + b"base").digest(PRIME_BYTES)
        power = pow(2 + int.from_bytes(drawn, "big") % (number - 3), odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


def _certificate(key: RSAPrivateKey, seed: bytes) -> bytes:
    """Return a self-signed certificate in PEM. It is the same bytes for the same key and seed."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(int.from_bytes(shake_256(seed + b"serial").digest(16), "big") | 1)
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
    )
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM)
