"""Figures as Prometheus reads them."""

import asyncio
import subprocess
import sys
from time import perf_counter
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from elasticq.admin import metrics
from elasticq.admin.metrics import expose
from elasticq.admin.subscriptions import SubscriptionCounts
from elasticq.engine.views.figures import QueueFigures
from elasticq.model.commands import ReceiveMessage, SendMessage
from elasticq.model.histogram import Histogram
from elasticq.model.results import EmptyResult, ReceiveMessageResult
from elasticq.model.topic_commands import Publish
from elasticq.model.topic_results import PublishCounts, PublishResult
from elasticq.node.settings import GroupStatus
from tests.admin.member import IDS, Member

Sample = tuple[str, frozenset[tuple[str, str]]]


async def read(member: Member) -> dict[Sample, float]:
    """Each sample by name and labels; each family must stand once."""
    text = b"".join(await expose(member)).decode()
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def sample(name: str, **labels: str) -> Sample:
    return f"elasticq_{name}", frozenset(labels.items())


def queue(name: str, **changes: Any) -> QueueFigures:
    figures = {"visible": 1, "in_flight": 2, "delayed": 3, "oldest_ms": 1_799_999_990_000}
    return QueueFigures(account="000000000000", name=name, **(figures | changes))


async def test_a_member_tells_its_role_its_log_and_its_load() -> None:
    found = await read(Member("n1", discarded=2, stale_ms=1_500))
    expected = {
        "is_master": 1,
        "ready": 1,
        "term": 7,
        "commit_index": 120,
        "applied_index": 119,
        "last_index": 121,
        "members_linked": 3,
        "voters": 3,
        "quorum": 2,
        "stale_seconds": 1.5,
        "discarded_acked_total": 2,
        "queues": 2,
        "waiters": 1,
        "contents_bytes": 4096,
    }
    assert {name: found[sample(name)] for name in expected} == expected
    assert found[sample("role", role="master")] == 1
    assert found[sample("role", role="follower")] == 0
    assert (await read(Member("n2")))[sample("is_master")] == 0


async def test_lag_is_told_by_member_where_it_is_known() -> None:
    member = Member()
    member.with_members(n2={"lag": None})
    found = await read(member)
    lags = {key: value for key, value in found.items() if key[0] == "elasticq_replication_lag_entries"}
    assert lags == {
        sample("replication_lag_entries", member="n1", id=IDS["n1"]): 0,
        sample("replication_lag_entries", member="n3", id=IDS["n3"]): 4,
    }


async def test_labels_are_escaped() -> None:
    member = Member()
    member.with_members(n1={"name": 'a"b\\c\nd'})
    found = await read(member)
    assert sample("replication_lag_entries", member='a"b\\c\nd', id=IDS["n1"]) in found


async def test_names_are_escaped_once_for_each_queue() -> None:
    member = Member()
    member.queued = [queue('a"b\\c\nd')]
    member.counted.counts["SendMessage"](SendMessage('a"b\\c\nd', "x"), "000000000000", EmptyResult(), 0.0)
    found = await read(member)
    of = {"queue": 'a"b\\c\nd', "account": "000000000000"}
    assert found[sample("queue_messages", state="in_flight", **of)] == 2
    assert found[sample("queue_oldest_message_age_seconds", **of)] == 10


async def test_receives_that_wait_are_told_by_queue() -> None:
    member = Member()
    member.queued = [queue("orders")]
    member.awaited = {("000000000000", "orders"): 3}
    found = await read(member)
    assert found[sample("queue_consumers", queue="orders", account="000000000000")] == 3


async def test_figures_of_others_are_shown_once_and_counters_are_counters() -> None:
    member = Member()
    member.more = {"term": 99.0, "peers_frames_sent_total": 3, "http_connections": 4}
    found = await read(member)
    assert found[sample("term")] == 7
    assert found[sample("peers_frames_sent_total")] == 3
    assert found[sample("http_connections")] == 4


async def test_a_histogram_adds_up() -> None:
    member = Member()
    times = Histogram((0.001, 0.01))
    for value in (0.0005, 0.002, 0.002, 5.0):
        times.observe(value)
    member.times = {"log_fsync_duration_seconds": ("Duration of a sync of the log.", times)}
    found = await read(member)
    buckets = [found[sample("log_fsync_duration_seconds_bucket", le=le)] for le in ("0.001", "0.01", "+Inf")]
    assert buckets == [1, 3, 4]
    assert found[sample("log_fsync_duration_seconds_count")] == 4
    assert found[sample("log_fsync_duration_seconds_sum")] == pytest.approx(5.0045)


