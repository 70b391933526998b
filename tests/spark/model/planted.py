"""Designs that lose or keep messages, as somebody might write them: the model must tell them from the real one."""

import json
from collections.abc import Callable
from typing import Any

from pyspark.sql.datasource import InputPartition

from elasticq.client import SqsError
from elasticq.spark.lease import EXPIRED
from elasticq.spark.offsets import Json, Offset, from_json
from elasticq.spark.planner import Planner
from elasticq.spark.source import StreamReader
from tests.spark.model.world import Client, MemoryStore


class ExpiryPerCall(Client):
    """Every receive is a lease of its own, with a deadline of its own: partition 2, call 3 is partition 2003."""

    def answered(self, action: str, body: bytes) -> dict[str, Any]:
        members = json.loads(body)
        attempt = members.get("ReceiveRequestAttemptId")
        if attempt:
            name, batch, partition, call = attempt.rsplit("/", 3)
            members["ReceiveRequestAttemptId"] = f"{name}/{batch}/{int(partition) * 1000 + int(call)}/0"
            body = json.dumps(members).encode()
        return super().answered(action, body)


class ExpiredIsEmpty(Client):
    """An expired id answers an empty list, and a used one may get new messages."""

    def answered(self, action: str, body: bytes) -> dict[str, Any]:
        try:
            return super().answered(action, body)
        except SqsError as error:
            if error.type != EXPIRED or action != "ReceiveMessage":
                raise
            members = json.loads(body)
            del members["ReceiveRequestAttemptId"]
            return super().answered(action, json.dumps(members).encode())


class CommitsOnlyInCommit(StreamReader):
    """Does what Spark's interface suggests: commit(end) deletes. It comes one batch late."""

    def _planner(self) -> Planner:
        planner = super()._planner()
        self.really_commit: Callable[[Offset], None] = getattr(self, "really_commit", planner.commit)
        planner.commit = lambda offset: None  # type: ignore[method-assign]
        return planner

    def commit(self, end: Json) -> None:
        self._planner()
        self.really_commit(from_json(end))


class CommitsWhenPlanned(StreamReader):
    """Deletes the batch that begins, after its tasks have read it and before the sink has it."""

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        shares = super().partitions(start, end)
        for share in shares:
            for _ in self._delivery(share.value.mode).pages(share.value):
                pass
        self._planner().commit(from_json(end))
        return shares


class LastWriterWins(MemoryStore):
    """A log without exclusive creation: a speculative task overwrites what another one has read."""

    def create(self, name: str, content: bytes) -> bool:
        self.put(name, content)
        return True


class ForgetsWhatItCommitted(MemoryStore):
    """A log that does not know that a batch is committed: a zombie's file is deleted from the queue unseen."""

    def put(self, name: str, content: bytes) -> None:
        if not name.endswith(".ids"):
            super().put(name, content)


class TrustsOldLeases(StreamReader):
    """Reads a batch of an earlier run however old it is: elasticq may have forgotten its ids, and opens them anew."""

    def _delivery(self, mode: str) -> Any:
        delivery = super()._delivery(mode)
        delivery.replayed = lambda offset: offset.shares()  # type: ignore[method-assign]
        return delivery
