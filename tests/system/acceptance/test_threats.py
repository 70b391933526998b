"""The threats of docs/security.md against a real process; what has its test elsewhere is named there."""

import ast
import contextlib
import json
import os
import re
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.peers.test_tls import Authority
from tests.server.process import PATIENCE_S, Server
from tests.system.acceptance.raw import Endpoint

ROOT = Path(__file__).resolve().parents[3]
OWNER, STRANGER = "111111111111", "222222222222"
SECRETS = {"AKIDOWNER": "canary-secret-of-the-owner", "AKIDSTRANGER": "canary-secret-of-the-stranger"}
TOKEN = "canary-token-of-the-operators"
KEYS = f"""
[[keys]]
access_key_id = "AKIDOWNER"
secret_access_key = "{SECRETS["AKIDOWNER"]}"
account = "{OWNER}"

[[keys]]
access_key_id = "AKIDSTRANGER"
secret_access_key = "{SECRETS["AKIDSTRANGER"]}"
account = "{STRANGER}"
"""


def closed_file(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def client(url: str, key: str = "AKIDOWNER", secret: str | None = None, **more: Any) -> Any:
    return boto3.client(
        "sqs",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret or SECRETS[key],
        config=Config(retries={"total_max_attempts": 1}),
        **more,
    )


def refusal(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(ClientError) as caught:
        call()
    response = caught.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


class Strict:
    """A server with auth = strict and all it has logged."""

    def __init__(self, folder: Path, log: Path) -> None:
        keys = closed_file(folder / "keys.toml", KEYS)
        token = closed_file(folder / "token", TOKEN + "\n")
        arguments = ["--memory", "--port", "0", "--admin-port", "0", "--auth", "strict", "--keys-file", keys]
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "elasticq", *arguments],
                cwd=ROOT,
                env=os.environ | {"ELASTICQ_ADMIN__TOKEN_FILE": token},
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )
        self.log = log
        self.printed = ""
        self.url = self._listening("elasticq")
        self.admin = self._listening("admin")

    def _listening(self, what: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.printed += line
            if line.startswith(f"{what} listening on "):
                return line.split()[-1]
        raise AssertionError(self.log.read_text())


@contextmanager
def strict_server(folder: Path) -> Iterator[Strict]:
    server = Strict(folder, folder / "log")
    try:
        yield server
    finally:
        server.process.kill()
        server.process.communicate()


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Strict]:
    with strict_server(tmp_path_factory.mktemp("strict")) as server:
        yield server


@pytest.fixture
def strict_alone(tmp_path: Path) -> Iterator[Strict]:
    """For a test that ends its server."""
    with strict_server(tmp_path) as server:
        yield server


# --- unsigned or forged requests, policies -----------------------------------------------


def test_boto3_comes_in_with_its_key_and_not_with_another(strict: Strict) -> None:
    url = client(strict.url).create_queue(QueueName="signed")["QueueUrl"]
    assert url == f"{strict.url}/{OWNER}/signed"
    assert refusal(lambda: client(strict.url, secret="guessed").list_queues()) == (403, "SignatureDoesNotMatch")
    assert refusal(lambda: client(strict.url, "AKIDNOBODY", "x").list_queues()) == (403, "InvalidClientTokenId")
    for protocol in ("json", "query"):
        assert Endpoint(strict.url).call(protocol, "ListQueues", {}).error[:2] == (403, "MissingAuthenticationToken")


def test_permissions_let_a_stranger_do_what_they_say_and_no_more(strict: Strict) -> None:
    owner, stranger = client(strict.url), client(strict.url, "AKIDSTRANGER")
    url = owner.create_queue(QueueName="shared")["QueueUrl"]
    send: dict[str, str] = {"QueueUrl": url, "MessageBody": "hello"}
    assert refusal(lambda: stranger.send_message(**send)) == (403, "AccessDenied")
    owner.add_permission(QueueUrl=url, Label="senders", AWSAccountIds=[STRANGER], Actions=["SendMessage"])
    stranger.send_message(**send)
    assert refusal(lambda: stranger.receive_message(QueueUrl=url)) == (403, "AccessDenied")
    assert refusal(lambda: stranger.delete_queue(QueueUrl=url)) == (403, "AccessDenied")
    owner.remove_permission(QueueUrl=url, Label="senders")
    assert refusal(lambda: stranger.send_message(**send)) == (403, "AccessDenied")


