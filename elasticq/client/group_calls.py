"""The calls of a consumer of a group: one try at a time, at one endpoint after another.

The consumer itself decides when to repeat a call, because its rights depend on the time of the call. boto3 does not
have the actions of groups. So a light client makes the calls, with the boto3 client's endpoint, region and key.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from elasticq.client.calls import Members
from elasticq.client.credentials import UNSIGNED, Credentials
from elasticq.client.endpoints import Endpoints
from elasticq.client.errors import SqsError, Unreachable
from elasticq.client.retries import Retries, is_transient
from elasticq.client.sqs import Sqs

CONNECT_S: Final = 3.0
MESSAGES_READ_S: Final = 60.0
MESSAGES_RETRY_S: Final = 30.0


class GroupCalls:
    """The calls of one consumer, which its threads may share."""

    def __init__(self, client: Any, endpoints: Iterable[str], admin: Iterable[str], verify: bool | str) -> None:
        """Prepare the calls. client: an endpoint, a light client or a boto3 client; the others are as for ``wrap``."""
        self._light: Sqs | None = None
        if isinstance(client, str):
            self._light = Sqs(client, connect_s=CONNECT_S, verify=verify)
        elif isinstance(client, Sqs):
            self._light = client
        self._given = client
        self._verify = verify
        endpoints, admin = tuple(endpoints), tuple(admin)
        self._is_many = bool(endpoints or admin)
        own = client.meta.endpoint_url if self._light is None else self._light.endpoint
        self._endpoints = Endpoints(own, endpoints, admin, verify)
        self._made: dict[tuple[str, float], tuple[Credentials, Sqs]] = {}

    @property
    def messages(self) -> Any:
        """Return the client for messages: the boto3 client, or a light client that uses all endpoints."""
        if self._light is None:
            return self._given
        return _Everywhere(self) if self._is_many else self._light

    def try_once(self, call: Callable[[Sqs], Members], read_s: float) -> Members:
        """Make one try of a call; return its answer. If there is none, the next call goes to the next endpoint.

        read_s: how long the answer may take. Raise SqsError or Unreachable if the try fails.
        """
        if self._endpoints.is_new:
            self._endpoints.learn()
        endpoint = self._endpoints.current
        try:
            return call(self._client(endpoint, read_s))
        except (Unreachable, SqsError) as failure:
            if is_transient(failure):
                self._endpoints.leave(endpoint)
                self._endpoints.learn()
            raise

    def close(self) -> None:
        """Close the connections that this object opened."""
        for _, client in list(self._made.values()):
            client.close()
        if self._light is not None and self._light is not self._given:
            self._light.close()

    def _client(self, endpoint: str, read_s: float) -> Sqs:
        """Return the client for an endpoint; a new one if the key of the boto3 client has changed."""
        if self._light is not None:
            credentials = UNSIGNED  # not used: ``at`` keeps the credentials of the light client
        else:
            credentials = _credentials_of(self._given)
        known = self._made.get((endpoint, read_s))
        if known is not None and known[0] == credentials:
            return known[1]
        if self._light is not None:
            made = self._light.at(endpoint, read_s=read_s, retry_s=0)
        else:
            region = self._given.meta.region_name
            made = Sqs(
                endpoint, region, credentials, connect_s=CONNECT_S, read_s=read_s, retry_s=0, verify=self._verify
            )
        self._made[endpoint, read_s] = credentials, made
        return made


class _Everywhere:
    """An object with the methods of the light client, which repeats a failed call at the next endpoint."""

    def __init__(self, calls: GroupCalls) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Callable[..., Members]:
        if not hasattr(Sqs, name):
            raise AttributeError(f"the light client has no method {name}")

        def call(**members: Any) -> Members:
            retries = Retries(MESSAGES_RETRY_S)
            while True:
                try:
                    return self._calls.try_once(lambda sqs: getattr(sqs, name)(**members), MESSAGES_READ_S)
                except (Unreachable, SqsError) as failure:
                    if not retries.wait(failure):
                        raise

        return call


def _credentials_of(client: Any) -> Credentials:
    """Return the current key of a boto3 client. botocore has no public name for it."""
    found = client._request_signer._credentials
    if found is None:
        return UNSIGNED
    frozen = found.get_frozen_credentials()
    return Credentials(frozen.access_key, frozen.secret_key, frozen.token or "")
