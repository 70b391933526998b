"""The write-ahead log of mode=wal and mode=driver, which work with any SQS.

Messages are written to the log before Spark gets rows of them. The files are in the folder NAME of walLocation:

    BATCH-PARTITION.wal   the messages that a share received; the first task creates it, later tasks replay it
    BATCH.ids             the batch is committed; its message ids, which show later redeliveries
    BATCH.plan            mode=driver: all files of the batch are written; the file holds the batch's offset

A commit deletes the messages by the receipt handles in the batch's files, then writes BATCH.ids, then removes the
files. A task receives nothing for a batch that has a .ids file. Such a late task runs on an executor that Spark has
replaced. Nobody would read the messages in its file, and a repeated commit would delete them.
"""

import logging
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from elasticq.client.errors import SqsError
from elasticq.spark.clients import Client, persist
from elasticq.spark.environment import Environment
from elasticq.spark.lease import body_bytes
from elasticq.spark.offsets import Offset, Share
from elasticq.spark.options import Read
from elasticq.spark.receives import ROWS_AT_ONCE, Receives
from elasticq.spark.records import Received, decode, decode_ids, encode, encode_ids
from elasticq.spark.schema import Message
from elasticq.spark.stores import Store

WAL: Final = ".wal"
IDS: Final = ".ids"
PLAN: Final = ".plan"
ENTRIES_MAX: Final = 10  # in one batch call
IDS_FILES_MAX: Final = 1000
SHARE_MESSAGES_MAX: Final = 50_000  # a task holds its share in memory until it is written
# Parts of the visibility timeout: no receive begins after the first, and the task fails if receiving takes longer than
# the second. The driver's heartbeat renews only messages that are in the log.
RECEIVE_UNTIL: Final = 0.4
USE_UNTIL: Final = 0.8
log = logging.getLogger(__name__)


class LogMissing(RuntimeError):
    """The error of a missing file of the write-ahead log, or of a task that came after the commit."""


class TooSlow(RuntimeError):
    """The error of a task that received so slowly that others may have its messages. It has to run again."""


