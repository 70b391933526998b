"""Counts and times of the calls of this member's clients, for the operators' port.

Every request is counted here, so the goal is 0.3 us a request (scripts/bench metrics). There are plain integers in
closures, one closure per kind of action. No object is made per request, and URLs are parsed only when metrics are read.
A call that is faster than the first bound costs one addition.

Measured: 0.35 us for a send or delete and 0.40 us for a receive. That was on a virtual machine where reading the clock
takes 0.066 us, and a duration needs two readings.
"""

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, Final

from elasticq.model.histogram import Histogram
from elasticq.model.limits import REMEMBERED_CHARS_MAX, WAIT_S_MAX
from elasticq.model.names import neighbour, queue_path
from elasticq.model.topic_results import PublishCounts

BOUNDS_S: Final[tuple[float, ...]] = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    25.0,
)
LAG_BOUNDS_S: Final[tuple[float, ...]] = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
QUEUES_MAX: Final = 20_000
"""Queues that are counted separately. All others are counted together."""
SPELLINGS_MAX: Final = 32_768
"""URLs that are remembered, each with the account of its caller."""

Count = Callable[[Any, str, Any, float], bool]
"""A function of command, owner (names.py), result and start (perf_counter) of a successful call.

It returns whether the call was slow.
"""
Read = Callable[[], tuple[int, float]]
Slow = Callable[[float], bool]


class Messages:
    """The counts of one queue's messages, from the calls that this member answered."""

    __slots__ = ("deleted", "empty", "received", "sent")

    def __init__(self) -> None:
        self.sent = 0
        self.received = 0
        self.deleted = 0
        self.empty = 0  # empty receives


class Published:
    """The counts of one topic's messages, from the publishes that this member answered.

    delivered: copies stored for subscriptions or in dead-letter queues.
    filtered: copies that a filter policy refused.
    failed: copies that their endpoint did not take, including those in dead-letter queues.
    """

    def __init__(self) -> None:
        self.published = 0
        self.delivered = 0
        self.filtered = 0
        self.failed = 0

    def add(self, counts: PublishCounts) -> None:
        self.delivered += counts.delivered + counts.dead_lettered
        self.filtered += counts.filtered
        self.failed += counts.failed + counts.dead_lettered

    def plus(self, counts: PublishCounts) -> "Published":
        found = Published()
        found.published, found.delivered = self.published, self.delivered
        found.filtered, found.failed = self.filtered, self.failed
        found.add(counts)
        return found


class Meter:
    """The counters of one port's calls. ``counts`` holds, by action, the function to call for each successful
    answer."""

    def __init__(self, actions: Iterable[str], slow_s: float = 1.0) -> None:
        self.slow_s = max(slow_s, BOUNDS_S[0])
        self.errors: dict[tuple[str, str], int] = {}
        self.lag = Histogram(LAG_BOUNDS_S)
        self.times = {action: Histogram(BOUNDS_S) for action in actions}
        self.counts: dict[str, Count] = {}
        self._urls = _Urls()
        self._topics: dict[tuple[str, str], Published] = {}
        self._reads: dict[str, Read] = {}
        for action, times in self.times.items():
            self.counts[action], self._reads[action] = self._counter(action, self._slow(times))

    def failed(self, action: str, code: str) -> None:
        """Count an error. Actions and codes come from our own lists, so there are few pairs."""
        key = action, code
        self.errors[key] = self.errors.get(key, 0) + 1

    def read(self) -> dict[str, Histogram]:
        """Return the durations of successful calls by action."""
        whole = {}
        for action, times in self.times.items():
            fast, fast_s = self._reads[action]()
            histogram = whole[action] = Histogram(BOUNDS_S)
            histogram.counts = times.counts.copy()
            histogram.counts[0] += fast
            histogram.sum = times.sum + fast_s
        return whole

    def by_queue(self) -> dict[tuple[str, str], Messages]:
        """Return the counts by (owner, name). ("", "") holds those of queues beyond QUEUES_MAX."""
        return self._urls.queues

    def by_topic(self) -> dict[tuple[str, str], Published]:
        """Return the counts by (owner, name). ("", "") holds those of topics beyond QUEUES_MAX."""
        return self._topics

    def forget(self, exists: Callable[[tuple[str, str]], bool]) -> None:
        """Drop the counts of queues that do not exist any more, if there are many counts."""
        self._urls.forget(exists)

    def _counter(self, action: str, slow: Slow) -> tuple[Count, Read]:
        if action in ("Publish", "PublishBatch", "DeleteTopic"):
            return _of_topic(action, self._topics, _plain(self._urls, slow, self.slow_s))
        kind = _KINDS.get(action, _plain)
        return kind(self._urls, slow, self.slow_s)

    def _slow(self, times: Histogram) -> Slow:
        observe, slow_s = times.observe, self.slow_s

        def slow(took_s: float) -> bool:
            observe(took_s)
            return took_s > slow_s

        return slow


