"""What an error of the light client tells, and that it survives being copied."""

import copy

import pytest

from elasticq.client import SqsError
from tests.client.scripted import Scripted, client, failure


def test_error_answer_has_code_type_and_fault() -> None:
    lost = failure("QueueDoesNotExist", "400 Bad Request", "AWS.SimpleQueueService.NonExistentQueue;Sender")
    with Scripted(lost) as server, client(server) as sqs:
        with pytest.raises(SqsError, match="about QueueDoesNotExist") as caught:
            sqs.get_queue_url(QueueName="orders")
        error = caught.value
        assert (error.code, error.type) == ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
        assert (error.status, error.sender_fault, error.message) == (400, True, "about QueueDoesNotExist")
        assert error.response["Error"]["Code"] == error.code
        assert len(server.requests) == 1
    other = copy.copy(error)  # by the same means Spark carries it to its driver
    assert (other.code, other.status, str(other)) == (error.code, 400, str(error))
