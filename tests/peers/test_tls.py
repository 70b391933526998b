"""Mutual TLS: members of one CA link, others do not."""

import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from elasticq.peers.settings import PeerSettingsError
from tests.peers.community import Member, running
from tests.peers.conftest import LogLines

DAY = datetime.timedelta(days=1)


class Authority:
    """A CA that signs members."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.ca = folder / f"{name}-ca.pem"
        certificate = self._sign(name, self._key.public_key(), is_authority=True)
        self.ca.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def settings(self, member: str) -> dict[str, str]:
        key = ec.generate_private_key(ec.SECP256R1())
        cert_path, key_path = (self._folder / f"{self._name}-{member}.{end}" for end in ("crt", "key"))
        certificate = self._sign(member, key.public_key(), is_authority=False)
        cert_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        key_path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return {"tls_cert": str(cert_path), "tls_key": str(key_path), "tls_ca": str(self.ca)}

    def _sign(self, name: str, key: ec.EllipticCurvePublicKey, *, is_authority: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self._name)]))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + DAY)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )


@pytest.mark.parametrize("secret", [b"", b"open sesame"])
async def test_members_of_one_authority_link_and_talk(tmp_path: Path, secret: bytes) -> None:
    authority = Authority(tmp_path, "one")
    first = Member("a", secret=secret, **authority.settings("a"))
    async with running(first):
        second = Member("b", secret=secret, seeds=(first.peers.address,), **authority.settings("b"))
        async with running(second):
            await second.until_linked(first)
            await first.until_linked(second)
            sent = [bytes(2_000_000), b"small"]
            first.send(second, *sent)
            await second.until(lambda: second.frames == sent)


async def test_a_snapshot_travels_over_tls(tmp_path: Path) -> None:
    from elasticq.node.outputs import Wanted

    authority = Authority(tmp_path, "one")
    first = Member("a", **authority.settings("a"))
    source = tmp_path / "source.db"
    source.write_bytes(b"row" * 1_000_000)
    first.files.add(source, "one", 3)
    async with running(first):
        second = Member("b", seeds=(first.peers.address,), **authority.settings("b"))
        async with running(second):
            await second.until_linked(first)
            await second.peers.fetch(Wanted(first.id, 3), tmp_path / "into.db")
            assert (tmp_path / "into.db").read_bytes() == source.read_bytes()


async def test_a_member_of_another_authority_is_refused(tmp_path: Path, log: LogLines) -> None:
    first = Member("a", **Authority(tmp_path, "one").settings("a"))
    async with running(first):
        second = Member("b", seeds=(first.peers.address,), **Authority(tmp_path, "two").settings("b"))
        async with running(second):
            await log.until(lambda: log.having("reason=tls"))
            assert first.mets == second.mets == []


async def test_files_that_are_no_certificates_are_refused(tmp_path: Path) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("nothing")
    with pytest.raises(PeerSettingsError, match=r"junk\.pem"):
        Member("a", tls_cert=str(junk), tls_key=str(junk), tls_ca=str(junk))