def test_deny_wins_by_the_callers_address(strict: Strict) -> None:
    owner, stranger = client(strict.url), client(strict.url, "AKIDSTRANGER")
    url = owner.create_queue(QueueName="denied")["QueueUrl"]
    allow = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}
    deny = {**allow, "Effect": "Deny", "Condition": {"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}}
    for statements, may in (([allow], True), ([deny, allow], False)):
        policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
        owner.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
        if may:
            stranger.send_message(QueueUrl=url, MessageBody="x")
        else:
            assert refusal(lambda: stranger.send_message(QueueUrl=url, MessageBody="x")) == (403, "AccessDenied")


# --- browsers ------------------------------------------------------------------------


def test_a_page_cannot_use_the_server_and_curl_can(endpoint: Endpoint, queue_name: str) -> None:
    body = urlencode({"Action": "CreateQueue", "QueueName": queue_name}).encode()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert endpoint.request("POST", "/", body, form | headers).error[:2] == (403, "AccessDenied")
    rebound = {"Host": "evil.example", "Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}
    assert endpoint.request("POST", "/", body, form | rebound).error[:2] == (403, "AccessDenied")
    browser = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"}
    assert endpoint.request("GET", f"/?{body.decode()}", headers=browser).error[:2] == (403, "AccessDenied")
    missing = endpoint.query("GetQueueUrl", {"QueueName": queue_name})
    assert missing.error[1] == "AWS.SimpleQueueService.NonExistentQueue"
    assert endpoint.request("POST", "/", body, form).status == 200


# --- the admin port ------------------------------------------------------------------


def ask_admin(strict: Strict, path: str, **headers: str) -> tuple[int, bytes]:
    connection = HTTPConnection(strict.admin.removeprefix("http://"), timeout=PATIENCE_S)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_the_admin_port_wants_the_token(strict: Strict) -> None:
    for path in ("/cluster", "/metrics"):
        assert ask_admin(strict, path)[0] == 401
        assert ask_admin(strict, path, Authorization="Bearer guessed")[0] == 401
        assert ask_admin(strict, path, Authorization=f"Bearer {TOKEN}")[0] == 200
    assert ask_admin(strict, "/health")[0] == 200
    page = {"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example"}
    assert ask_admin(strict, "/cluster", **page)[0] == 403


def test_the_command_line_shows_the_token(strict: Strict, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "elasticq", "cluster", "status", "--admin", strict.admin]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, cwd=ROOT)
    assert (done.returncode, "admin.token_file" in done.stderr) == (1, True)
    command += ["--token-file", closed_file(tmp_path / "token", TOKEN)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, cwd=ROOT)
    assert "is master, ready" in done.stdout, done.stderr


# --- TLS and open ports -----------------------------------------------------------------


def test_both_ports_speak_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Authority(tmp_path, "ca").settings("server")
    for section in ("HTTP", "ADMIN"):
        for name in ("tls_cert", "tls_key"):
            monkeypatch.setenv(f"ELASTICQ_{section}__{name.upper()}", files[name])
    with Server() as server:
        assert server.url.startswith("https://")
        assert server.process.stdout is not None
        admin = next(line for line in server.process.stdout if line.startswith("admin listening"))
        context = ssl.create_default_context(cafile=files["tls_ca"])
        context.check_hostname = False
        for url in (server.url, admin.split()[-1]):
            connection = HTTPSConnection(url.removeprefix("https://"), timeout=PATIENCE_S, context=context)
            connection.request("GET", "/health")
            assert connection.getresponse().read().startswith(b"OK")
        queue_over_tls(server.url, context)
        refused_over_tls(server.url, context)
        assert server.stop() == 0


def queue_over_tls(url: str, context: ssl.SSLContext) -> None:
    """A hot request, one in two pieces and a long poll, on one connection."""
    connection = HTTPSConnection(url.removeprefix("https://"), timeout=PATIENCE_S, context=context)

    def call(action: str, **members: object) -> Any:
        headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}"}
        connection.request("POST", "/", json.dumps(members), headers)
        return json.loads(connection.getresponse().read())

    queue_url = call("CreateQueue", QueueName="tls")["QueueUrl"]
    assert queue_url == f"{url}/000000000000/tls"
    call("SendMessage", QueueUrl=queue_url, MessageBody="x" * 500_000)
    (message,) = call("ReceiveMessage", QueueUrl=queue_url, WaitTimeSeconds=5)["Messages"]
    assert len(message["Body"]) == 500_000
    assert call("ReceiveMessage", QueueUrl=queue_url, WaitTimeSeconds=1) == {}


def refused_over_tls(url: str, context: ssl.SSLContext) -> None:
    """An early error is told over TLS too, and plain HTTP gets nothing."""
    host, port = url.removeprefix("https://").split(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as plain, context.wrap_socket(plain) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 400")
    with socket.create_connection((host, int(port)), PATIENCE_S) as plain:
        plain.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert b"200 OK" not in plain.recv(65_536)


@pytest.mark.parametrize(
    ("arguments", "is_warned"),
    [
        (("--host", "0.0.0.0"), True),
        (("--host", "0.0.0.0", "--auth", "lax"), True),
        (("--host", "127.0.0.1"), False),
    ],
)
def test_a_port_open_to_others_without_auth_is_warned_of(arguments: tuple[str, ...], is_warned: bool) -> None:
    with Server(*arguments) as server:
        server.stop()
        assert server.process.stderr is not None
        assert ("THE SQS PORT IS OPEN" in server.process.stderr.read()) is is_warned


# --- slow clients, addresses, names, quotes -------------------------------------------------


def test_slow_clients_do_not_slow_others_down(endpoint: Endpoint) -> None:
    """A thousand heads that never end, while another client calls."""
    host, port = endpoint.netloc.split(":")
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection((host, int(port)), PATIENCE_S)) for _ in range(1_000)]
        for connection in slow:
            connection.sendall(b"POST / HTTP/1.1\r\nX-Slow: ")
        times_s = []
        for _ in range(200):
            started_s = time.perf_counter()
            assert endpoint.json("ListQueues", {"MaxResults": 1}).status == 200
            times_s.append(time.perf_counter() - started_s)
    assert statistics.quantiles(times_s, n=100)[98] < 0.5


