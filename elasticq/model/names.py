"""Owners of queues, queue names, queue URLs and ARNs.

Owner and name identify a queue. An owner is an account of 12 digits. If the
region of the queue is not ``node.region``, ``/region`` follows:
"000000000000", "000000000000/eu-west-1" (docs/adr/0024).

Only the last two parts of a QueueUrl's path count, and its host does not matter.
So old forms of AWS, the address of another member and a bare queue name all
work. The server never fetches a URL.
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
    """Return whether the queue with this name or URL is a FIFO queue. Only names of FIFO queues have this suffix."""
    return name.endswith(FIFO_SUFFIX)


def owner_in(account: str, region: str) -> str:
    """Return the owner of the account's queues in a region. ``region``: empty for the node's own."""
    return f"{account}/{region}" if region else account


def account_of(owner: str) -> str:
    return owner[:ACCOUNT_CHARS]


def region_of(owner: str, own_region: str) -> str:
    """Return the region of an owner's queues. ``own_region``: ``node.region``."""
    return owner[ACCOUNT_CHARS + 1 :] or own_region


def neighbour(account: str, owner: str) -> str:
    """Return the owner of another account's queues in the region of ``owner``."""
    return account + owner[ACCOUNT_CHARS:]


def queue_url(endpoint: str, owner: str, name: str) -> str:
    """Return ``http://host:port/<account>/<name>``. ``endpoint``: without a slash at the end.

    The URL does not contain the region, because some clients accept only these parts. The region is the caller's.
    """
    return f"{endpoint}/{account_of(owner)}/{name}"


def queue_path(url: str, caller: str) -> tuple[str, str]:
    """Return (owner, name) of a QueueUrl or bare name. ``caller``: the owner of the caller's queues.

    The URL is not checked: for a malformed URL, the result is a name that no queue has.
    """
    return _split(url, caller) if len(url) > REMEMBERED_CHARS_MAX else _queue_path(url, caller)


def _split(url: str, caller: str) -> tuple[str, str]:
    parts = url.rstrip("/").rsplit("/", 2)
    if len(parts) >= 2 and ACCOUNT.match(parts[-2]):
        return neighbour(parts[-2], caller), parts[-1]
    return caller, parts[-1]


_queue_path: Final = lru_cache(maxsize=4_096)(_split)  # clients repeat the names of a few queues


def queue_arn(own_region: str, owner: str, name: str) -> str:
    return f"arn:aws:sqs:{region_of(owner, own_region)}:{account_of(owner)}:{name}"


def parse_queue_arn(arn: object, owner: str) -> tuple[str, str] | None:
    """Return (owner, name) of a queue's ARN, in the region of ``owner``. None for anything else."""
    match = QUEUE_ARN.match(arn) if isinstance(arn, str) else None
    return (neighbour(match[1], owner), match[2]) if match is not None else None


def arn_region(arn: str) -> str:
    """Return the region in a queue's ARN; empty if it has none."""
    return arn.split(":", 4)[3]


# --- topics ----------------------------------------------------------------------------

TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,256}\Z")
FIFO_TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,251}\.fifo\Z")


def is_topic_name(name: str, *, is_fifo: bool) -> bool:
    return (FIFO_TOPIC_NAME.match(name) if is_fifo else TOPIC_NAME.match(name)) is not None


INNER: Final = "~topics"
"""The text that replaces the region in the owner of inner queues.

These hold messages for subscriptions that are not queues. No signature can name such a region, so no call of a client
can reach an inner queue.
"""


def topic_arn(own_region: str, owner: str, name: str) -> str:
    return f"arn:aws:sns:{region_of(owner, own_region)}:{account_of(owner)}:{name}"


def inner_owner(owner: str) -> str:
    """Return the owner of the inner queues for the subscriptions of ``owner``."""
    return f"{account_of(owner)}/{INNER}"


def is_inner(owner: str) -> bool:
    """Return whether the queues of this owner are inner queues. These contain secrets, so nobody may see them."""
    return owner[ACCOUNT_CHARS + 1 :] == INNER
