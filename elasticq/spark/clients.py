"""The SQS clients, one for each connection and process: boto3's or the light one, with the same methods and errors.

Both clients raise ``elasticq.client.SqsError`` for an error answer, and ``elasticq.client.Unreachable`` without an
answer. If a retry can help, they retry for ``retrySeconds`` first.
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from random import uniform
from typing import Any, Final

from elasticq.client.calls import CONNECT_S_DEFAULT, READ_S_DEFAULT
from elasticq.client.credentials import Credentials
from elasticq.client.detection import is_elasticq
from elasticq.client.errors import SqsError, Unreachable
from elasticq.client.sqs import Sqs
from elasticq.spark.options import Connection, OptionError

Client = Any  # has the methods, keywords and answers of boto3's client
THROTTLED: Final = frozenset(["RequestThrottled", "ThrottlingException", "Throttling", "TooManyRequestsException"])
# Where there are other servers, one of them is asked soon. A receive may take READ_S more than its wait.
CONNECT_S: Final = 3.0
READ_S: Final = 20.0
PAUSE_S_FIRST: Final = 0.05
PAUSE_S_MAX: Final = 5.0
NO_KEY: Final = ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "NoRegionError")

_clients: dict[tuple[int, Connection], Client] = {}


def connect(connection: Connection) -> Client:
    """Return this process's client for a connection. Raise OptionError for a missing profile, key or region."""
    exact = replace(connection, client=chosen(connection))
    key = (os.getpid(), exact)  # a forked worker must not share its parent's sockets
    found = _clients.get(key)
    if found is None:
        found = _clients[key] = _light(exact) if exact.client == "light" else Boto3(exact)
    return found


def chosen(connection: Connection) -> str:
    """Return the kind of client for a connection: ``light`` or ``boto3``. Raise Unreachable."""
    if connection.client != "auto":
        return connection.client
    return "light" if on_elasticq(connection) else "boto3"


def on_elasticq(connection: Connection) -> bool:
    """Return whether the endpoint is elasticq. Raise Unreachable if it does not answer for retrySeconds.

    A process asks an endpoint once, and never asks AWS.
    """
    if not connection.servers:
        return False
    return bool(persist(lambda: _answer_of_any(connection.servers), connection.retry_seconds))


def _answer_of_any(servers: tuple[str, ...]) -> bool:
    """Return whether the first server that answers is elasticq. Raise Unreachable if none answers."""
    for server in servers[:-1]:
        try:
            return is_elasticq(server)
        except Unreachable:
            continue
    return is_elasticq(servers[-1])


def persist(
    call: Callable[[], Any],
    retry_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Any:
    """Return the call's result. Retry it after no answer, a 5xx status or throttling, for ``retry_s`` seconds.

    Raise the last error of the call. The pauses grow from 50 ms to 5 s.
    """
    give_up_at = clock() + retry_s
    pause_s = PAUSE_S_FIRST
    while True:
        try:
            return call()
        except (SqsError, Unreachable) as error:
            if not may_pass(error) or clock() + pause_s > give_up_at:
                raise
        sleep(uniform(pause_s / 2, pause_s))
        pause_s = min(2 * pause_s, PAUSE_S_MAX)


def may_pass(error: Exception) -> bool:
    """Return whether a retry of the call may succeed."""
    if isinstance(error, SqsError):
        return error.status >= 500 or error.status == 429 or error.code.rpartition(".")[2] in THROTTLED
    return isinstance(error, Unreachable)


def _light(connection: Connection) -> Sqs:
    given = Credentials(connection.access_key_id, connection.secret_access_key, connection.session_token)
    servers = connection.servers or ("",)
    several = len(servers) > 1
    try:
        clients = [
            Sqs(
                server,
                connection.region,
                given if connection.access_key_id else None,
                profile=connection.profile,
                retry_s=connection.retry_seconds,
                connect_s=CONNECT_S if several else CONNECT_S_DEFAULT,
                read_s=READ_S if several else READ_S_DEFAULT,
            )
            for server in servers
        ]
    except (LookupError, ValueError) as error:
        raise OptionError(str(error)) from error
    if len(clients) == 1:
        return clients[0]
    from elasticq.spark.anywhere import Anywhere

    return Anywhere(clients)


class Boto3:
    """boto3's SQS client, with the errors and the retries of the light client."""

    def __init__(self, connection: Connection) -> None:
        self._retry_s = connection.retry_seconds
        self._client = _boto3_client(connection)
        if len(connection.servers) > 1:
            from elasticq.client.patient import wrap

            self._client = wrap(self._client, endpoints=connection.servers, max_wait_s=self._retry_s)
            self._retry_s = 0.0  # the wrapper retries, at all servers

    def __getattr__(self, method: str) -> Callable[..., Any]:
        call = getattr(self._client, method)
        action = "".join(word.capitalize() for word in method.split("_"))

        def checked(**members: Any) -> Any:
            return persist(lambda: _answered(action, call, members), self._retry_s)

        setattr(self, method, checked)  # the next call finds the method without __getattr__
        return checked


def _boto3_client(connection: Connection) -> Any:
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise OptionError("boto3 is not installed here: pip install boto3, or option client=light") from error
    several = len(connection.servers) > 1
    try:
        session = boto3.Session(
            profile_name=connection.profile or None,
            region_name=connection.region or None,
            aws_access_key_id=connection.access_key_id or None,
            aws_secret_access_key=connection.secret_access_key or None,
            aws_session_token=connection.session_token or None,
        )
        return session.client(
            "sqs",
            endpoint_url=connection.endpoint or None,
            region_name=session.region_name or ("us-east-1" if connection.endpoint else None),
            # botocore's own attempts repeat the invocation id, by which elasticq recognises a repeated send.
            config=Config(
                retries={"mode": "standard", "total_max_attempts": 1 if several else 5},
                max_pool_connections=32,
                **({"connect_timeout": CONNECT_S, "read_timeout": READ_S} if several else {}),
            ),
        )
    except (BotoCoreError, ValueError) as error:
        raise OptionError(str(error)) from error


def _answered(action: str, call: Callable[..., Any], members: dict[str, Any]) -> Any:
    from botocore import exceptions

    try:
        return call(**members)
    except exceptions.ClientError as error:
        raise _sqs_error(action, error.response) from error
    except exceptions.BotoCoreError as error:
        if isinstance(error, (exceptions.HTTPClientError, exceptions.ConnectionError)):
            raise Unreachable(str(error)) from error
        if type(error).__name__ in NO_KEY:
            raise OptionError(f"{error}; see options accessKeyId, profile and region") from error
        raise


def _sqs_error(action: str, response: Any) -> SqsError:
    told = response.get("Error", {})
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    code = told.get("Code", "")
    kind = told.get("QueryErrorCode") or code.rpartition(".")[2]
    is_sender = told["Type"] == "Sender" if "Type" in told else status < 500
    return SqsError(action, code, kind, told.get("Message", ""), status, is_sender)