def test_a_queue_url_with_a_foreign_host_makes_no_connection(endpoint: Endpoint, queue_name: str) -> None:
    endpoint.json("CreateQueue", {"QueueName": queue_name})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/000000000000/{queue_name}"
        for protocol in ("json", "query"):
            assert endpoint.call(protocol, "SendMessage", {"QueueUrl": url, "MessageBody": "x"}).status == 200
        with pytest.raises(BlockingIOError):
            listener.accept()


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")}


def test_queue_names_never_become_paths_and_quotes_never_become_sql(tmp_path: Path) -> None:
    """Whatever a queue is called and whatever a message says, the same files stand there, and it comes back."""
    hostile = "'); DROP TABLE messages; -- \" ` \\ %s ? :x ${x} {{x}}"
    where = ("--data-dir", str(tmp_path / "data"))
    with Server(*where) as server:
        endpoint = Endpoint(server.url)
        endpoint.json("CreateQueue", {"QueueName": "orders"})

        @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
        @given(
            st.one_of(st.text(max_size=40), st.sampled_from(["../../etc/passwd", "..", "a/../b", "a\x00b", hostile]))
        )
        def create(name: str) -> None:
            answer = endpoint.json("CreateQueue", {"QueueName": name})
            assert (answer.status == 200) == bool(re.fullmatch(r"[A-Za-z0-9_-]{1,80}", name)), (name, answer)
            gone = endpoint.json("DeleteQueue", {"QueueUrl": f"x/000000000000/{name}"})
            assert gone.status in (200, 400)

        create()
        send = {"QueueUrl": f"{server.url}/000000000000/orders", "MessageBody": hostile}
        attribute = {"DataType": "String", "StringValue": hostile}
        endpoint.json("CreateQueue", {"QueueName": "orders"})
        assert endpoint.json("SendMessage", send | {"MessageAttributes": {"a": attribute}}).status == 200
        assert [path.name for path in tmp_path.iterdir()] == ["data"]
        assert not any("passwd" in name for name in names_in(tmp_path))
        assert server.stop(signal.SIGTERM) == 0
    with Server(*where) as server:
        url = f"{server.url}/000000000000/orders"
        endpoint = Endpoint(server.url)
        received = endpoint.json("ReceiveMessage", {"QueueUrl": url, "MessageAttributeNames": ["All"]}).document
        assert received["Messages"][0]["Body"] == hostile
        assert received["Messages"][0]["MessageAttributes"]["a"]["StringValue"] == hostile


