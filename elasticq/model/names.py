"""Queue names, queue URLs and ARNs.

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
DEFAULT_ACCOUNT: Final = "000000000000"
DEFAULT_REGION: Final = "us-east-1"


def has_fifo_suffix(name: str) -> bool:
    """Whether a queue of this name, or URL, is a FIFO queue: such a queue, and no other, has a name that ends so."""
    return name.endswith(FIFO_SUFFIX)


def queue_url(endpoint: str, account: str, name: str) -> str:
    """``http://host:port/<account>/<name>``; ``endpoint`` has no trailing slash."""
    return f"{endpoint}/{account}/{name}"


def queue_path(url: str, default_account: str) -> tuple[str, str]:
    """(account, name) of a QueueUrl; a bare name belongs to ``default_account``.

    Nothing is checked against what exists: an odd URL yields a name that no
    queue has.
    """
    if len(url) > REMEMBERED_CHARS_MAX:
        return _queue_path.__wrapped__(url, default_account)
    return _queue_path(url, default_account)


@lru_cache(maxsize=4_096)  # clients name the same few queues again and again
def _queue_path(url: str, default_account: str) -> tuple[str, str]:
    parts = url.rstrip("/").rsplit("/", 2)
    if len(parts) >= 2 and ACCOUNT.match(parts[-2]):
        return parts[-2], parts[-1]
    return default_account, parts[-1]


def names_account(url: str) -> bool:
    """Whether a QueueUrl names an account; one that does not names a queue of the caller's own account."""
    return bool(_queue_path.__wrapped__(url, "")[0])


def queue_arn(region: str, account: str, name: str) -> str:
    return f"arn:aws:sqs:{region}:{account}:{name}"


def parse_queue_arn(arn: object) -> tuple[str, str] | None:
    """(account, name) of a queue's ARN, whatever its region; None for anything else."""
    match = QUEUE_ARN.match(arn) if isinstance(arn, str) else None
    return (match[1], match[2]) if match is not None else None
