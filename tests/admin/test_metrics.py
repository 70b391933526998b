"""Figures as Prometheus reads them."""

from pathlib import Path

import pytest

from elasticq.admin import metrics
from elasticq.admin.metrics import render
from tests.admin.member import IDS, Member, status_of


def value(text: str, name: str) -> float:
    return float(next(line for line in text.splitlines() if line.startswith(f"{name} ")).split()[1])


def test_a_member_tells_its_role_its_log_and_its_load() -> None:
    text = render(status_of("n1", discarded=2), {})
    expected = {
        "elasticq_is_master": 1,
        "elasticq_ready": 1,
        "elasticq_term": 7,
        "elasticq_commit_index": 120,
        "elasticq_applied_index": 119,
        "elasticq_last_index": 121,
        "elasticq_members_linked": 3,
        "elasticq_voters": 3,
        "elasticq_quorum": 2,
        "elasticq_stale_ms": 0,
        "elasticq_discarded_acked_total": 2,
        "elasticq_queues": 2,
        "elasticq_waiters": 1,
        "elasticq_contents_bytes": 4096,
    }
    assert {name: value(text, name) for name in expected} == expected
    assert "# TYPE elasticq_discarded_acked_total counter\n" in text
    assert "# TYPE elasticq_queues gauge\n" in text
    assert value(render(status_of("n2"), {}), "elasticq_is_master") == 0


def test_lag_is_told_by_member_where_it_is_known() -> None:
    member = Member()
    member.with_members(n2={"lag": None})
    lines = [line for line in render(member.seen, {}).splitlines() if line.startswith("elasticq_replication_lag")]
    assert lines == [
        f'elasticq_replication_lag_entries{{member="n1",id="{IDS["n1"]}"}} 0',
        f'elasticq_replication_lag_entries{{member="n3",id="{IDS["n3"]}"}} 4',
    ]


def test_labels_are_escaped() -> None:
    member = Member()
    member.with_members(n1={"name": 'a"b\\c\nd'})
    assert 'member="a\\"b\\\\c\\nd"' in render(member.seen, {})


def test_figures_of_others_get_the_prefix_and_a_clean_name() -> None:
    text = render(status_of("n1"), {"disk-free.bytes": 0.5, "elasticq_log_bytes": 1e17, "sent_total": 3})
    assert value(text, "elasticq_disk_free_bytes") == 0.5
    assert "elasticq_log_bytes 100000000000000000\n" in text
    assert "# TYPE elasticq_sent_total counter\n" in text


def test_a_name_is_told_once() -> None:
    text = render(status_of("n1"), {"term": 99.0})
    assert value(text, "elasticq_term") == 7
    assert text.count("# TYPE elasticq_term ") == 1


def test_process_figures_have_the_names_that_dashboards_know() -> None:
    text = render(status_of("n1"), {})
    assert value(text, "process_cpu_seconds_total") > 0
    assert value(text, "process_resident_memory_bytes") > 1_000_000


def test_resident_memory_is_left_out_where_the_system_does_not_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_STATM", str(tmp_path / "none"))
    assert "process_resident_memory_bytes" not in render(status_of("n1"), {})
