"""What one refused Append tells of a follower."""

from elasticq.replication.progress import Progress


def test_late_hint_below_what_matches_changes_nothing() -> None:
    progress = Progress(next_index=10, match_index=5, probing=False)
    assert not progress.take_hint(4)
    assert (progress.next_index, progress.probing) == (10, False)
    assert progress.take_hint(7)
    assert (progress.next_index, progress.probing) == (8, True)
