"""The decision whether and when a failed call is retried: as in the SDKs' standard mode, but with a time limit."""

from random import random
from time import monotonic, sleep
from typing import Final

from elasticq.client.errors import DigestMismatch, SqsError, Unreachable

STATUSES: Final = frozenset((429, 500, 502, 503, 504))
THROTTLING: Final = frozenset(
    (
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",
        "RequestTimeoutException",
        "SlowDown",
        "Throttling",
        "ThrottledException",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    )
)
FIRST_S: Final = 0.05
LONGEST_S: Final = 5.0


class Retries:
    """The attempts of one call, for up to ``budget_s``. The waits between them are random, and their bound doubles."""

    def __init__(self, budget_s: float) -> None:
        self._until_s = monotonic() + budget_s
        self.attempts = 0

    def wait(self, failure: Exception) -> bool:
        """Wait and return True if the call should be tried again; else return False at once."""
        pause_s = self.next_pause_s() if is_transient(failure) else None
        if pause_s is None:
            return False
        sleep(pause_s)
        return True

    def next_pause_s(self) -> float | None:
        """Count a failed attempt; return the seconds to wait before the next one, or None if the time is over."""
        self.attempts += 1
        left_s = self._until_s - monotonic()
        if left_s <= 0:
            return None
        return min(left_s, LONGEST_S, FIRST_S * (1 << min(self.attempts, 10))) * (0.5 + random() / 2)


def passes(status: int | None, *codes: str | None) -> bool:
    """Return whether a retry may help after an error answer: the server failed, was overloaded or throttled."""
    return status in STATUSES or not THROTTLING.isdisjoint(codes)


def is_transient(failure: Exception) -> bool:
    if isinstance(failure, SqsError):
        return passes(failure.status, failure.code, failure.type)
    return isinstance(failure, (Unreachable, DigestMismatch))
