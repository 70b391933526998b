"""Which queues and subscriptions need attention, since when, and when they do no more."""

from typing import Any

from elasticq.admin.attention.finding import FINDINGS_MAX, NOTE, WARNING, Finding
from elasticq.admin.attention.queues import (
    FAILING_MS,
    GROWING_MS,
    HELD_MS_MAX,
    QUIET_MS,
    QUIET_WARNING_MS,
    QueueWatch,
    Totals,
)
from elasticq.admin.subscriptions import SubscriptionCounts
from elasticq.engine.views.condition import Held, QueueCondition
from elasticq.engine.views.figures import QueueFigures
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION

NOW_MS = 1_800_000_000_000
PATH = f"/queues/{DEFAULT_ACCOUNT}"


class Watched:
    """A watch, its clock, and what it looks at in each round."""

    def __init__(self) -> None:
        self.watch = QueueWatch(DEFAULT_REGION)
        self.now_ms = NOW_MS
        self.is_master = True
        self.round()

    def round(self, *looked_at: QueueCondition | SubscriptionCounts, after_ms: int = 2_000) -> list[Finding]:
        self.now_ms += after_ms
        self.watch.begin(self.now_ms, is_master=self.is_master)
        for each in looked_at:
            if isinstance(each, QueueCondition):
                self.watch.look(each)
            else:
                self.watch.look_at_subscription(each)
        self.watch.end(7)
        return self.watch.findings

    def kinds(self, *looked_at: QueueCondition | SubscriptionCounts, after_ms: int = 2_000) -> list[str]:
        return [each.kind for each in self.round(*looked_at, after_ms=after_ms)]


def queue(name: str = "jobs", visible: int = 0, in_flight: int = 0, delayed: int = 0, **changes: Any) -> QueueCondition:
    sources = changes.pop("sources", [])
    figures = QueueFigures(DEFAULT_ACCOUNT, name, visible, in_flight, delayed, changes.pop("oldest_ms", NOW_MS))
    figures.is_dead_letter_queue = bool(sources)
    given = {"visibility_ms": 30_000, "dead_letters_to": None, "held": [], "often": [], "consumers": 1} | changes
    return QueueCondition(figures, sources=sources, **given)


def held(received_ms: int, *, group: str | None = None, behind: int = 0, count: int = 1) -> Held:
    return Held(5, group, received_ms - 9, received_ms, received_ms + 3_600_000, count, behind)


def test_a_healthy_queue_needs_nothing() -> None:
    watched = Watched()
    assert watched.round(queue(visible=5, in_flight=2, held=[held(NOW_MS)])) == []
    assert watched.watch.totals == Totals(7, 5, 2, 0, NOW_MS)


def test_totals_add_up_and_begin_anew() -> None:
    watched = Watched()
    watched.round(queue(visible=5, oldest_ms=NOW_MS - 5), queue("more", 1, 2, 3, oldest_ms=None))
    assert watched.watch.totals == Totals(7, 6, 2, 3, NOW_MS - 5)
    watched.round()
    assert watched.watch.totals == Totals(7)


def test_nobody_fetches_after_a_while_and_it_gets_worse() -> None:
    watched = Watched()
    lonely = queue(visible=3, consumers=0)
    assert watched.round(lonely) == []
    [finding] = watched.round(lonely, after_ms=QUIET_MS)
    assert (finding.kind, finding.severity, finding.since_ms) == ("nobody_fetches", NOTE, NOW_MS)
    assert finding.what == "Nobody fetches the 3 messages of jobs."
    assert (finding.queue, finding.link, finding.command) == ("jobs", f"{PATH}/jobs", "elasticq queues peek jobs")
    [finding] = watched.round(lonely, after_ms=QUIET_WARNING_MS)
    assert finding.severity == WARNING
    assert watched.round(queue(visible=3, consumers=1)) == []
    assert watched.round(queue(visible=3, consumers=0, fetched_ms=watched.now_ms)) == []


def test_who_fetches_is_known_to_the_master_alone_and_counts_from_its_begin() -> None:
    watched = Watched()
    watched.is_master = False
    old = queue(visible=1, consumers=0, oldest_ms=NOW_MS - 3_600_000)
    assert watched.round(old, after_ms=QUIET_MS * 2) == []
    watched.is_master = True
    assert watched.round(old) == []
    assert watched.kinds(old, after_ms=QUIET_MS) == ["nobody_fetches"]


def test_delayed_messages_wait_for_nobody() -> None:
    watched = Watched()
    assert watched.round(queue(delayed=9, consumers=0, oldest_ms=None), after_ms=QUIET_MS * 2) == []


def test_dead_letters_are_told_while_there_are_some_and_warn_while_they_grow() -> None:
    watched = Watched()
    [finding] = watched.round(queue("dead", visible=1, sources=["jobs", "more"], consumers=0))
    since_ms = watched.now_ms
    assert (finding.kind, finding.severity, finding.since_ms) == ("dead_letters", WARNING, since_ms)
    assert finding.what == "1 message in the dead-letter queue dead, and more arrive."
    assert finding.cause == "Consumers of jobs, more received them too often without a delete."
    assert finding.command == "elasticq queues redrive dead"
    [finding] = watched.round(queue("dead", visible=1, sources=["jobs"], consumers=0), after_ms=GROWING_MS)
    assert (finding.severity, finding.since_ms) == (NOTE, since_ms)
    [finding] = watched.round(queue("dead", visible=2, sources=["jobs"], consumers=0))
    assert (finding.severity, finding.since_ms) == (WARNING, since_ms)
    assert watched.round() == []
    [finding] = watched.round(queue("dead", visible=2, sources=["jobs"], consumers=0))
    assert finding.since_ms == watched.now_ms, "it was empty in between"


