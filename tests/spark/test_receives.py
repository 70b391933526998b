"""One receive, as server and client allow it."""

from typing import Any

import pytest

from elasticq.spark.options import Read
from elasticq.spark.receives import Receives, receives_for
from elasticq.spark.schema import Rows, default_schema

ROWS = Rows(default_schema("string", True), "string", "fail")


class Recorded:
    def receive_message(self, **members: Any) -> dict[str, Any]:
        self.members = members
        return {}


@pytest.mark.parametrize(
    ("is_elasticq", "is_light", "page", "wait_s"),
    [(True, True, 1_000, 0), (True, False, 10, 0), (False, True, 10, 1), (False, False, 10, 1)],
)
def test_page_and_wait_are_those_of_server_and_client(
    is_elasticq: bool, is_light: bool, page: int, wait_s: int
) -> None:
    receives = receives_for(Read(), ROWS, is_elasticq, is_light)
    assert (receives.page, receives.wait_s, receives.extended) == (page, wait_s, is_elasticq and is_light)


def test_options_narrow_and_never_widen() -> None:
    assert receives_for(Read(page_size=7, wait_time_seconds=3), ROWS, True, True).page == 7
    assert receives_for(Read(page_size=7, wait_time_seconds=3), ROWS, True, True).wait_s == 3
    assert receives_for(Read(page_size=500), ROWS, False, False).page == 10
    assert not receives_for(Read(include_attributes=False), ROWS, True, True).wants_attributes


@pytest.mark.parametrize(("extended", "member"), [(True, "ElasticqPageSize"), (False, "MaxNumberOfMessages")])
def test_a_receive_asks_for_what_is_wanted_and_no_more_than_a_page(extended: bool, member: str) -> None:
    client: Any = Recorded()
    receives = Receives(("SentTimestamp",), True, 5, 2, extended)
    assert receives.receive(client, "url", 9, VisibilityTimeout=30) == []
    assert client.members == {
        "QueueUrl": "url",
        member: 5,
        "MessageAttributeNames": ["All"],
        "MessageSystemAttributeNames": ["SentTimestamp"],
        "WaitTimeSeconds": 2,
        "VisibilityTimeout": 30,
    }
    assert Receives((), False, 5, 0, extended).receive(client, "url", 2) == []
    assert client.members == {"QueueUrl": "url", member: 2, "MessageSystemAttributeNames": []}
