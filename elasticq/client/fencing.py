"""Calls about messages with a fencing token: the server refuses them when another consumer holds the resource.

The light client sends the token as members of the request. boto3 cannot send members that its model of SQS does not
have. So a hook of botocore puts the token into the header X-Elasticq-Fence, before the request is signed.
"""

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, NamedTuple

HEADER: Final = "X-Elasticq-Fence"
METHODS: Final = frozenset(
    (
        "receive_message",
        "delete_message",
        "delete_message_batch",
        "change_message_visibility",
        "change_message_visibility_batch",
    )
)
"""The methods of a client that can have a token."""
NOT_HOLDER: Final = "ElasticqNotHolder"

_HEADER: Final[ContextVar[str]] = ContextVar("elasticq-fence", default="")
"""The value of the header X-Elasticq-Fence for the call that this thread or task makes."""


class Fence(NamedTuple):
    """The right to act on one resource of a group. partition: its number in a partitioned queue, else None."""

    group: str
    token: int
    partition: int | None = None

    @property
    def members(self) -> dict[str, Any]:
        """Return the members of a request in JSON 1.0."""
        told: dict[str, Any] = {"ElasticqGroup": self.group, "ElasticqToken": self.token}
        if self.partition is not None:
            told["ElasticqPartition"] = self.partition
        return told

    @property
    def header(self) -> str:
        """Return the value of the header X-Elasticq-Fence."""
        parts = (self.group, self.token) if self.partition is None else self
        return ";".join(map(str, parts))


class Fenced:
    """A client of SQS that makes its calls about messages with one fence. All other attributes are the client's.

    These calls do not need the queue's URL. client: a light client or a boto3 client.
    """

    def __init__(self, client: Any, fence: Fence, queue_url: str) -> None:
        self._client = client
        self._fence = fence
        self._queue_url = queue_url
        self._is_boto3 = hasattr(client, "meta")
        if self._is_boto3:  # one hook serves all fences of a client
            client.meta.events.register("before-call.sqs", _add_header, unique_id="elasticq-fence")

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name not in METHODS:
            return found
        return wraps(found)(self._by_header(found) if self._is_boto3 else self._by_members(found))

    def _by_members(self, method: Callable[..., Any]) -> Callable[..., Any]:
        given = {"QueueUrl": self._queue_url, **self._fence.members}
        return lambda **members: method(**{**given, **members})

    def _by_header(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(**members: Any) -> Any:
            token = _HEADER.set(self._fence.header)
            try:
                return method(**{"QueueUrl": self._queue_url, **members})
            finally:
                _HEADER.reset(token)

        return call


def _add_header(params: dict[str, Any], **_: Any) -> None:
    header = _HEADER.get()
    if header:
        params["headers"][HEADER] = header


def is_not_holder(failure: BaseException) -> bool:
    """Return whether the server refused a call because its token is not that of the current assignment."""
    return error_code(failure) == NOT_HOLDER


def error_code(failure: BaseException) -> str:
    """Return the code of an error answer, for the light client and boto3; empty for any other failure."""
    response = getattr(failure, "response", None)
    return str(response.get("Error", {}).get("Code", "")).rpartition("#")[2] if isinstance(response, dict) else ""