class WriteAhead:
    """Reads through the write-ahead log. Executors read, the driver commits and renews.

    With mode=driver, the driver also receives.
    """

    share_messages_max = SHARE_MESSAGES_MAX

    def __init__(self, options: Read, receives: Receives, environment: Environment) -> None:
        self._options = options
        self._receives = receives
        self._environment = environment
        self._visibility_s = int(options.visibility_timeout)
        self.expired = 0
        self.deduplicated = 0

    def _client(self) -> Client:
        return self._environment.connect(self._options.connection)

    def _store(self) -> Store:
        return self._environment.open_store(self._options.wal_location)

    # --- reading ----------------------------------------------------------------------------------

    def pages(self, share: Share) -> Iterator[list[Message]]:
        """Yield the share's messages, which are the same in each run. Raise LogMissing, TooSlow or DamagedLog."""
        store = self._store()
        file = f"{share.name}/{share.batch}-{share.partition}{WAL}"
        content = store.read(file)
        if content is None:
            content = self._first(store, share, file)
        messages = decode(file, content).messages
        for start in range(0, len(messages), ROWS_AT_ONCE):
            yield messages[start : start + ROWS_AT_ONCE]

    def _first(self, store: Store, share: Share, file: str) -> bytes:
        if share.mode == "driver":
            raise LogMissing(f"{file} does not exist: do driver and executors see the same walLocation?")
        if committed_batch(store, share.name) >= share.batch:
            raise LogMissing(f"batch {share.batch} of {share.name} is committed: this task came too late")
        client = self._client()
        received = self.gather(store, client, share, self._environment.now_s())
        content = encode(received)
        if store.create(file, content):
            return content
        self._give_back(client, share.queue_url, received)
        winner = store.read(file)
        if winner is None:
            raise LogMissing(f"{file} existed and was removed: batch {share.batch} was committed meanwhile")
        return winner

    def gather(self, store: Store, client: Client, share: Share, began_s: float) -> Received:
        """Receive the messages of a share. Return redelivered ones apart: they are only deleted. Raise TooSlow.

        began_s: when the receives for the batch began, by the environment's clock.
        """
        now_s = self._environment.now_s
        sorter = Sorter(lambda: self._known_ids(store, share))
        taken = taken_bytes = 0
        while taken < share.messages and (not share.bytes_max or taken_bytes < share.bytes_max):
            if now_s() - began_s > RECEIVE_UNTIL * self._visibility_s:
                break
            page = self._receives.receive(
                client, share.queue_url, share.messages - taken, VisibilityTimeout=self._visibility_s
            )
            if not page:
                break
            sorter.take(page)
            taken += len(page)
            taken_bytes += body_bytes(page)
        if now_s() - began_s > USE_UNTIL * self._visibility_s:
            raise TooSlow(f"receiving took {now_s() - began_s:.0f} s; raise visibilityTimeout ({self._visibility_s} s)")
        return sorter.received

    def _known_ids(self, store: Store, share: Share) -> set[str]:
        """Return the message ids of other shares of this batch, and of batches committed within the dedupe window.

        .wal files of other batches do not count: a late task may have written one whose messages Spark never saw.
        """
        known: set[str] = set()
        oldest_s = self._environment.now_s() - self._options.dedupe_window
        for name in store.names(share.name):
            file = f"{share.name}/{name}"
            if name.endswith(WAL) and name.startswith(f"{share.batch}-"):
                content = store.read(file)
                if content is not None:
                    known.update(id_ for id_, _ in decode(file, content).handles())
            elif name.endswith(IDS):
                committed_s, ids = _ids_of(file, store.read(file))
                if committed_s >= oldest_s:
                    known.update(ids)
        return known

    def _give_back(self, client: Client, queue_url: str, received: Received) -> None:
        """Make the messages visible again at once. If the call fails, their timeout does it later."""
        try:
            self._in_batches(
                client.change_message_visibility_batch, queue_url, received.handles(), {"VisibilityTimeout": 0}
            )
        except (SqsError, OSError) as error:
            log.warning("give_back_failed queue=%s error=%s", queue_url, error)

    # --- on the driver ------------------------------------------------------------------------------

    def commit(self, offset: Offset) -> None:
        """Delete the batch's messages and its files. A repeated call is harmless."""
        store = self._store()
        done = f"{offset.name}/{offset.batch}{IDS}"
        if committed_batch(store, offset.name) < offset.batch:
            ids: list[str] = []
            for share in offset.shares():
                ids += self._delete(store, share)
            store.put(done, encode_ids(self._environment.now_s(), ids))
        for name in store.names(offset.name):
            if name.endswith((WAL, PLAN)) and batch_of(name) <= offset.batch:
                store.remove(f"{offset.name}/{name}")
        self._forget(store, offset)

    def _delete(self, store: Store, share: Share) -> list[str]:
        file = f"{share.name}/{share.batch}-{share.partition}{WAL}"
        content = store.read(file)
        if content is None:
            return []  # Spark skipped the task, because of a limit in the query
        received = decode(file, content)
        self.deduplicated += len(received.redelivered)
        client = self._client()
        failed = self._in_batches(client.delete_message_batch, share.queue_url, received.handles(), {})
        if failed:
            self.expired += len(failed)
            log.warning("delete_failed queue=%s messages=%d: they come again", share.queue_name, len(failed))
        return [id_ for id_, _ in received.handles()]

    def _in_batches(
        self, call: Callable[..., Any], queue_url: str, handles: list[tuple[str, str]], members: dict[str, Any]
    ) -> list[str]:
        """Call ``call`` for batches of 10 handles. Return the ids of messages that the server refused.

        handles: message ids and receipt handles. Retry entries that failed by the server's fault for retrySeconds, then
        raise SqsError.
        """

        def send(pending: list[tuple[str, str]]) -> list[str]:
            refused: list[str] = []

            def attempt() -> None:
                entries = [
                    {"Id": str(number), "ReceiptHandle": handle, **members}
                    for number, (_, handle) in enumerate(pending)
                ]
                failed = call(QueueUrl=queue_url, Entries=entries).get("Failed") or []
                refused.extend(pending[int(entry["Id"])][0] for entry in failed if entry.get("SenderFault"))
                again = [entry for entry in failed if not entry.get("SenderFault")]
                pending[:] = [pending[int(entry["Id"])] for entry in again]
                if again:
                    first = again[0]
                    raise SqsError("Batch", first["Code"], first["Code"], first.get("Message", ""), 503, False)

            persist(attempt, self._options.retry_seconds, self._environment.now_s, self._environment.sleep)
            return refused

        chunks = [handles[start : start + ENTRIES_MAX] for start in range(0, len(handles), ENTRIES_MAX)]
        return [id_ for refused in self._environment.for_each(send, chunks) for id_ in refused]

    def _forget(self, store: Store, offset: Offset) -> None:
        """Remove .ids files older than the dedupe window. The newest one stays: it shows which batch is committed."""
        batches = sorted(_committed(store, offset.name))
        oldest_s = self._environment.now_s() - self._options.dedupe_window
        for number, batch in enumerate(batches[:-1]):
            file = f"{offset.name}/{batch}{IDS}"
            if len(batches) - number <= IDS_FILES_MAX and _ids_of(file, store.read(file))[0] >= oldest_s:
                break
            store.remove(file)

    def renew(self, offset: Offset) -> None:
        """Renew the messages in the batch's files for another visibility timeout. Skip files not yet written."""
        store = self._store()
        client = self._client()
        for share in offset.shares():
            file = f"{share.name}/{share.batch}-{share.partition}{WAL}"
            content = store.read(file)
            if content is not None:
                self._in_batches(
                    client.change_message_visibility_batch,
                    share.queue_url,
                    decode(file, content).handles(),
                    {"VisibilityTimeout": self._visibility_s},
                )

    def replayed(self, offset: Offset) -> list[Share]:
        """Return all shares of the batch, because the log holds them at any age."""
        return offset.shares()


