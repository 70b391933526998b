"""Queues by their prefix, what waits in them, and errors that name the option to look at."""

from typing import Any

import pytest

from elasticq.client import SqsError, Unreachable
from elasticq.spark.options import Queue
from elasticq.spark.queues import backlog_of, explained, find_queues


def refused(code: str, status: int) -> SqsError:
    return SqsError("ReceiveMessage", code, code, "no", status, status < 500)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (refused("AWS.SimpleQueueService.NonExistentQueue", 400), "queue 'jobs' does not exist at http://here"),
        (refused("InvalidClientTokenId", 403), "http://here refuses the credentials"),
        (refused("AccessDenied", 403), "accessKeyId"),
        (refused("InvalidAddress", 400), "queue 'jobs' at http://here"),
        (Unreachable("refused"), "http://here does not answer"),
    ],
)
def test_errors_name_the_option_to_look_at(error: Exception, said: str) -> None:
    assert said in str(explained(error, "jobs", "http://here"))


class Paged:
    """A server with two pages of queues."""

    def list_queues(self, **members: Any) -> dict[str, Any]:
        if "NextToken" in members:
            return {"QueueUrls": ["http://a/0/job-1"]}
        return {"QueueUrls": ["http://a/0/job-2"], "NextToken": "more"}

    def get_queue_attributes(self, **members: Any) -> dict[str, Any]:
        return {"Attributes": {"ApproximateNumberOfMessages": "3", "ApproximateNumberOfMessagesNotVisible": "2"}}


def test_a_prefix_finds_queues_on_all_pages() -> None:
    assert find_queues(Paged(), Queue(queue_prefix="job-")) == ["http://a/0/job-1", "http://a/0/job-2"]


def test_a_backlog_is_what_the_server_counts() -> None:
    backlog = backlog_of(Paged(), "http://a/0/job-1", "")
    assert (backlog.visible, backlog.in_flight, backlog.delayed, backlog.total) == (3, 2, 0, 5)
