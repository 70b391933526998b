"""The counts of deliveries to one subscription."""

from msgspec import Struct


class SubscriptionCounts(Struct, frozen=True):
    """The deliveries of this member, as the master, to one subscription since the process started.

    topic: owner and name; key: the end of the subscription's ARN; queue: the name of its queue, empty for a web
    server; delivered: copies or posts that were accepted; retried: posts that failed and are retried; failed: copies
    that were refused, and posts without further retries. Failed ones are in the dead-letter queue, if there is one.
    waiting: notifications that wait for the web server; error: why the last failed one was not accepted.
    """

    topic: tuple[str, str]
    key: str
    protocol: str
    queue: str
    delivered: int
    retried: int
    failed: int
    waiting: int = 0
    error: str = ""
