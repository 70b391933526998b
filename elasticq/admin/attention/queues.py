"""The watch over queues and subscriptions: it looks at each of them every few seconds and keeps what needs attention.

It is pure. ``begin``, a look at each queue with messages and each subscription, and ``end`` make one round. It
remembers only queues and subscriptions with trouble, so its memory is small, and each look takes O(1).
"""

from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from elasticq.admin.attention.finding import NOTE, WARNING, Finding, Severity, gravest
from elasticq.admin.history import Depth, Key
from elasticq.admin.subscriptions import SubscriptionCounts
from elasticq.engine.views.condition import Held, QueueCondition
from elasticq.engine.views.figures import QueueFigures
from elasticq.model.names import account_of, region_of

QUIET_MS: Final = 3_000
"""After this time without a receive, a queue with visible messages is noted."""
QUIET_WARNING_MS: Final = 60_000
HELD_MS_MAX: Final = 600_000
"""A message in flight for longer than this, or than its queue's visibility timeout, is stuck."""
STUCK_WARNING_MS: Final = 600_000
GROWING_MS: Final = 60_000
"""A dead-letter queue grows if a message arrived within this time."""
FAILING_MS: Final = 600_000
"""A subscription fails until a delivery succeeds, or for this time after its last failure."""
KNOWN_MAX: Final = 10_000
"""The number of queues and of subscriptions with trouble that are remembered."""


class Totals(Struct, frozen=True):
    """The messages of all queues. oldest_ms: since when the oldest one that is not delayed can be received."""

    queues: int = 0
    visible: int = 0
    in_flight: int = 0
    delayed: int = 0
    oldest_ms: int | None = None


class _Dead(Struct):
    """A dead-letter queue with messages: their number, since when, and when the last one arrived."""

    count: int
    since_ms: int
    grew_ms: int


class _Failing(Struct):
    """The counts of a subscription at the last look, since when it fails, and its last failure; 0: it does not fail."""

    delivered: int
    failures: int
    since_ms: int = 0
    failed_ms: int = 0


