"""Histograms: which bucket a value belongs to."""

from elasticq.model.histogram import Histogram


def test_a_bound_belongs_to_its_bucket_and_what_is_above_all_to_the_last() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 2.5, 100.0):
        histogram.observe(value)
    assert histogram.counts == [2, 2, 2]
    assert histogram.sum == 107.5