async def test_a_queue_tells_its_messages_by_state_and_the_age_of_the_oldest() -> None:
    member = Member()
    member.queued = [queue("orders"), queue("empty", visible=0, in_flight=0, delayed=0, oldest_ms=None)]
    found = await read(member)
    of = {"queue": "orders", "account": "000000000000"}
    states = [found[sample("queue_messages", state=state, **of)] for state in ("visible", "in_flight", "delayed")]
    assert states == [1, 2, 3]
    assert found[sample("queue_oldest_message_age_seconds", **of)] == 10
    assert found[sample("queue_oldest_message_age_seconds", queue="empty", account="000000000000")] == 0


async def test_calls_are_told_by_action_and_code_and_messages_by_queue() -> None:
    member = Member()
    member.queued = [queue("orders")]
    url = "http://127.0.0.1:9324/000000000000/orders"
    member.counted.counts["SendMessage"](SendMessage(queue_url=url), "", EmptyResult(), -1e9)
    member.counted.counts["ReceiveMessage"](ReceiveMessage(queue_url=url), "", ReceiveMessageResult(), 0.0)
    member.counted.counts["SendMessage"](SendMessage(queue_url="http://h/000000000000/gone"), "", EmptyResult(), 0.0)
    member.counted.failed("SendMessage", "OverLimit")
    found = await read(member)
    of = {"queue": "orders", "account": "000000000000"}
    assert found[sample("messages_sent_total", **of)] == 1
    assert found[sample("empty_receives_total", **of)] == 1
    assert found[sample("requests_total", action="SendMessage", code="OK")] == 2
    assert found[sample("requests_total", action="SendMessage", code="OverLimit")] == 1
    assert found[sample("request_duration_seconds_bucket", action="SendMessage", le="+Inf")] == 2
    assert sample("messages_sent_total", queue="gone", account="000000000000") not in found


async def test_a_follower_leaves_the_queues_to_the_master() -> None:
    member = Member("n2")
    member.queued = [queue("orders")]
    member.counted.counts["SendMessage"](SendMessage(queue_url="orders"), "000000000000", EmptyResult(), 0.0)
    found = await read(member)
    names = {name for name, _ in found}
    assert "elasticq_queue_messages" not in names
    assert found[sample("messages_sent_total", queue="orders", account="000000000000")] == 1


@pytest.mark.parametrize("name", ["n1", "n2"])
async def test_ten_thousand_queues_are_told_in_slices_that_leave_the_loop_to_others(name: str) -> None:
    member = Member(name)
    member.queued = [queue(f"queue-{number}", is_dead_letter_queue=True) for number in range(metrics.QUEUES_MAX + 5)]
    for number in range(metrics.QUEUES_MAX + 5):
        member.counted.counts["SendMessage"](SendMessage(f"queue-{number}", "x"), "000000000000", EmptyResult(), 0.0)
        member.awaited["000000000000", f"queue-{number}"] = 1
    lines: list[int] = []
    looks = [0]
    member.queued_seen = lambda: looks.append(looks.pop() + 1)
    for part in metrics.slices(member):
        lines.append(part.count(b"\nelasticq_") + part.startswith(b"elasticq_"))
        looks.append(0)
    rows = (9 if name == "n1" else 5) * metrics.QUEUES_MAX
    assert len(lines) > rows / (3 * metrics.ROWS_A_SLICE)
    assert max(lines) <= 3 * metrics.ROWS_A_SLICE
    assert max(looks) <= metrics.LOOKED_AT_A_SLICE
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(others())
    page = b"".join(await expose(member))
    other.cancel()
    assert turns >= len(lines) - 1
    shown = metrics.QUEUES_MAX if name == "n1" else 0
    assert page.count(b"\nelasticq_queue_messages{") == 3 * shown
    assert page.count(b"# TYPE elasticq_queue_messages ") == (shown > 0)
    assert page.count(b"# HELP elasticq_queue_messages ") == (shown > 0)
    assert page.count(b"\nelasticq_messages_sent_total{") == metrics.QUEUES_MAX
    assert page.count(b"\nelasticq_queue_consumers{") == metrics.QUEUES_MAX