class QueueWatch:
    """The findings, totals and depths (of queues with messages) of the last complete round.

    Times are cluster time in ms since the epoch.
    """

    def __init__(self, region: str) -> None:
        """Prepare a watch. region: ``node.region``. Links to pages name a region only if it is another one."""
        self._region = region
        self.findings: list[Finding] = []
        self.totals = Totals()
        self.depths: dict[Key, Depth] = {}
        self._depths: dict[Key, Depth] = {}
        self._found: list[Finding] = []
        self._figures: list[QueueFigures] = []
        self._dead: dict[Key, _Dead] = {}
        self._failing: dict[str, _Failing] = {}
        self._seen: set[Key | str] = set()
        self._now_ms = 0
        self._master_ms: int | None = None
        self._counted = Totals()

    # --- a round --------------------------------------------------------------------

    def begin(self, now_ms: int, *, is_master: bool) -> None:
        """Begin a round. is_master: this member executes the calls, so it knows who receives."""
        self._now_ms, self._found, self._seen, self._counted, self._depths = now_ms, [], set(), Totals(), {}
        if not is_master:
            self._master_ms = None
        elif self._master_ms is None:
            self._master_ms = now_ms

    def look(self, condition: QueueCondition) -> None:
        """Look at one queue that has messages."""
        figures, before = condition.figures, self._counted
        self._depths[figures.account, figures.name] = figures.visible, figures.in_flight, figures.delayed
        ages_ms = [each for each in (figures.oldest_ms, before.oldest_ms) if each is not None]
        self._counted = Totals(
            0,
            before.visible + figures.visible,
            before.in_flight + figures.in_flight,
            before.delayed + figures.delayed,
            min(ages_ms, default=None),
        )
        found = [*self._stuck(condition), *self._poison(condition)]
        if figures.is_dead_letter_queue:
            found += self._dead_letters(condition)
        elif not any(each.kind == "blocked_group" for each in found):  # no receive could return the blocked messages
            found += self._unfetched(condition)
        self._found += found
        if len(self._found) > KNOWN_MAX:
            self._found = gravest(self._found)

    def look_at_subscription(self, counts: SubscriptionCounts) -> None:
        """Look at one subscription."""
        self._found += self._failures(counts)

    def end(self, queues: int) -> None:
        """End the round: publish its findings, and forget queues and subscriptions that were not looked at.

        queues: the number of all queues.
        """
        self.findings, self.totals = gravest(self._found), replace(self._counted, queues=queues)
        self.depths = self._depths
        self._dead = {key: each for key, each in self._dead.items() if key in self._seen}
        self._failing = {key: each for key, each in self._failing.items() if key in self._seen}

    # --- rules ----------------------------------------------------------------------

    def _dead_letters(self, condition: QueueCondition) -> Iterator[Finding]:
        figures = condition.figures
        key, count = (figures.account, figures.name), figures.visible + figures.in_flight + figures.delayed
        known = self._dead.get(key)
        if not count:
            return
        if known is None:
            if len(self._dead) >= KNOWN_MAX:
                return
            known = self._dead[key] = _Dead(count, self._now_ms, self._now_ms)
        if count > known.count:
            known.grew_ms = self._now_ms
        known.count = count
        self._seen.add(key)
        is_growing = self._now_ms - known.grew_ms < GROWING_MS
        sources = ", ".join(condition.sources) or "another queue"
        yield self._of(
            figures,
            "dead_letters",
            WARNING if is_growing else NOTE,
            f"{_messages(count)} in the dead-letter queue {figures.name}{', and more arrive' if is_growing else ''}.",
            f"Consumers of {sources} received them too often without a delete.",
            known.since_ms,
            f"elasticq queues redrive {figures.name}",
        )

    def _unfetched(self, condition: QueueCondition) -> Iterator[Finding]:
        figures, now_ms = condition.figures, self._now_ms
        if self._master_ms is None or not figures.visible or condition.consumers or figures.oldest_ms is None:
            return
        fetched_ms = condition.fetched_ms
        since_ms = max(figures.oldest_ms, fetched_ms or 0)
        if now_ms - max(since_ms, self._master_ms if fetched_ms is None else 0) < QUIET_MS:
            return
        last = "since this master took over" if fetched_ms is None else f"for {_duration(now_ms - fetched_ms)}"
        yield self._of(
            figures,
            "nobody_fetches",
            WARNING if now_ms - since_ms >= QUIET_WARNING_MS else NOTE,
            f"Nobody fetches the {_messages(figures.visible)} of {figures.name}.",
            f"No consumer waits, and none has called ReceiveMessage {last}.",
            since_ms,
            f"elasticq queues peek {figures.name}",
        )

    def _stuck(self, condition: QueueCondition) -> Iterator[Finding]:
        bound_ms = min(condition.visibility_ms, HELD_MS_MAX)
        stuck = [each for each in condition.held if self._now_ms - each.received_ms > bound_ms]
        if not stuck:
            return
        blocking = [each for each in stuck if each.behind and each.group is not None]
        first = min(blocking or stuck, key=_received_ms)
        figures, age_ms = condition.figures, self._now_ms - first.received_ms
        severity: Severity = WARNING if blocking or age_ms >= STUCK_WARNING_MS else NOTE
        cause = (
            f"Message {first.sequence} was received {_duration(age_ms)} ago and not deleted. "
            f"It becomes visible again in {_duration(first.until_ms - self._now_ms)}."
        )
        if blocking:
            yield self._blocked(figures, severity, first, cause)
            return
        yield self._of(
            figures,
            "stuck_in_flight",
            severity,
            f"{_messages(len(stuck))} of {figures.name} {'is' if len(stuck) == 1 else 'are'} stuck in flight.",
            cause,
            first.received_ms,
            f"elasticq queues peek {figures.name} --state inflight",
            query="state=inflight",
        )

    def _poison(self, condition: QueueCondition) -> Iterator[Finding]:
        for worst in sorted(condition.often, key=_receive_count, reverse=True)[:1]:
            figures = condition.figures
            cause = (
                f"Message {worst.sequence} was received {worst.receive_count} times and never deleted: "
                "its consumers probably fail."
            )
            if condition.dead_letters_to is None:
                cause += " The queue has no dead-letter queue: set one, or delete the message."
            if worst.behind and worst.group is not None:
                yield self._blocked(figures, WARNING, worst, cause)
                continue
            yield self._of(
                figures,
                "poison_message",
                WARNING,
                f"Queue {figures.name} has a message that nobody can process.",
                cause,
                worst.first_received_ms,
                f"elasticq queues peek {figures.name} --from {worst.sequence} -n 1",
                query=f"from={worst.sequence}",
            )

    def _blocked(self, figures: QueueFigures, severity: Severity, first: Held, cause: str) -> Finding:
        group = first.group or ""
        return self._of(
            figures,
            "blocked_group",
            severity,
            f"{_messages(first.behind)} of group {group} in {figures.name} {_wait(first.behind)} behind one.",
            cause,
            first.first_received_ms,
            f"elasticq queues peek {figures.name} --group {group}",
            page="order",
            query=f"group={quote(group)}",
            group=group,
        )

    def _failures(self, counts: SubscriptionCounts) -> Iterator[Finding]:
        failures, known, now_ms = counts.retried + counts.failed, self._failing.get(counts.key), self._now_ms
        if not failures:
            return
        if known is None:
            if len(self._failing) >= KNOWN_MAX:
                return
            known = self._failing[counts.key] = _Failing(counts.delivered, 0)
        self._seen.add(counts.key)
        if failures > known.failures:
            known.since_ms = known.since_ms or now_ms
            known.failed_ms = now_ms
        elif counts.delivered > known.delivered or now_ms - known.failed_ms > FAILING_MS:
            known.since_ms = 0
        known.delivered, known.failures = counts.delivered, failures
        if known.since_ms:
            owner, topic = counts.topic
            waiting = f" {_messages(counts.waiting)} {_wait(counts.waiting)}." if counts.waiting else ""
            yield Finding(
                kind="subscription_fails",
                severity=WARNING,
                what=f"A subscription ({counts.protocol}) of topic {topic} fails.{waiting}",
                cause=_refused(counts),
                since_ms=known.since_ms,
                link=self._path("topics", owner, topic),
                command=f"elasticq topics show {topic}",
                owner=owner,
            )

    # --- parts ----------------------------------------------------------------------

    def _of(
        self,
        figures: QueueFigures,
        kind: str,
        severity: Severity,
        what: str,
        cause: str,
        since_ms: int,
        command: str,
        *,
        page: str = "",
        query: str = "",
        group: str = "",
    ) -> Finding:
        return Finding(
            kind=kind,
            severity=severity,
            what=what,
            cause=cause,
            since_ms=since_ms,
            link=self._path("queues", figures.account, figures.name, page, query),
            command=command,
            owner=figures.account,
            queue=figures.name,
            group=group,
        )

    def _path(self, kind: str, owner: str, name: str, page: str = "", query: str = "") -> str:
        region = region_of(owner, self._region)
        queries = [query] if query else []
        if region != self._region:
            queries.append(f"region={region}")
        path = f"/{kind}/{account_of(owner)}/{quote(name)}" + (f"/{page}" if page else "")
        return f"{path}?{'&'.join(queries)}" if queries else path


def _received_ms(held: Held) -> int:
    return held.received_ms


def _receive_count(held: Held) -> int:
    return held.receive_count


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"


def _refused(counts: SubscriptionCounts) -> str:
    """Return what the subscription's target refused, why, and what became of it."""
    whom = f"queue {counts.queue}" if counts.queue else "web server"
    attempts = counts.retried + counts.failed
    error = f": {counts.error}." if counts.error else "."
    text = f"Its {whom} did not accept {attempts:,} {'attempt' if attempts == 1 else 'attempts'}{error}"
    if counts.failed:
        text += f" Given up, and lost without a dead-letter queue: {_messages(counts.failed)}."
    return text


def _wait(count: int) -> str:
    return "waits" if count == 1 else "wait"


def _duration(age_ms: int) -> str:
    """Return a duration in the largest unit that gives at least 2."""
    for unit_ms, unit in ((86_400_000, "days"), (3_600_000, "hours"), (60_000, "minutes")):
        if age_ms >= 2 * unit_ms:
            return f"{age_ms // unit_ms} {unit}"
    return f"{max(age_ms, 0) // 1_000} s"
