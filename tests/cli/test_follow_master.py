"""follow-master against an API server that keeps what it was asked, over HTTP and TLS."""

import asyncio
import datetime
import ipaddress
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from elasticq.admin.app import make_app
from elasticq.admin.authenticator import Token
from elasticq.cli import main
from elasticq.cli.follow_master import AGAIN_S, LABEL, Follower, Pod
from tests.admin.member import Member, status_of
from tests.server.process import PATIENCE_S, Server

PATH = "/api/v1/namespaces/queues/pods/elasticq-1"
TOKEN = "a-token-of-the-service-account"


class Kubernetes:
    """The one call of the API that is used; refuses as the real one does."""

    def __init__(self) -> None:
        self.labels: asyncio.Queue[str | None] = asyncio.Queue()
        self.token = TOKEN
        self.is_broken = False
        app = web.Application()
        app.router.add_patch("/api/v1/namespaces/{namespace}/pods/{name}", self._patch)
        self.server = TestServer(app)

    async def _patch(self, request: web.Request) -> web.Response:
        if self.is_broken:
            return _status(500, "etcd is away")
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return _status(401, "Unauthorized")
        if request.path != PATH:
            return _status(403, f"pods {request.match_info['name']} is forbidden")
        if request.content_type != "application/merge-patch+json":
            return _status(415, "the body of the request was in an unknown format")
        document = await request.json()
        assert set(document["metadata"]["labels"]) == {LABEL}
        self.labels.put_nowait(document["metadata"]["labels"][LABEL])
        return web.json_response({"kind": "Pod"})

    async def next(self) -> str | None:
        return await asyncio.wait_for(self.labels.get(), PATIENCE_S)


def _status(status: int, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "status": "Failure", "message": message}, status=status)


@pytest.fixture
async def kubernetes() -> AsyncIterator[Kubernetes]:
    made = Kubernetes()
    await made.server.start_server()
    yield made
    await made.server.close()


@pytest.fixture
async def member() -> AsyncIterator[tuple[Member, str]]:
    """A master, and the URL of its admin port."""
    master = Member("n1")
    server = TestServer(make_app(master, Token("a-token-of-operators")))
    await server.start_server()
    yield master, str(server.make_url(""))
    await server.close()


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text(TOKEN + "\n")
    return tmp_path


def follower(admin: str, kubernetes: Kubernetes, credentials: Path, name: str = "elasticq-1") -> Follower:
    return Follower(admin, Pod(str(kubernetes.server.make_url("")), "queues", name, credentials))


async def look(one: Follower, now_s: float) -> None:
    await asyncio.to_thread(one.look, now_s)


async def test_label_follows_the_mastership(kubernetes: Kubernetes, member: Any, credentials: Path) -> None:
    master, admin = member
    one = follower(admin, kubernetes, credentials)
    await look(one, 0)
    assert await kubernetes.next() == "master"
    master.seen = status_of("n2")
    await look(one, 1)
    assert await kubernetes.next() is None


async def test_label_is_written_when_it_changes_and_again_after_a_minute(
    kubernetes: Kubernetes, member: Any, credentials: Path
) -> None:
    one = follower(member[1], kubernetes, credentials)
    for now_s in (0, 1, AGAIN_S - 1):
        await look(one, now_s)
    assert kubernetes.labels.qsize() == 1
    await look(one, AGAIN_S)
    assert kubernetes.labels.qsize() == 2


async def test_dead_member_loses_its_label(kubernetes: Kubernetes, credentials: Path, unused_tcp_port: int) -> None:
    one = follower(f"http://127.0.0.1:{unused_tcp_port}", kubernetes, credentials)
    await look(one, 0)
    assert await kubernetes.next() is None


async def test_refusal_is_told_once_and_tried_again(
    kubernetes: Kubernetes, member: Any, credentials: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = follower(member[1], kubernetes, credentials)
    kubernetes.is_broken = True
    await look(one, 0)
    await look(one, 1)
    assert capsys.readouterr().err.count("answers HTTP 500: etcd is away") == 1
    kubernetes.is_broken = False
    await look(one, 2)
    assert await kubernetes.next() == "master"


async def test_another_pod_is_not_labelled(
    kubernetes: Kubernetes, member: Any, credentials: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await look(follower(member[1], kubernetes, credentials, "other-0"), 0)
    assert "answers HTTP 403: pods other-0 is forbidden" in capsys.readouterr().err


async def test_renewed_token_is_used(kubernetes: Kubernetes, member: Any, credentials: Path) -> None:
    master, admin = member
    one = follower(admin, kubernetes, credentials)
    await look(one, 0)
    kubernetes.token = "the-next-token"
    (credentials / "token").write_text(kubernetes.token)
    master.seen = status_of("n2")
    await look(one, 1)
    assert [await kubernetes.next(), await kubernetes.next()] == ["master", None]


async def test_missing_credentials_are_told(
    kubernetes: Kubernetes, member: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await look(follower(member[1], kubernetes, tmp_path), 0)
    assert "the service account cannot be used" in capsys.readouterr().err


async def test_api_server_proves_itself_by_the_mounted_authority(
    member: Any, credentials: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trusted, key = certificate(credentials / "ca.crt", credentials / "key.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trusted, key)
    secured = Kubernetes()
    secured.server = TestServer(secured.server.app, scheme="https")
    await secured.server.start_server(ssl=context)
    one = follower(member[1], secured, credentials)
    await look(one, 0)
    assert await secured.next() == "master"
    certificate(credentials / "ca.crt", credentials / "key.pem")  # another one than the server's
    await look(one, AGAIN_S)
    await secured.server.close()
    assert "CERTIFICATE_VERIFY_FAILED" in capsys.readouterr().err
    assert secured.labels.empty()


async def test_process_labels_while_its_server_lives_and_ends_at_a_signal(
    kubernetes: Kubernetes, credentials: Path
) -> None:
    with Server() as server:
        admin = server.admin()
        command = ["--admin", admin, "--pod", "elasticq-1", "--namespace", "queues", "--credentials", str(credentials)]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "elasticq", "follow-master", *command, "--api", str(kubernetes.server.make_url(""))
        )
        assert await kubernetes.next() == "master"
    assert await kubernetes.next() is None
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0


def test_outside_of_a_pod_it_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["follow-master", "--admin", "http://127.0.0.1:1"]) == 2
    assert "give --pod and --namespace and --api" in capsys.readouterr().err


def certificate(path: Path, key_path: Path) -> tuple[Path, Path]:
    """For 127.0.0.1, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    key_path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return path, key_path