async def test_process_figures_have_the_names_that_dashboards_know() -> None:
    found = await read(Member("n1"))
    assert found[("process_cpu_seconds_total", frozenset())] > 0
    assert found[("process_resident_memory_bytes", frozenset())] > 1_000_000


def test_the_library_is_not_imported_before_the_first_look() -> None:
    code = (
        "import sys, elasticq.admin.app, elasticq.server.life, elasticq.http.pages.slow, elasticq.cli.main;"
        "assert not {'prometheus_client', 'rich', 'opentelemetry'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


async def test_expired_messages_are_told_by_queue() -> None:
    member = Member()
    member.queued = [queue("orders")]
    member.outlived = {("000000000000", "orders"): 7}
    found = await read(member)
    assert found[sample("messages_expired_total", queue="orders", account="000000000000")] == 7


async def test_subscriptions_are_told_with_what_their_endpoints_took_and_refused() -> None:
    member = Member()
    owner = "000000000000"
    member.subscribed = [
        SubscriptionCounts((owner, "news"), "key-1", "sqs", "orders", delivered=5, retried=0, failed=2),
        SubscriptionCounts((owner, "news"), "key-2", "https", "", delivered=4, retried=3, failed=1),
    ]
    found = await read(member)
    one = {"topic": "news", "account": owner, "subscription": "key-1", "protocol": "sqs", "queue": "orders"}
    other = {"topic": "news", "account": owner, "subscription": "key-2", "protocol": "https"}
    names = ("delivered", "retried", "failed")
    told = [[found[sample(f"topic_subscription_{name}_total", **of)] for name in names] for of in (one, other)]
    assert told == [[5, 0, 2], [4, 3, 1]]


async def test_topics_are_counted_with_what_became_of_their_messages() -> None:
    member = Member("n1")
    arn = "arn:aws:sns:us-east-1:000000000000:news"
    result = PublishResult("m", counts=PublishCounts(delivered=2, filtered=1))
    member.meter().counts["Publish"](Publish(topic_arn=arn), "000000000000", result, perf_counter())
    found = await read(member)
    labels = {"topic": "news", "account": "000000000000"}
    expected = {"published": 1, "delivered": 2, "filtered": 1, "failed": 0}
    expected |= {"pushes_delivered": 3, "pushes_retried": 2, "pushes_failed": 1}
    assert {name: found[sample(f"topic_{name}_total", **labels)] for name in expected} == expected


async def test_what_was_published_in_steps_is_counted_where_it_was_stored() -> None:
    member = Member("n1")
    arn = "arn:aws:sns:us-east-1:000000000000:many"
    result = PublishResult("m", counts=PublishCounts(filtered=7))
    for _ in range(2):
        member.meter().counts["Publish"](Publish(topic_arn=arn), "000000000000", result, perf_counter())
    for _ in range(2):
        found = await read(member)
        labels = {"topic": "many", "account": "000000000000"}
        expected = {"published": 2, "delivered": 1_502, "filtered": 14, "failed": 3}
        assert {name: found[sample(f"topic_{name}_total", **labels)] for name in expected} == expected


async def test_consumer_groups_tell_their_consumers_moves_and_times() -> None:
    member = Member()
    member.known_groups = [GroupStatus("000000000000", "g", 7, 3, 1, 2, 1, 4, 12, 250, 900, 10_000)]
    labels = {"group": "g", "account": "000000000000"}
    expected = {
        sample("group_generation", **labels): 7,
        sample("group_consumers", **labels): 3,
        sample("group_idle_consumers", **labels): 1,
        sample("group_resources", state="held", **labels): 2,
        sample("group_resources", state="revoking", **labels): 1,
        sample("group_resources", state="free", **labels): 4,
        sample("group_moves_total", **labels): 12,
        sample("group_rebalancing_seconds", **labels): 0.25,
        sample("group_rebalanced_seconds", **labels): 0.9,
    }
    found = await read(member)
    assert {name: found[name] for name in expected} == expected
    member.seen = replace(member.seen, role="follower")
    assert not set(await read(member)) & set(expected), "the master alone tells, so that a sum counts each once"
