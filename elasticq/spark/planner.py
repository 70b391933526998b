"""The planning and the commits of a stream's batches, on the driver.

Spark calls ``commit(end)`` one batch late, so the planner commits a batch when it plans the next one. This is safe:
Spark calls ``latestOffset(start)`` only when all batches up to ``start`` are in its commit log, even after a restart.
"""

import logging
from dataclasses import replace
from typing import Any, Final

from elasticq.client.errors import SqsError
from elasticq.spark.admission import Admission, divided, tasks_of
from elasticq.spark.clients import chosen
from elasticq.spark.driver import planned_batch, received_batch
from elasticq.spark.environment import Environment
from elasticq.spark.heartbeat import Heartbeat
from elasticq.spark.offsets import Json, Offset, Share, from_json, stream_name
from elasticq.spark.options import Read
from elasticq.spark.queues import Backlog, backlog_of, find_queues

QUEUES_FOUND_S: Final = 60.0  # how long the list of a prefix's queues is used
POLL_S: Final = 1.0  # AWS charges for requests
POLL_ELASTICQ_S: Final = 0.2
log = logging.getLogger(__name__)


class Planner:
    """The planner of one stream: the batches planned and committed, and the latest backlogs of the queues."""

    def __init__(self, options: Read, mode: str, environment: Environment, delivery: Any) -> None:
        self._options = options
        self._mode = mode
        self._environment = environment
        self._delivery_of = delivery
        self._deliveries: dict[str, Any] = {}
        self._admission = Admission(options, environment.now_s)
        self._heartbeat = self._new_heartbeat()
        self._queues: list[str] = []
        self._queues_found_s = 0.0
        self._backlogs: list[tuple[str, Backlog]] = []
        self._asked_s = float("-inf")
        self._idle = False
        self._poll_s = options.poll_interval
        if self._poll_s < 0:
            self._poll_s = POLL_ELASTICQ_S if mode == "lease" else POLL_S
        self._dead_letters = ""  # the URL of deadLetterQueue
        self._planned: Offset | None = None  # the newest batch planned by this process
        self._committed: Offset | None = None

    def _new_heartbeat(self) -> Heartbeat | None:
        if self._options.heartbeat == "off" or self._mode == "plain":
            return None
        held_s = self._options.lease_seconds if self._mode == "lease" else self._options.visibility_timeout
        return self._environment.heartbeat(held_s / 3, self.renew)

    def _delivery(self, mode: str) -> Any:
        if mode not in self._deliveries:
            self._deliveries[mode] = self._delivery_of(mode)
        return self._deliveries[mode]

    # --- offsets ----------------------------------------------------------------------------------

    def first(self) -> Offset:
        """Return the start offset of a new stream, with a unique name and batch number 0. Raise QueueError."""
        self._find_queues()
        wanted = self._options.lease_name or self._options.query_name
        return Offset(stream_name(wanted, self._environment.random_part()), 0)

    def next_batch(self, start_json: Json, messages_max: int | None) -> Json:
        """Commit the batch that ends at ``start``, then plan the next batch.

        Return the end of the next batch, or ``start`` if there is nothing to read. messages_max: the limit of Spark;
        None: no limit.
        """
        start = from_json(start_json)
        self.commit(start)
        offset = self._plan(start, messages_max)
        if offset is None:
            return start_json
        self._planned = offset
        return offset.to_json()

    def _plan(self, start: Offset, messages_max: int | None) -> Offset | None:
        draft = Offset(
            start.name,
            start.batch + 1,
            self._mode,
            int(self._environment.now_s() * 1000),
            int(self._options.lease_seconds * 1000),
            self._options.max_bytes_per_trigger,
        )
        if self._mode == "driver":
            found = planned_batch(self._store(), draft.name, draft.batch)
            if found is not None:
                return found
        messages = self._wanted(messages_max)
        if messages <= 0:
            return None
        parts = divided(
            self._backlogs, messages, tasks_of(self._options, messages), self._delivery(self._mode).share_messages_max
        )
        offset: Offset | None = replace(draft, parts=parts)
        if self._mode == "driver":
            offset = received_batch(
                self._delivery("driver"), self._store(), self._client(), replace(draft, parts=parts), self._environment
            )
        if offset is not None:
            self._admission.admitted(
                sum(part.messages for part in offset.parts), [backlog for _, backlog in self._backlogs]
            )
        return offset

    def _wanted(self, messages_max: int | None) -> int:
        """Return how many messages the next batch may take. Ask an idle queue at most once in pollInterval.

        The call sleeps for the rest of the interval.
        """
        if self._idle:
            self._environment.sleep(max(0.0, self._asked_s + self._poll_s - self._environment.now_s()))
        self._ask()
        wanted = self._admission.amount(
            [backlog for _, backlog in self._backlogs], messages_max, any(url.endswith(".fifo") for url in self._queues)
        )
        self._idle = wanted <= 0
        return wanted

    def only_what_waits(self) -> None:
        self._ask()
        self._admission.until([backlog for _, backlog in self._backlogs])

    def shares(self, start_json: Json, end_json: Json) -> list[Share]:
        """Return a share for each task of the batch that ends at ``end``. Commit the batch that ends at ``start``."""
        start, end = from_json(start_json), from_json(end_json)
        if (start.name, start.batch) == (end.name, end.batch):
            return []
        self.commit(start)
        if not end.parts:
            return []
        shares: list[Share] = end.shares()
        if end != self._planned:  # an earlier run planned it
            shares = self._delivery(end.mode).replayed(end)
            self._planned = end
            self.renew(end)
        if self._heartbeat is not None:
            self._heartbeat.cover(end)
        return shares

    def commit(self, offset: Offset) -> None:
        """Commit a batch: delete its messages, unless this process has done so."""
        if offset.batch == 0 or offset == self._committed:
            return
        if self._heartbeat is not None:
            self._heartbeat.cover(None)
        self._delivery(offset.mode).commit(offset)
        self._committed = offset

    def renew(self, offset: Offset) -> None:
        self._delivery(offset.mode).renew(offset)

    def stop(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.stop()

    # --- queues -------------------------------------------------------------------------------------

    def _client(self) -> Any:
        return self._environment.connect(self._options.connection)

    def _store(self) -> Any:
        return self._environment.open_store(self._options.wal_location)

    def _find_queues(self) -> None:
        is_known = self._queues and not self._options.queue_prefix
        if not is_known and self._environment.now_s() - self._queues_found_s > QUEUES_FOUND_S:
            self._queues = find_queues(self._client(), self._options)
            self._queues_found_s = self._environment.now_s()

    def _ask(self) -> None:
        self._find_queues()
        client = self._client()
        self._backlogs = [(url, backlog_of(client, url, self._options.endpoint)) for url in self._queues]
        self._asked_s = self._environment.now_s()

    def report(self) -> Json | None:
        """Return the figures for the query's progress, or None before the queues were asked.

        They are numbers of messages (backlog, inFlight, delayed, and deadLetters in deadLetterQueue), expired leases or
        handles, and oldestAgeSeconds.
        """
        if not self._backlogs:
            return None
        report: Json = {
            "backlog": sum(backlog.visible for _, backlog in self._backlogs),
            "inFlight": sum(backlog.in_flight for _, backlog in self._backlogs),
            "delayed": sum(backlog.delayed for _, backlog in self._backlogs),
            "expired": sum(delivery.expired for delivery in self._deliveries.values()),
        }
        if dead := self._dead_letter_queue():
            report["deadLetters"] = backlog_of(self._client(), dead, self._options.endpoint).visible
        age_s = self._oldest_age_s()
        return report if age_s is None else {**report, "oldestAgeSeconds": age_s}

    def _dead_letter_queue(self) -> str:
        """Return the URL of deadLetterQueue, or "" without it. Raise QueueError if it does not exist."""
        wanted = self._options.dead_letter_queue
        if wanted and "://" not in wanted and not self._dead_letters:
            named = replace(self._options, queue_url="", queue_name=wanted, queue_prefix="")
            (self._dead_letters,) = find_queues(self._client(), named)
        return self._dead_letters or wanted

    def _oldest_age_s(self) -> int | None:
        """Return the age of the oldest message in seconds, 0 if there is none, or None if it is unknown.

        Only a peek shows it, which needs mode=lease and the light client.
        """
        client = self._client()
        if self._mode != "lease" or not hasattr(client, "peek") or chosen(self._options.connection) != "light":
            return None
        try:
            pages = [client.peek(QueueUrl=url, Limit=1) for url in self._queues]
        except (SqsError, OSError) as error:
            log.debug("peek_failed error=%s", error)
            return None
        sent_ms = [int(message["SentTimestamp"]) for page in pages for message in page["Messages"]]
        if not sent_ms and any(page["NextSequence"] is not None for page in pages):
            return None  # the first page is empty; reading more pages would cost too much
        return max(0, int(self._environment.now_s() - min(sent_ms) / 1000)) if sent_ms else 0