class _Urls:
    """The counts of queues by QueueUrl as clients write it. All spellings of a URL share one object.

    The meaning of a URL depends on the caller's region and account, so URL and caller are remembered together. URLs
    that are longer than necessary are not remembered.
    """

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], Messages] = {}
        self.queues: dict[tuple[str, str], Messages] = {}

    def of(self, url: str | None, account: str) -> Messages:
        """Return the counts of a URL that is not remembered."""
        url = url or ""
        key = queue_path(url, account)
        found = self.queues.get(key)
        if found is None:
            if len(self.queues) >= QUEUES_MAX:
                key = "", ""
            found = self.queues.setdefault(key, Messages())
        if len(url) <= REMEMBERED_CHARS_MAX and url.isascii():
            if len(self.known) >= SPELLINGS_MAX:
                self.known.clear()
            self.known[url, account] = found
        return found

    def deleted(self, url: str | None, account: str) -> None:
        """Drop the counts of a deleted queue under every spelling, so that short-lived queues do not fill the table."""
        if self.queues.pop(queue_path(url or "", account), None) is not None:
            self.known.clear()

    def forget(self, exists: Callable[[tuple[str, str]], bool]) -> None:
        """Drop the counts of queues that do not exist any more, if half of the table is full."""
        if len(self.queues) >= QUEUES_MAX // 2:
            self.queues = {key: found for key, found in self.queues.items() if exists(key)}
            self.known.clear()


# These functions repeat lines on purpose: one more function call would cost a tenth of the whole budget.


def _plain(urls: _Urls, slow: Slow, slow_s: float) -> tuple[Count, Read]:
    fast, fast_s, fast_max_s = 0, 0.0, BOUNDS_S[0]

    def count(command: Any, account: str, result: Any, began_s: float) -> bool:
        nonlocal fast, fast_s
        took_s = perf_counter() - began_s
        if took_s <= fast_max_s:
            fast += 1
            fast_s += took_s
            return False
        return slow(took_s)

    return count, lambda: (fast, fast_s)


def _sent(urls: _Urls, slow: Slow, slow_s: float) -> tuple[Count, Read]:
    known, fast, fast_s, fast_max_s = urls.known, 0, 0.0, BOUNDS_S[0]

    def count(command: Any, account: str, result: Any, began_s: float) -> bool:
        nonlocal fast, fast_s
        took_s = perf_counter() - began_s
        try:
            known[command.queue_url, account].sent += 1
        except KeyError:
            urls.of(command.queue_url, account).sent += 1
        if took_s <= fast_max_s:
            fast += 1
            fast_s += took_s
            return False
        return slow(took_s)

    return count, lambda: (fast, fast_s)


def _deleted(urls: _Urls, slow: Slow, slow_s: float) -> tuple[Count, Read]:
    known, fast, fast_s, fast_max_s = urls.known, 0, 0.0, BOUNDS_S[0]

    def count(command: Any, account: str, result: Any, began_s: float) -> bool:
        nonlocal fast, fast_s
        took_s = perf_counter() - began_s
        try:
            known[command.queue_url, account].deleted += 1
        except KeyError:
            urls.of(command.queue_url, account).deleted += 1
        if took_s <= fast_max_s:
            fast += 1
            fast_s += took_s
            return False
        return slow(took_s)

    return count, lambda: (fast, fast_s)


