"""Signatures of notifications, verified as a subscriber does: by the certificate."""

from base64 import b64decode

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256

from elasticq.push.signer import Signer, is_prime, text_to_sign

ENVELOPE = {
    "Type": "Notification",
    "MessageId": "m",
    "TopicArn": "arn",
    "Message": "héllo\n",
    "Timestamp": "2026-11-22T00:00:00.000Z",
    "SignatureVersion": "1",
}


def verify(signer: Signer, envelope: dict[str, str], signature: str, digest: SHA1 | SHA256) -> None:
    key = x509.load_pem_x509_certificate(signer.pem).public_key()
    assert isinstance(key, RSAPublicKey)
    key.verify(b64decode(signature), text_to_sign(envelope).encode(), PKCS1v15(), digest)


def test_what_is_signed_is_in_the_order_of_the_names() -> None:
    lines = "Message\nhéllo\n\nMessageId\nm\nTimestamp\n2026-11-22T00:00:00.000Z\nTopicArn\narn\nType\nNotification\n"
    assert text_to_sign(ENVELOPE) == lines
    with_subject = text_to_sign({**ENVELOPE, "Subject": "s", "Other": "x"})
    assert with_subject == lines.replace("Timestamp\n", "Subject\ns\nTimestamp\n")
    confirmation = {**ENVELOPE, "Type": "SubscriptionConfirmation", "SubscribeURL": "u", "Token": "t"}
    names = text_to_sign(confirmation).split("\n")[3:-1:2]
    assert names == ["MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]


def test_a_signature_verifies_by_its_version(signer: Signer) -> None:
    verify(signer, ENVELOPE, signer.sign(ENVELOPE), SHA1())
    newer = {**ENVELOPE, "SignatureVersion": "2"}
    verify(signer, newer, signer.sign(newer), SHA256())
    with pytest.raises(InvalidSignature):
        verify(signer, {**ENVELOPE, "Message": "other"}, signer.sign(ENVELOPE), SHA1())


def test_all_members_of_a_cluster_have_one_certificate_and_other_clusters_another(signer: Signer) -> None:
    assert Signer(b"k" * 32).pem == signer.pem
    other = Signer(b"l" * 32)
    assert other.pem != signer.pem
    assert other.certificate_name != signer.certificate_name
    assert signer.certificate_name.startswith("SimpleNotificationService-")


def test_the_key_has_2048_bits(signer: Signer) -> None:
    key = x509.load_pem_x509_certificate(signer.pem).public_key()
    assert isinstance(key, RSAPublicKey)
    assert (key.key_size, key.public_numbers().e) == (2_048, 65_537)


def test_primes_are_told_from_products() -> None:
    assert is_prime(2**127 - 1, b"")
    assert is_prime(2**89 - 1, b"")
    assert not is_prime((2**89 - 1) * (2**107 - 1), b"")
    assert not is_prime(2**101 - 1, b"")
    assert not is_prime(443_372_888_629_441, b"")  # a Carmichael number