def sql_parts(statement: ast.expr) -> list[str]:
    """What is put into a statement's text at the call."""
    if isinstance(statement, ast.JoinedStr):
        return [ast.unparse(part.value) for part in statement.values if isinstance(part, ast.FormattedValue)]
    return [ast.unparse(statement)] if isinstance(statement, (ast.BinOp, ast.Call)) else []


def test_no_sql_is_made_of_what_clients_say() -> None:
    """Values are parameters. Text is put in where SQL takes none: names of our tables, modes and versions."""
    made = set()
    for path in (ROOT / "elasticq").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr[:7] == "execute":
                made.update(part for argument in node.args[:1] for part in sql_parts(argument))
    assert made <= {"table", "number + 1", "mode"}


def test_no_xml_of_clients_is_parsed_anywhere() -> None:
    """An XML bomb needs a parser: the server imports none. A client reads what the server that it asks answers."""
    parsers = re.compile(r"^\s*(?:import|from)\s+(?:xml|lxml|xmltodict|defusedxml)\b", re.MULTILINE)
    found = [path for path in (ROOT / "elasticq").rglob("*.py") if parsers.search(path.read_text())]
    assert [path for path in found if path.parent != ROOT / "elasticq" / "client"] == []


# --- secrets in logs ---------------------------------------------------------------------


def test_logs_hold_no_secret_no_body_and_no_signature(strict_alone: Strict) -> None:
    """Good calls, refused calls, broken calls; then the whole log and all that was printed is searched."""
    strict = strict_alone
    owner = client(strict.url)
    url = owner.create_queue(QueueName="orders")["QueueUrl"]
    signatures: list[str] = []
    owner.meta.events.register(
        "before-send.sqs", lambda request, **_: signatures.append(request.headers["Authorization"].decode())
    )
    owner.send_message(QueueUrl=url, MessageBody="canary-body")
    owner.receive_message(QueueUrl=url)
    refusal(lambda: owner.send_message(QueueUrl=url + "x", MessageBody="canary-body"))
    refusal(lambda: client(strict.url, secret="canary-guess").list_queues())
    endpoint = Endpoint(strict.url)
    endpoint.json_body("SendMessage", b'{"canary-body": ')
    endpoint.request("GET", "/?Action=canary-body&X-Amz-Signature=canary-signature")
    endpoint.request("POST", "/canary-body", b"canary-body", {"Authorization": "AWS4-HMAC-SHA256 canary-signature"})
    host, port = endpoint.netloc.split(":")
    for broken in (
        b"GET /canary-body HTTP/9\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET canary-body\x01\r\n\r\n",
    ):
        with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
            connection.sendall(broken)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass
    ask_admin(strict, "/cluster", Authorization="Bearer canary-guess\xff")
    strict.process.terminate()
    assert strict.process.wait(PATIENCE_S) == 0
    assert strict.process.stdout is not None
    told = strict.printed + strict.process.stdout.read() + strict.log.read_text()
    assert signatures
    for signature in signatures:
        assert signature.rpartition("=")[2] not in told
    assert "canary" not in told
    assert "AWS4" not in told
