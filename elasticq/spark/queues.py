"""The search for the queues that the options name, and for their backlogs. Errors name the options to check."""

from dataclasses import dataclass
from typing import Any, Final

from elasticq.client.errors import SqsError, Unreachable
from elasticq.spark.clients import Client
from elasticq.spark.options import Queue

WHO: Final = frozenset(
    [
        "InvalidClientTokenId", "SignatureDoesNotMatch", "AccessDenied", "AccessDeniedException", "ExpiredToken",
        "InvalidAccessKeyId", "UnrecognizedClientException", "ExpiredTokenException", "MissingAuthenticationToken",
        "IncompleteSignature", "InvalidSignatureException", "MissingAuthenticationTokenException", "OptInRequired",
        "AuthFailure",
    ]
)  # fmt: skip
IN_FLIGHT_MAX: Final = 120_000  # limit of a queue on AWS and on elasticq
ABSENT: Final = frozenset(["QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "NonExistentQueue"])
COUNTS: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class QueueError(RuntimeError):
    """The error of a queue that does not exist or refuses access, or of a server that does not answer."""


@dataclass(frozen=True)
class Backlog:
    """The numbers of messages in one queue, as the server reports them."""

    visible: int
    in_flight: int
    delayed: int

    @property
    def readable(self) -> int:
        """Return how many messages a batch can receive, given the limit of messages in flight."""
        return min(self.visible, max(0, IN_FLIGHT_MAX - self.in_flight))

    @property
    def total(self) -> int:
        return self.visible + self.in_flight + self.delayed


def find_queues(client: Client, options: Queue) -> list[str]:
    """Return the URLs of the queues that the options name. Raise QueueError if they cannot be found."""
    wanted = options.queue_url or options.queue_name or options.queue_prefix
    try:
        if options.queue_url:
            return [options.queue_url]
        if options.queue_name:
            return [client.get_queue_url(QueueName=options.queue_name)["QueueUrl"]]
        return _with_prefix(client, options.queue_prefix)
    except (SqsError, Unreachable) as error:
        raise explained(error, wanted, options.endpoint) from error


def _with_prefix(client: Client, prefix: str) -> list[str]:
    found: list[str] = []
    members: dict[str, Any] = {"QueueNamePrefix": prefix, "MaxResults": 1000}
    while True:
        answer = client.list_queues(**members)
        found += answer.get("QueueUrls") or []
        if not answer.get("NextToken"):
            return sorted(found)
        members["NextToken"] = answer["NextToken"]


def backlog_of(client: Client, queue_url: str, endpoint: str) -> Backlog:
    """Return the backlog of a queue. Raise QueueError if the server does not report it."""
    try:
        counted = client.get_queue_attributes(QueueUrl=queue_url, AttributeNames=list(COUNTS))["Attributes"]
    except (SqsError, Unreachable) as error:
        raise explained(error, queue_url, endpoint) from error
    return Backlog(*(int(counted.get(name, 0)) for name in COUNTS))


def explained(error: Exception, wanted: str, endpoint: str) -> Exception:
    """Return a QueueError that names the options to check. Return an error of another kind unchanged."""
    where = endpoint or "AWS"
    if isinstance(error, Unreachable):
        return QueueError(f"{where} does not answer: {error}; see options endpoint, region and retrySeconds")
    if isinstance(error, SqsError):
        if error.type in ABSENT or error.code in ABSENT:
            return QueueError(f"queue {wanted!r} does not exist at {where}; see options queueName, queueUrl and region")
        if error.type in WHO or error.status in (401, 403):
            return QueueError(
                f"{where} refuses the credentials for queue {wanted!r}: {error.code}: {error.message};"
                " see options accessKeyId, secretAccessKey and profile"
            )
        return QueueError(f"queue {wanted!r} at {where}: {error}")
    return error