def test_a_message_is_stuck_if_it_is_held_beyond_the_visibility_timeout() -> None:
    watched = Watched()
    watched.round(queue(in_flight=1, held=[held(NOW_MS)]), after_ms=27_000)
    assert watched.watch.findings == []
    [finding] = watched.round(queue(in_flight=1, held=[held(NOW_MS)]))
    assert (finding.kind, finding.severity, finding.since_ms) == ("stuck_in_flight", NOTE, NOW_MS)
    assert finding.link == f"{PATH}/jobs?state=inflight"
    assert finding.what == "1 message of jobs is stuck in flight."
    patient = queue(in_flight=1, visibility_ms=43_200_000, held=[held(NOW_MS)])
    assert watched.round(patient) == []
    [finding] = watched.round(patient, after_ms=HELD_MS_MAX)
    assert finding.severity == WARNING
    assert watched.round(queue(in_flight=1, held=[held(watched.now_ms)])) == []


def test_a_group_is_blocked_by_a_message_that_is_stuck() -> None:
    watched = Watched()
    stuck = [held(NOW_MS), held(NOW_MS + 5, group="a b", behind=4)]
    [finding] = watched.round(queue("jobs.fifo", in_flight=2, held=stuck), after_ms=32_000)
    assert (finding.kind, finding.severity, finding.group) == ("blocked_group", WARNING, "a b")
    assert finding.what == "4 messages of group a b in jobs.fifo wait behind one."
    assert finding.link == f"{PATH}/jobs.fifo/order?group=a%20b"


def test_nobody_is_blamed_for_not_fetching_what_is_blocked() -> None:
    watched = Watched()
    blocking = [held(NOW_MS, group="g", behind=4)]
    watched.round(queue("jobs.fifo", visible=4, in_flight=1, held=blocking, consumers=0))
    blocked = queue("jobs.fifo", visible=4, in_flight=1, held=blocking, consumers=0)
    assert watched.kinds(blocked, after_ms=120_000) == ["blocked_group"]
    assert watched.kinds(queue("jobs.fifo", visible=4, consumers=0)) == ["nobody_fetches"]


def test_a_message_that_is_received_again_and_again_is_poison() -> None:
    watched = Watched()
    [finding] = watched.round(queue(visible=1, often=[held(NOW_MS, count=12), held(NOW_MS, count=11)]))
    assert (finding.kind, finding.severity, finding.since_ms) == ("poison_message", WARNING, NOW_MS - 9)
    assert "received 12 times" in finding.cause
    assert "no dead-letter queue" in finding.cause
    assert finding.link == f"{PATH}/jobs?from=5"
    [finding] = watched.round(queue(visible=1, often=[held(NOW_MS, count=12, group="g", behind=1)]))
    assert (finding.kind, finding.what) == ("blocked_group", "1 message of group g in jobs waits behind one.")


def subscription(delivered: int = 0, retried: int = 0, failed: int = 0, **changes: Any) -> SubscriptionCounts:
    given = {"topic": (DEFAULT_ACCOUNT, "news"), "key": "k", "protocol": "https", "queue": ""} | changes
    return SubscriptionCounts(delivered=delivered, retried=retried, failed=failed, **given)


def test_a_subscription_fails_until_a_delivery_succeeds() -> None:
    watched = Watched()
    assert watched.round(subscription(5)) == []
    [finding] = watched.round(subscription(5, 1, waiting=2, error="the endpoint answered 500"))
    since_ms = watched.now_ms
    assert (finding.kind, finding.since_ms) == ("subscription_fails", since_ms)
    assert finding.what == "A subscription (https) of topic news fails. 2 messages wait."
    assert finding.cause == "Its web server did not accept 1 attempt: the endpoint answered 500."
    assert finding.link == f"/topics/{DEFAULT_ACCOUNT}/news"
    [finding] = watched.round(subscription(5, 2))
    assert finding.since_ms == since_ms
    assert watched.round(subscription(6, 2)) == []
    assert watched.kinds(subscription(6, 3)) == ["subscription_fails"]
    assert watched.round(subscription(6, 3), after_ms=FAILING_MS + 1) == []


def test_a_failing_subscription_counts_attempts_and_the_messages_that_were_given_up() -> None:
    """An attempt is not a message: three attempts of one message that waits are no three messages."""
    [finding] = Watched().round(subscription(0, 3, 1, waiting=1))
    assert finding.what.endswith("1 message waits.")
    assert finding.cause.startswith("Its web server did not accept 4 attempts. Given up, ")
    [finding] = Watched().round(subscription(0, failed=2, protocol="sqs", queue="jobs"))
    assert finding.cause.endswith("Given up, and lost without a dead-letter queue: 2 messages.")


def test_findings_are_bounded_and_the_gravest_stay() -> None:
    watched = Watched()
    lonely = [queue(f"q{number}", visible=1, consumers=0) for number in range(2 * FINDINGS_MAX)]
    dead = queue("dead", visible=1, sources=["jobs"])
    found = watched.round(*lonely, dead, after_ms=QUIET_MS)
    assert (len(found), found[0].kind) == (FINDINGS_MAX, "dead_letters")


def test_links_of_another_region_name_it() -> None:
    watched = Watched()
    condition = queue(visible=1, often=[held(NOW_MS, count=12)])
    condition.figures.account = f"{DEFAULT_ACCOUNT}/eu-west-1"
    [finding] = watched.round(condition)
    assert finding.link == f"{PATH}/jobs?from=5&region=eu-west-1"
