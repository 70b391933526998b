"""Owners of queues, queue names, queue URLs and ARNs.

A queue is found by its owner and its name. An owner is an account, 12 digits,
and behind it ``/region`` where the queue is of another region than
``node.region``: "000000000000", "000000000000/eu-west-1" (docs/adr/0024).

A QueueUrl is read by its last two path parts only, whatever host it names:
old AWS forms, another member's address and a bare queue name all work, and no
URL is ever fetched.
"""

import re
from functools import lru_cache
from typing import Final

from elasticq.model.limits import REMEMBERED_CHARS_MAX

QUEUE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}\Z")
FIFO_QUEUE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,75}\.fifo\Z")
FIFO_SUFFIX: Final = ".fifo"
QUEUE_ARN: Final = re.compile(r"arn:[a-z-]+:sqs:[a-z0-9-]*:([0-9]{12}):([A-Za-z0-9_-]{1,80}(?:\.fifo)?)\Z")
ACCOUNT: Final = re.compile(r"[0-9]{12}\Z")
ACCOUNT_CHARS: Final = 12
REGION: Final = re.compile(r"[a-z0-9-]{1,32}\Z")
DEFAULT_ACCOUNT: Final = "000000000000"
DEFAULT_REGION: Final = "us-east-1"
ANONYMOUS: Final = "anonymous"
"""The principal of a call without an access key id."""


def has_fifo_suffix(name: str) -> bool:
    """Whether a queue of this name, or URL, is a FIFO queue: such a queue, and no other, has a name that ends so."""
    return name.endswith(FIFO_SUFFIX)


def owner_in(account: str, region: str) -> str:
    """The owner of the account's queues in a region; ``region`` is empty for the node's own."""
    return f"{account}/{region}" if region else account


def account_of(owner: str) -> str:
    return owner[:ACCOUNT_CHARS]


def region_of(owner: str, own_region: str) -> str:
    """The region of an owner's queues; ``own_region``: ``node.region``."""
    return owner[ACCOUNT_CHARS + 1 :] or own_region


def neighbour(account: str, owner: str) -> str:
    """The owner of another account's queues in the region of ``owner``."""
    return account + owner[ACCOUNT_CHARS:]


def queue_url(endpoint: str, owner: str, name: str) -> str:
    """``http://host:port/<account>/<name>``; ``endpoint`` has no trailing slash.

    The region is not part of it, as some clients read a URL of other parts as none of SQS: it is the caller's.
    """
    return f"{endpoint}/{account_of(owner)}/{name}"


def queue_path(url: str, caller: str) -> tuple[str, str]:
    """(owner, name) of the queue that a caller, an owner too, means by a QueueUrl; a bare name is one of its own.

    Nothing is checked against what exists: an odd URL yields a name that no
    queue has.
    """
    if len(url) > REMEMBERED_CHARS_MAX:
        return _queue_path.__wrapped__(url, caller)
    return _queue_path(url, caller)


@lru_cache(maxsize=4_096)  # clients name the same few queues again and again
def _queue_path(url: str, caller: str) -> tuple[str, str]:
    parts = url.rstrip("/").rsplit("/", 2)
    if len(parts) >= 2 and ACCOUNT.match(parts[-2]):
        return neighbour(parts[-2], caller), parts[-1]
    return caller, parts[-1]


def queue_arn(own_region: str, owner: str, name: str) -> str:
    return f"arn:aws:sqs:{region_of(owner, own_region)}:{account_of(owner)}:{name}"


def parse_queue_arn(arn: object, owner: str) -> tuple[str, str] | None:
    """(owner, name) of a queue's ARN, taken to be of the region of ``owner``; None for anything else."""
    match = QUEUE_ARN.match(arn) if isinstance(arn, str) else None
    return (neighbour(match[1], owner), match[2]) if match is not None else None


def arn_region(arn: str) -> str:
    """The region that a queue's ARN names, empty where it names none."""
    return arn.split(":", 4)[3]


# --- topics ----------------------------------------------------------------------------

TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,256}\Z")
FIFO_TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,251}\.fifo\Z")


def is_topic_name(name: str, *, is_fifo: bool) -> bool:
    return (FIFO_TOPIC_NAME.match(name) if is_fifo else TOPIC_NAME.match(name)) is not None


INNER: Final = "~topics"
"""Stands in the place of a region in the owner of queues that hold what is delivered to subscriptions other than
queues. No signature names such a region, so that no call reaches them as queues."""


def topic_arn(own_region: str, owner: str, name: str) -> str:
    return f"arn:aws:sns:{region_of(owner, own_region)}:{account_of(owner)}:{name}"


def inner_owner(owner: str) -> str:
    """The owner of the queues in which messages wait for subscriptions of ``owner`` that are no queues."""
    return f"{account_of(owner)}/{INNER}"


def is_inner(owner: str) -> bool:
    """Whether the queues of this owner belong to subscriptions: nobody is shown these, as they hold secrets."""
    return owner[ACCOUNT_CHARS + 1 :] == INNER
