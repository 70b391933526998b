"""Counts of what became of published messages."""

from elasticq.model.topic_results import PublishCounts


def test_counts_are_summed_one_by_one() -> None:
    counts = PublishCounts(delivered=1, dead_lettered=2, filtered=3, failed=4)
    counts.add(PublishCounts(delivered=10, dead_lettered=20, filtered=30, failed=40))
    assert counts == PublishCounts(delivered=11, dead_lettered=22, filtered=33, failed=44)
