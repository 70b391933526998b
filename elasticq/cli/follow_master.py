"""The command ``elasticq follow-master``: it labels this Kubernetes pod while its member is the master.

A service that selects the label then leads to the master (docs/adr/0013). The command runs in a second container of
the pod and asks the member's admin port. So the member itself needs no credentials of Kubernetes.
"""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from elasticq.cli.ask import BadUrl, Unreachable, ask
from elasticq.cli.exits import fail, refuse

if TYPE_CHECKING:
    from http.client import HTTPConnection

LABEL: Final = "elasticq.io/role"
MASTER: Final = "master"
CREDENTIALS: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EVERY_S: Final = 1.0
AGAIN_S: Final = 60.0
"""The label is set again after this time, because somebody may have removed it."""
TIMEOUT_S: Final = 3.0
ANSWER_BYTES_MAX: Final = 65_536


class NotLabelled(Exception):
    """A failure of the API server to set the label. The text names the reason."""


class Pod:
    """The label of one pod, set through the API server.

    credentials: the directory with token and ca.crt that kubelet mounts.
    """

    def __init__(self, api: str, namespace: str, name: str, credentials: Path) -> None:
        self._api = urlsplit(api)
        self._path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"
        self._credentials = credentials

    def label(self, value: str | None) -> None:
        """Set the label to this value, or remove it for None. Raise NotLabelled if that fails."""
        from http.client import HTTPException

        body = json.dumps({"metadata": {"labels": {LABEL: value}}})
        try:
            # The kubelet renews the token long before it expires, so it is read each time.
            token = (self._credentials / "token").read_text(encoding="ascii").strip()
            connection = self._connect()
        except (OSError, ValueError) as error:
            raise NotLabelled(f"the service account cannot be used: {error}") from error
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/merge-patch+json"}
        try:
            connection.request("PATCH", self._path, body, headers)
            answer = connection.getresponse()
            text = answer.read(ANSWER_BYTES_MAX)
        except (OSError, HTTPException) as error:
            raise NotLabelled(f"{self._api.netloc} does not answer: {error}") from error
        finally:
            connection.close()
        if answer.status != 200:
            raise NotLabelled(f"{self._api.netloc} answers HTTP {answer.status}: {_message(text)}")

    def _connect(self) -> "HTTPConnection":
        import ssl
        from http.client import HTTPConnection, HTTPSConnection

        host = self._api.hostname or ""
        if self._api.scheme == "http":
            return HTTPConnection(host, self._api.port, timeout=TIMEOUT_S)
        trusted = ssl.create_default_context(cafile=str(self._credentials / "ca.crt"))
        return HTTPSConnection(host, self._api.port, timeout=TIMEOUT_S, context=trusted)


class Follower:
    """The label that follows the member's role. ``look`` is called again and again."""

    def __init__(self, admin: str, pod: Pod) -> None:
        self._admin = admin
        self._pod = pod
        self._known: bool | None = None
        self._known_until_s = 0.0
        self._trouble = ""

    def look(self, now_s: float) -> None:
        """Ask the member once, and set the label if it must change. Raise BadUrl if ``--admin`` is not a URL."""
        is_master = self._is_master()
        if is_master is self._known and now_s < self._known_until_s:
            return
        try:
            self._pod.label(MASTER if is_master else None)
        except NotLabelled as error:
            self._print_once(str(error))
            self._known = None
            return
        if is_master is not self._known:
            print(f"elasticq: this pod is {'the master' if is_master else 'not the master'}", flush=True)
        self._known, self._known_until_s, self._trouble = is_master, now_s + AGAIN_S, ""

    def _is_master(self) -> bool:
        """Return whether the member is the master. A member that does not answer is not, as nobody can reach it."""
        try:
            return ask(self._admin, "GET", "/master", TIMEOUT_S).status == 200
        except Unreachable:
            return False

    def _print_once(self, trouble: str) -> None:
        """Print a text on stderr, unless it was the last one printed."""
        if trouble != self._trouble:
            self._trouble = trouble
            fail(trouble)


def add_follow_master(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--admin", required=True, metavar="URL", help="admin port of this pod's member")
    parser.add_argument("--pod", default=os.environ.get("POD_NAME", ""), help="the pod's name ($POD_NAME)")
    parser.add_argument(
        "--namespace", default=os.environ.get("POD_NAMESPACE", ""), help="its namespace ($POD_NAMESPACE)"
    )
    parser.add_argument("--api", default=_api(), metavar="URL", help="Kubernetes' API (from the pod's environment)")
    parser.add_argument(
        "--credentials", type=Path, default=CREDENTIALS, metavar="DIR", help="token and ca.crt of the service account"
    )
    parser.set_defaults(run=_follow)


def _api() -> str:
    """Return the API server's URL from the variables that each container has, empty outside a pod."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    return f"https://{f'[{host}]' if ':' in host else host}:{port}" if host else ""


def _follow(options: argparse.Namespace) -> int:
    """Update the label every EVERY_S until a signal comes."""
    missing = [flag for flag in ("pod", "namespace", "api") if not getattr(options, flag)]
    if missing:
        return refuse(f"not in a pod: give --{' and --'.join(missing)}")
    # Without a handler, SIGTERM does not end the first process of a container.
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    follower = Follower(options.admin, Pod(options.api, options.namespace, options.pod, options.credentials))
    try:
        while True:
            follower.look(time.monotonic())
            time.sleep(EVERY_S)
    except BadUrl as error:
        return refuse(str(error))


def _end(number: int, frame: object) -> None:
    sys.exit(0)


def _message(text: bytes) -> str:
    """Return the text in a Status answer of the API server."""
    try:
        document: Any = json.loads(text)
    except ValueError:
        return ""
    return str(document.get("message", "")) if isinstance(document, dict) else ""