class Sorter:
    """A sorter of received messages into new ones and redeliveries.

    known_ids: is called once, when the first message was received before.
    """

    def __init__(self, known_ids: Callable[[], set[str]]) -> None:
        self.received = Received()
        self._ask = known_ids
        self._known: set[str] | None = None
        self._places: dict[str, int] = {}

    def take(self, page: list[Message]) -> None:
        for message in page:
            id_ = message["MessageId"]
            place = self._places.get(id_)
            if place is not None:  # this share received it twice: the newest handle is valid
                self.received.messages[place] = message
            elif self._is_known(message):
                self.received.redelivered.append((id_, message["ReceiptHandle"]))
            else:
                self._places[id_] = len(self.received.messages)
                self.received.messages.append(message)

    def _is_known(self, message: Message) -> bool:
        if int(message.get("Attributes", {}).get("ApproximateReceiveCount", 1)) <= 1:
            return False
        if self._known is None:
            self._known = self._ask()
        return message["MessageId"] in self._known


def committed_batch(store: Store, name: str) -> int:
    """Return the number of the last committed batch, or 0 if there is none."""
    return max(_committed(store, name), default=0)


def _committed(store: Store, name: str) -> list[int]:
    return [batch_of(file) for file in store.names(name) if file.endswith(IDS)]


def batch_of(file: str) -> int:
    """Return the batch number with which a file's name begins."""
    return int(file.partition(".")[0].partition("-")[0])


@lru_cache(maxsize=256)
def _ids_of(file: str, content: bytes | None) -> tuple[float, list[str]]:
    return (0.0, []) if content is None else decode_ids(file, content)