def _received(urls: _Urls, slow: Slow, slow_s: float) -> tuple[Count, Read]:
    """Return a counter of receives. A long poll is slow if it took longer than its wait time plus ``slow_s``."""
    known, fast, fast_s, fast_max_s = urls.known, 0, 0.0, BOUNDS_S[0]

    def count(command: Any, account: str, result: Any, began_s: float) -> bool:
        nonlocal fast, fast_s
        took_s = perf_counter() - began_s
        try:
            messages = known[command.queue_url, account]
        except KeyError:
            messages = urls.of(command.queue_url, account)
        if found := len(result.messages):
            messages.received += found
        else:
            messages.empty += 1
        if took_s <= fast_max_s:
            fast += 1
            fast_s += took_s
            return False
        wait_s = command.wait_time_seconds
        return slow(took_s) and took_s > slow_s + (WAIT_S_MAX if wait_s is None else wait_s)

    return count, lambda: (fast, fast_s)


def _waiting(urls: _Urls, slow: Slow, slow_s: float) -> tuple[Count, Read]:
    """Return a counter of calls that may wait. One is slow if it took longer than its wait time plus ``slow_s``."""
    count_call, read = _plain(urls, slow, slow_s)

    def count(command: Any, account: str, result: Any, began_s: float) -> bool:
        took_s = perf_counter() - began_s
        return count_call(command, account, result, began_s) and took_s > slow_s + (command.wait_time_seconds or 0)

    return count, read


def _batch_sent(urls: _Urls, slow: Slow, slow_s: float) -> tuple[Count, Read]:
    """Return a counter of batches. It counts the entries that succeeded."""
    count_call, read = _plain(urls, slow, slow_s)

    def count(command: Any, account: str, result: Any, began_s: float) -> bool:
        messages = urls.known.get((command.queue_url, account)) or urls.of(command.queue_url, account)
        messages.sent += len(result.successful)
        return count_call(command, account, result, began_s)

    return count, read


def _batch_deleted(urls: _Urls, slow: Slow, slow_s: float) -> tuple[Count, Read]:
    count_call, read = _plain(urls, slow, slow_s)

    def count(command: Any, account: str, result: Any, began_s: float) -> bool:
        messages = urls.known.get((command.queue_url, account)) or urls.of(command.queue_url, account)
        messages.deleted += len(result.successful)
        return count_call(command, account, result, began_s)

    return count, read


def _queue_deleted(urls: _Urls, slow: Slow, slow_s: float) -> tuple[Count, Read]:
    count_call, read = _plain(urls, slow, slow_s)

    def count(command: Any, account: str, result: Any, began_s: float) -> bool:
        urls.deleted(command.queue_url, account)
        return count_call(command, account, result, began_s)

    return count, read


def _of_topic(action: str, topics: dict[tuple[str, str], Published], plain: tuple[Count, Read]) -> tuple[Count, Read]:
    """Return a counter of publishes by topic. DeleteTopic drops the counts of its topic."""
    count_call, read = plain

    def key_of(command: Any, account: str) -> tuple[str, str]:
        arn = command.topic_arn
        if arn is None:
            arn = command.target_arn
        parts = (arn or "").split(":")
        return neighbour(parts[4], account), parts[-1]

    def count(command: Any, account: str, result: Any, began_s: float) -> bool:
        key = key_of(command, account)
        if key not in topics and len(topics) >= QUEUES_MAX:
            key = "", ""
        found = topics.setdefault(key, Published())
        found.published += len(result.successful) if action == "PublishBatch" else 1
        found.add(result.counts)
        return count_call(command, account, result, began_s)

    def forget(command: Any, account: str, result: Any, began_s: float) -> bool:
        topics.pop(key_of(command, account), None)
        return count_call(command, account, result, began_s)

    return (forget if action == "DeleteTopic" else count), read


_KINDS: Final[dict[str, Callable[[_Urls, Slow, float], tuple[Count, Read]]]] = {
    "SendMessage": _sent,
    "SendMessageBatch": _batch_sent,
    "ReceiveMessage": _received,
    "DeleteMessage": _deleted,
    "DeleteMessageBatch": _batch_deleted,
    "DeleteQueue": _queue_deleted,
    "ElasticqHeartbeat": _waiting,
}
