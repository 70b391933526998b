"""The thread that writes the log. It writes all that was queued during a sync with one append and one sync.

There is one lock, around the queue. No thread holds it during a file operation. The log and the reserve belong to the
thread from ``start`` to the end of ``close``. It posts callbacks to the loop. A batch is acknowledged, by durability:

    fsync   when it is written and synced
    os      when it is written; a batch with a vote when it and all before it are synced
    none    at once; a batch with a vote when it and all before it are synced
"""

import errno
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from threading import Condition, Thread
from time import monotonic
from typing import Final, Literal

from elasticq.model.histogram import Histogram
from elasticq.replication.records import Entry, Record, Truncation, Vote
from elasticq.storage.interface import OnSynced
from elasticq.storage.log.acknowledged_end import End, LogEnd
from elasticq.storage.log.reserve import FULL, Reserve
from elasticq.storage.log.segments import SegmentLog

Durability = Literal["fsync", "os", "none"]
OnFailure = Callable[[BaseException], None]
OnFull = Callable[[str | None], None]

REVIEW_S: Final = 1.0
SLOW_FADES: Final = 0.98  # each sync multiplies the slowest known time by this
SYNC_BOUNDS_S: Final = (0.00025, 0.0005, *(0.001 * 2**step for step in range(13)))
DISK_FULL_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT)


class LogWriter:
    """The writer of the log. Only the loop's thread calls it; ``_run`` and what it calls run in the log's thread."""

    def __init__(
        self,
        log: SegmentLog,
        log_end: LogEnd,
        reserve: Reserve,
        loop: AbstractEventLoop,
        *,
        durability: Durability,
        on_failure: OnFailure,
        on_full: OnFull,
        sync_times: Histogram | None = None,
    ) -> None:
        self._log = log
        self._log_end = log_end
        self._reserve = reserve
        self._loop = loop
        self._durability = durability
        self._on_failure = on_failure
        self._on_full = on_full
        self._on_synced: OnSynced = lambda token: None
        self._log_thread = Thread(target=self._run, name="log", daemon=True)
        self._changed = Condition()
        self._records: list[Record] = []
        self._token = 0
        self._floor = 0
        self._wants_space = False
        self._closing = False
        self._is_blocked = False  # used by the thread only
        self.slow_sync_s = 0.0  # about the slowest of some hundred syncs; written by the thread
        self._written_bytes = 0  # since the last check of the free space; used by the thread only
        self._sync_times = sync_times or Histogram(SYNC_BOUNDS_S)
        # Used by the loop's thread only:
        self._acknowledged = 0
        self._vote_token = 0
        self._closed = False

    def start(self) -> None:
        self._log_thread.start()

    def append(self, records: list[Record], token: int, on_synced: OnSynced) -> None:
        self._on_synced = on_synced
        if any(isinstance(record, Vote) for record in records):
            self._vote_token = token
        with self._changed:
            self._records += records
            self._token = token
            self._changed.notify()
        if self._durability == "none" and self._vote_token <= self._acknowledged:
            self._loop.call_soon(self._acknowledge, token)

    def drop_through(self, index: int) -> None:
        """Remove the segments up to ``index`` when the thread next has work, or after at most REVIEW_S."""
        with self._changed:
            self._floor = max(self._floor, index)

    def make_space(self) -> None:
        """Remove the reserve, because the rows found the disk full."""
        with self._changed:
            self._wants_space = True
            self._changed.notify()

    def end(self) -> None:
        """Let the thread write and sync what is queued, and then end. No callback comes any more."""
        self._closed = True
        with self._changed:
            self._closing = True
            self._changed.notify()

    def close(self) -> None:
        """Write and sync everything, and wait for the end of the thread. No callback comes any more."""
        self.end()
        if self._log_thread.ident is not None:
            self._log_thread.join()

    # --- in the loop ----------------------------------------------------------------

    def _acknowledge(self, token: int) -> None:
        if token > self._acknowledged and not self._closed:
            self._acknowledged = token
            self._on_synced(token)

    def _tell_full(self, reason: str | None) -> None:
        if not self._closed:
            self._on_full(reason)

    # --- in the thread --------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._reserve.start()
            told_full = False
            review_at_s = 0.0
            while self._work():
                now_s = time.monotonic()
                if now_s >= review_at_s or self._written_bytes > self._reserve.size_bytes // 8:
                    self._written_bytes = 0
                    self._reserve.review()
                    review_at_s = now_s + REVIEW_S
                if told_full != self._reserve.is_full:
                    told_full = self._reserve.is_full
                    self._post(self._tell_full, FULL if told_full else None)
            self._log.finish()
            self._log_end.tell(End(self._log.last_index, self._log.term))
        except BaseException as failure:  # after any failure nothing may be acknowledged
            self._post(self._on_failure, failure)

    def _work(self) -> bool:
        """Wait for work and do it; return False if the writer is closed and all work is done."""
        with self._changed:
            has_work = (self._records and not self._is_blocked) or self._wants_space
            if not has_work and not self._closing:
                self._changed.wait(REVIEW_S)
            records, self._records = self._records, []
            token, floor, closing = self._token, self._floor, self._closing
            wants_space, self._wants_space = self._wants_space, False
            self._floor = 0
        if wants_space:
            self._reserve.give_up()
        if floor:  # before the append, as this may free the space for it
            self._log.drop_through(floor)
        if records and self._write(records, closing):
            self._post(self._acknowledge, token)
        return not closing

    def _write(self, records: list[Record], is_last_try: bool) -> bool:
        """Write records; return False if there is no space even without the reserve.

        They are then queued again, and not acknowledged. Raise OSError if ``is_last_try`` or for any other error.
        """
        self._is_blocked = False
        self._written_bytes += sum(len(record.payload) for record in records if isinstance(record, Entry))
        shortest = min((record.index for record in records if isinstance(record, Truncation)), default=0)
        try:
            if shortest:
                self._log_end.lower(End(shortest - 1, self._log.term))
            needs_sync = self._durability == "fsync" or any(isinstance(record, Vote) for record in records)
            self._append_by_all_means(records, durably=needs_sync)
        except OSError as error:
            if error.errno not in DISK_FULL_ERRORS or is_last_try:
                raise
            self._is_blocked = True
            with self._changed:
                self._records = records + self._records
            return False
        self._log_end.tell(End(self._log.last_index, self._log.term))
        return True

    def _append_by_all_means(self, records: list[Record], *, durably: bool) -> None:
        try:
            self._append(records, durably=durably)
        except OSError as error:
            if error.errno not in DISK_FULL_ERRORS or not self._reserve.give_up():
                raise
            self._append(records, durably=durably)

    def _append(self, records: list[Record], *, durably: bool) -> None:
        began_s = monotonic()
        self._log.append(records, durably=durably)
        if durably:
            took_s = monotonic() - began_s
            self._sync_times.observe(took_s)
            self.slow_sync_s = max(took_s, self.slow_sync_s * SLOW_FADES)

    def _post(self, callback: Callable[..., None], argument: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, argument)
        except RuntimeError:  # the loop is closed, so nobody waits for the callback
            assert self._loop.is_closed()
