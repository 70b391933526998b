"""ackMode=none and onRead: a share ends with the queue or at its bound, and with onRead what was read is gone."""

from typing import Any

import pytest

from elasticq.spark.environment import Environment
from elasticq.spark.offsets import Share
from elasticq.spark.options import Read
from elasticq.spark.plain import Plain
from elasticq.spark.receives import Receives


class Waiting:
    """A server on which so many messages of ten characters wait."""

    def __init__(self, count: int) -> None:
        self.left = [{"Body": "x" * 10, "ReceiptHandle": f"r{number}"} for number in range(count)]
        self.deleted: list[list[str]] = []

    def receive_message(self, ElasticqPageSize: int, **members: Any) -> dict[str, Any]:
        got, self.left = self.left[:ElasticqPageSize], self.left[ElasticqPageSize:]
        return {"Messages": got}

    def delete_message_batch(self, QueueUrl: str, Entries: list[dict[str, str]]) -> None:
        assert len({entry["Id"] for entry in Entries}) == len(Entries) <= 10
        self.deleted.append([entry["ReceiptHandle"] for entry in Entries])


def read(server: Waiting, share: Share, ack_mode: str = "none") -> list[int]:
    environment = Environment(connect=lambda connection: server)  # type: ignore[arg-type,return-value]
    plain = Plain(Read(ack_mode=ack_mode), Receives((), False, 25, 0, True), environment)
    return [len(page) for page in plain.pages(share)]


def share(messages: int, bytes_max: int = 0) -> Share:
    return Share("q", 1, 0, "", "url", messages, bytes_max)


@pytest.mark.parametrize(
    ("waiting", "messages", "bytes_max", "pages"),
    [(60, 1_000, 0, [25, 25, 10]), (60, 40, 0, [25, 15]), (60, 1_000, 300, [25, 25]), (0, 10, 0, [])],
)
def test_a_share_ends_with_the_queue_or_at_its_bound(
    waiting: int, messages: int, bytes_max: int, pages: list[int]
) -> None:
    server = Waiting(waiting)
    assert read(server, share(messages, bytes_max)) == pages
    assert server.deleted == []


def test_with_on_read_every_message_of_a_page_is_deleted_before_it_is_shown() -> None:
    server = Waiting(33)
    assert read(server, share(1_000), "onRead") == [25, 8]
    assert [len(batch) for batch in server.deleted] == [10, 10, 5, 8]
    assert len({handle for batch in server.deleted for handle in batch}) == 33
