"""Figures of a consumer group."""

from typing import Any

import pytest

from elasticq.model.group_figures import figures, held_by, shares_out

GROUP = {
    "GroupName": "workers",
    "Generation": 7,
    "QueueNamePrefix": "work-",
    "Consumers": [{"ConsumerId": "a"}, {"ConsumerId": "b"}],
    "Resources": [
        {"Resource": "work-1", "State": "held", "ConsumerId": "a", "Token": 3},
        {"Resource": "work-2", "State": "revoking", "ConsumerId": "a", "Token": 4},
        {"Resource": "work-3", "State": "free"},
    ],
}


@pytest.mark.parametrize(
    ("group", "told"),
    [
        ({"QueueNames": ["a", "b"]}, "queues a, b"),
        ({"QueueNamePrefix": "work-", "QueueNames": []}, "queues work-*"),
        ({"QueueNamePrefix": "", "PartitionsOf": ""}, "queues *"),
        ({"PartitionsOf": "jobs.fifo"}, "partitions of jobs.fifo"),
    ],
)
def test_what_a_group_shares_out_is_told_in_a_few_words(group: dict[str, Any], told: str) -> None:
    assert shares_out(group) == told


def test_a_line_counts_what_is_free_and_who_has_nothing() -> None:
    assert held_by(GROUP) == {"a": 2}
    assert figures(GROUP) == {
        "name": "workers",
        "shares_out": "queues work-*",
        "generation": 7,
        "resources": 3,
        "free": 1,
        "consumers": 2,
        "without_work": 1,
    }
