"""The watch over queues makes a round every few seconds, with or without an admin port."""

import asyncio
import json
from typing import Any

import pytest

from elasticq.server.watcher import Watcher
from tests.admin.operator import Operator
from tests.server.process import Server
from tests.system.cluster.cluster import until


def test_a_server_tells_what_needs_attention_without_a_scan_by_request() -> None:
    with Server() as server:
        operator = Operator(server.admin())
        url = operator.act("CreateQueue", {"QueueName": "lonely"})[1]["QueueUrl"]
        operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "x"})

        def found() -> list[dict[str, Any]]:
            return list(operator.get("/api/attention")["findings"])

        [finding] = until(found, "nobody fetches")
        assert (finding["kind"], finding["queue"]) == ("nobody_fetches", "lonely")
        told = operator.get("/api/attention")
        assert told["totals"]["visible"] == told["totals"]["queues"] == 1
        assert [row["role"] for row in told["members"]] == ["master"]
        assert json.dumps(told).isascii()
        operator.act("PurgeQueue", {"QueueUrl": url})
        until(lambda: [each["kind"] for each in found()] == ["queue_purged"], "only the purge is left")
        assert "operator" in found()[0]["cause"]


class Failing:
    def __init__(self) -> None:
        self.counted = 0

    def count(self) -> None:
        self.counted += 1

    def status(self) -> None:
        raise RuntimeError("broken")


async def test_a_round_that_fails_is_logged_once_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    view = Failing()
    watcher = Watcher(view, asyncio.get_running_loop())  # type: ignore[arg-type]
    for _ in range(3):
        assert await watcher._look() == 0.0
    assert [record.getMessage() for record in caplog.records] == ["watch_failed"]
    watcher.start()
    while not view.counted:
        await asyncio.sleep(0)
    watcher.stop()
