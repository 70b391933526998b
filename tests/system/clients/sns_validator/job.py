"""Starts a server with TLS, as docs/topics.md shows it, for the job in JavaScript, which is the argument."""

import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
WORK = Path(os.environ["WORK"])
HOST = "localhost"
MAKE_CERTIFICATE = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={HOST}")
FILES = ("-addext", f"subjectAltName=DNS:{HOST}", "-keyout", str(WORK / "key.pem"), "-out", str(WORK / "cert.pem"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


subprocess.run([*MAKE_CERTIFICATE, *FILES], check=True, capture_output=True)
port = free_port()
url = f"https://{HOST}:{port}"
settings = {
    "ELASTICQ_ADMIN__PORT": "-1",
    "ELASTICQ_HTTP__PORT": str(port),
    "ELASTICQ_HTTP__TLS_CERT": str(WORK / "cert.pem"),
    "ELASTICQ_HTTP__TLS_KEY": str(WORK / "key.pem"),
    "ELASTICQ_HTTP__PUBLIC_URL": url,
    "ELASTICQ_PUSH__SIGN_QUEUES": "true",
    "ELASTICQ_PUSH__REFUSED_NETWORKS": "",
}
server = subprocess.Popen(
    [sys.executable, "-m", "elasticq", "server", "--memory"],
    cwd=WORK,
    env=os.environ | settings | {"PYTHONPATH": str(ROOT)},
    stdout=subprocess.PIPE,
    text=True,
)
try:
    assert server.stdout
    assert any(f"listening on https://127.0.0.1:{port}" in line for line in server.stdout), (
        "it ended before it listened"
    )
    more = {"TLS_ENDPOINT": url, "NODE_EXTRA_CA_CERTS": str(WORK / "cert.pem")}
    subprocess.run(["node", sys.argv[1]], env=os.environ | more, check=True, timeout=120)
finally:
    server.kill()
    server.wait()
