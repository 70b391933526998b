"""SIGHUP has certificates, keys and secrets read anew, and no connection that is up notices."""

import logging
import os
import pty
import signal
import socket
import ssl
import subprocess
import sys
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from cryptography import x509

from elasticq.server.renewal import Part, renew
from elasticq.server.settings import SettingsError
from tests.peers.test_tls import Authority
from tests.server.process import PATIENCE_S, Server

LOGGER = "elasticq.server.renewal"
UNREAD = "not_renewed: SIGHUP came, but the old files stay in use: auth.keys_file /etc/keys cannot be read"


def broken() -> None:
    raise SettingsError("auth.keys_file /etc/keys cannot be read")


@pytest.mark.parametrize(
    ("failing", "working", "told"),
    [
        (0, 0, ["renewed: SIGHUP came, but no setting names a file with a secret."]),
        (0, 2, ["renewed: SIGHUP came, and these were read again: part 1, part 2."]),
        (1, 0, [UNREAD]),
        (1, 1, [UNREAD, "renewed: SIGHUP came, and these were read again: part 1."]),
    ],
)
def test_one_line_tells_what_was_read_and_one_each_what_was_not(
    failing: int, working: int, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    done: list[int] = []
    parts = [Part("broken", broken)] * failing
    parts += [Part(f"part {number}", lambda number=number: done.append(number)) for number in range(1, working + 1)]
    with caplog.at_level(logging.INFO, LOGGER):
        renew(parts)
    assert [record.getMessage() for record in caplog.records] == told
    assert done == list(range(1, working + 1)), "one that fails keeps no other one back"


def until_said(server: Server, *words: str) -> str:
    """The next line of its log that has these words."""
    assert server.process.stderr is not None
    for line in server.process.stderr:
        if all(word in line for word in words):
            return str(line)
    raise AssertionError(f"it ended without saying {words}")


def admin_url(server: Server) -> str:
    assert server.process.stdout is not None
    return next(line for line in server.process.stdout if line.startswith("admin listening")).split()[-1]


def serial(url: str, context: ssl.SSLContext) -> int:
    """The serial number of the certificate that the server shows."""
    host, port = url.removeprefix("https://").split(":")
    with (
        socket.create_connection((host, int(port)), PATIENCE_S) as plain,
        context.wrap_socket(plain) as connection,
    ):
        shown = connection.getpeercert(binary_form=True)
    assert shown is not None
    return x509.load_der_x509_certificate(shown).serial_number


def asked(connection: HTTPConnection) -> str:
    connection.request("GET", "/health")
    return connection.getresponse().read().split()[0].decode()


def test_certificates_of_both_ports_change_under_connections_that_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path, "ca")
    files = authority.settings("server")
    for section in ("HTTP", "ADMIN"):
        for name in ("tls_cert", "tls_key"):
            monkeypatch.setenv(f"ELASTICQ_{section}__{name.upper()}", files[name])
    context = ssl.create_default_context(cafile=files["tls_ca"])
    context.check_hostname = False
    with Server() as server:
        urls = [server.url, admin_url(server)]
        up = [HTTPSConnection(url.removeprefix("https://"), timeout=PATIENCE_S, context=context) for url in urls]
        sockets = []
        for connection in up:
            assert asked(connection) == "OK"
            sockets.append(connection.sock)
        first = [serial(url, context) for url in urls]
        assert first[0] == first[1]

        authority.settings("server")  # writes another certificate, and its key, in the place of the first
        server.process.send_signal(signal.SIGHUP)
        assert "these were read again: http.tls_cert, admin.tls_cert." in until_said(server, "renewed: ")
        second = [serial(url, context) for url in urls]
        assert second[0] == second[1] != first[0]

        Path(files["tls_key"]).write_text("no key")
        server.process.send_signal(signal.SIGHUP)
        for section in ("http", "admin"):
            assert files["tls_key"] in until_said(server, "not_renewed: ", f"{section}.tls_cert")
        assert [serial(url, context) for url in urls] == second

        for connection, before in zip(up, sockets, strict=True):
            assert asked(connection) == "OK"
            assert connection.sock is before, "it was not opened anew"
        assert server.stop() == 0


def closed(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def keys(secret: str) -> str:
    return f'[[keys]]\naccess_key_id = "AKIDEXAMPLE"\nsecret_access_key = "{secret}"\n'


def test_keys_and_the_operators_token_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys_file = closed(tmp_path / "keys.toml", keys("the-first-secret"))
    token_file = closed(tmp_path / "token", "the-first-token-of-all")
    monkeypatch.setenv("ELASTICQ_ADMIN__TOKEN_FILE", token_file)
    with Server("--auth", "strict", "--keys-file", keys_file) as server:
        admin = admin_url(server).removeprefix("http://")

        def lists(secret: str) -> bool:
            client: Any = boto3.client(
                "sqs",
                endpoint_url=server.url,
                region_name="us-east-1",
                aws_access_key_id="AKIDEXAMPLE",
                aws_secret_access_key=secret,
            )
            try:
                client.list_queues()
            except ClientError as error:
                return error.response["Error"]["Code"] != "SignatureDoesNotMatch"
            return True

        def looks(token: str) -> int:
            connection = HTTPConnection(admin, timeout=PATIENCE_S)
            connection.request("GET", "/cluster", headers={"Authorization": f"Bearer {token}"})
            return connection.getresponse().status

        assert (lists("the-first-secret"), lists("the-next-secret")) == (True, False)
        assert (looks("the-first-token-of-all"), looks("the-next-token-of-all")) == (200, 401)
        closed(tmp_path / "keys.toml", keys("the-next-secret"))
        closed(tmp_path / "token", "the-next-token-of-all")
        server.process.send_signal(signal.SIGHUP)
        assert "again: admin.token_file, auth.keys_file." in until_said(server, "renewed: ")
        assert (lists("the-first-secret"), lists("the-next-secret")) == (False, True)
        assert (looks("the-first-token-of-all"), looks("the-next-token-of-all")) == (401, 200)

        closed(tmp_path / "keys.toml", "[[keys")
        (tmp_path / "token").chmod(0o644)
        server.process.send_signal(signal.SIGHUP)
        assert "open to other users" in until_said(server, "not_renewed: ", token_file)
        assert "the-next" not in until_said(server, "not_renewed: ", keys_file)
        assert (lists("the-next-secret"), looks("the-next-token-of-all")) == (True, 200)


def test_server_without_such_files_lives_on_and_says_so() -> None:
    with Server() as server:
        server.process.send_signal(signal.SIGHUP)
        until_said(server, "renewed: ", "no setting names a file")
        assert asked(HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)) == "OK"
        assert server.stop() == 0


def test_server_at_a_terminal_stops_in_good_order_when_that_is_closed() -> None:
    master, terminal = pty.openpty()
    command = [sys.executable, "-m", "elasticq", "--memory", "--port", "0", "--admin-port", "-1"]
    process = subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.communicate()
        os.close(master)
        os.close(terminal)
