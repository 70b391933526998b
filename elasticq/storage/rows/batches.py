"""Batches: one transaction for the rows, made of the pending changes."""

from typing import Any, Final

from msgspec import Struct, field

from elasticq.engine.stored.tables import AHEAD_MS, LAST_QUEUE_ID
from elasticq.replication.records import Base
from elasticq.storage.rows import statements as sql
from elasticq.storage.rows.pages import Page, cut, encode_delays, encode_groups, encode_priorities, make_page
from elasticq.storage.rows.statements import (
    APPLIED,
    AS_MOVED,
    AS_STORED,
    DELAYS,
    VACUUM_PAGES,
    Applied,
    Statement,
    add_updates,
    blob_row,
    checked,
    encode,
    priorities_row,
    queue_row,
    touched_row,
)
from elasticq.storage.rows.tables import Queue, Tables

RECLAIM_ROWS_MAX: Final = 1_000  # rows removed in one batch
FREE_PAGES_KEPT: Final = 2_000  # 16 MB, for new messages; to release them would only move pages
FREE_SHARE_IDLE, FREE_SHARE_BUSY = 4, 2  # at most one of so many pages of the file is free


class Batch(Struct):
    """One transaction. statements: each for ``executemany``, in order.

    index: the index up to which the rows are complete after it. after: statements for ``executescript``, to run after
    the commit. Each is a transaction that may fail without harm. ``execute`` would stop them after their first step.
    """

    index: int
    statements: list[Statement]
    after: list[str]

    def holds(self, queue_id: int, first: int) -> bool:
        """Return whether the batch writes the contents of the page that begins at ``first``."""
        return any(
            row[:2] == (queue_id, first) for text, rows in self.statements if text == sql.PUT_CONTENTS for row in rows
        )


class Pending(Struct):
    """The pending changes for the next batch, without those that the queues and the small tables keep themselves."""

    is_part: bool = False
    queues: dict[int, Queue] = field(default_factory=dict)
    gone_queues: list[int] = field(default_factory=list)
    messages: int = 0
    changes: int = 0
    bytes: int = 0


def has_much_free(tables: Tables, *, is_idle: bool) -> bool:
    """Return whether the file has so many free pages that it should be cut.

    More free pages are allowed while the member is busy, because cutting moves pages.
    """
    share = FREE_SHARE_IDLE if is_idle else FREE_SHARE_BUSY
    return tables.free_pages > max(FREE_PAGES_KEPT, tables.file_pages // share)


class PendingBatch:
    """The builder of one batch. It marks what it took as written: not pending, not stale, nothing to reclaim."""

    def __init__(self, tables: Tables, taken: Base) -> None:
        self._tables = tables
        self._taken = taken
        self._rows: dict[str, list[tuple[Any, ...]]] = {text: [] for text in sql.ORDER}
        self._updates: list[Statement] = []

    def batch(self, pending: Pending, *, is_idle: bool) -> Batch:
        for queue in pending.queues.values():
            self._add_queue(queue)
        self._rows[sql.DROP_QUEUE] = [(queue_id,) for queue_id in pending.gone_queues]
        self._reclaim_some()
        self._add_small()  # after the pages, as it counts the pages with delays that are left
        for text, rows in self._tables.invocations.statements(self._taken):
            self._rows[text] += rows
        statements = [(text, parameters) for text, parameters in self._rows.items() if parameters]
        return Batch(self._taken.index, statements + self._updates, self._vacuum(is_idle=is_idle))

    def _add_small(self) -> None:
        taken, tables = self._taken, self._tables
        for small in tables.small.values():
            for text, rows in small.statements():
                self._rows.setdefault(text, []).extend(rows)
        applied = Applied(
            taken.index,
            taken.term,
            taken.time_ms,
            queues=len(tables.queues),
            voters=taken.voters,
            last_queue_id=tables.numbers[LAST_QUEUE_ID],
            ahead_ms=tables.numbers[AHEAD_MS],
            has_holes=tables.has_holes,
            counts={**{name: small.count for name, small in tables.small.items()}, DELAYS: tables.delay_pages},
        )
        self._rows[sql.PUT_META].append(checked(APPLIED, encode(applied)))
        self._rows[sql.PUT_META_COPY] = self._rows[sql.PUT_META]

    def _add_queue(self, queue: Queue) -> None:
        for page in queue.stale.values():
            self._add_page(queue.row.queue_id, page)
        queue.stale = {}
        if queue.stored:
            self._add_stored(queue)
        if queue.has_priorities:
            queue.priorities = {}
        queue.row.last_sequence = queue.last_sequence
        self._rows[sql.PUT_QUEUE].append(queue_row(queue.row, queue.messages))

    def _add_stored(self, queue: Queue) -> None:
        queue_id = queue.row.queue_id
        for run in cut(list(queue.stored.values())):
            page, contents = make_page(run, queue.touched)
            queue.directory.add(page)
            self._rows[sql.PUT_PAGE].append(page.header(queue_id))
            self._rows[sql.PUT_CONTENTS].append(blob_row(queue_id, page.first, contents))
            groups = encode_groups(run, needs_groups=queue.needs_groups)
            page.has_groups = bool(groups)
            if groups:
                self._rows[sql.PUT_GROUPS].append(blob_row(queue_id, page.first, groups))
            delays = encode_delays(run)
            page.has_delays = bool(delays)
            if delays:
                self._rows[sql.PUT_DELAYS].append(blob_row(queue_id, page.first, delays))
                self._tables.delay_pages += 1
            page.has_priorities = queue.has_priorities
            if queue.has_priorities:
                packed = encode_priorities(page.first, queue.priorities_of(run), are_all=True)
                self._rows[sql.PUT_PRIORITIES].append(priorities_row(queue_id, page.first, AS_STORED, packed))
            filled = min(self._tables.free_pages, page.disk_pages)
            self._tables.free_pages -= filled
            self._tables.file_pages += page.disk_pages - filled
        self._rows[sql.PUT_TOUCHED] += [touched_row(queue_id, *item) for item in queue.touched.items()]
        queue.messages += len(queue.stored)
        queue.stored, queue.touched = {}, {}

    def _add_page(self, queue_id: int, page: Page) -> None:
        changes, page.changes = page.changes, None
        if not page.live:
            self._drop_page(queue_id, page)
            return
        if page.is_stale:
            self._rows[sql.PUT_PAGE].append(page.header(queue_id))
            page.is_stale = False
        if page.is_moved and page.moved is not None:
            packed = encode_priorities(page.first, page.moved, are_all=False)
            self._rows[sql.PUT_PRIORITIES].append(priorities_row(queue_id, page.first, AS_MOVED, packed))
            page.is_moved = False
        for sequence, change in (changes or {}).items():
            if change is None:
                self._rows[sql.DROP_TOUCHED].append((queue_id, sequence))
            elif isinstance(change, tuple):
                self._rows[sql.PUT_TOUCHED].append(touched_row(queue_id, sequence, change))
            else:
                add_updates(self._updates, queue_id, sequence, change)

    def _drop_page(self, queue_id: int, page: Page) -> None:
        self._rows[sql.DROP_PAGE].append((queue_id, page.first))
        self._rows[sql.DROP_CONTENTS].append((queue_id, page.first))
        if page.has_groups:
            self._rows[sql.DROP_GROUPS].append((queue_id, page.first))
        if page.has_priorities:
            self._rows[sql.DROP_PRIORITIES].append((queue_id, page.first))
        if page.has_delays:
            self._rows[sql.DROP_DELAYS].append((queue_id, page.first))
            self._tables.delay_pages -= 1
        self._rows[sql.DROP_TOUCHED_OF_PAGE].append((queue_id, page.first, page.last))
        self._tables.free_pages += page.disk_pages

    def _reclaim_some(self) -> None:
        budget = RECLAIM_ROWS_MAX
        while self._tables.reclaim and budget > 0:
            queue_id, pages = self._tables.reclaim[-1]
            while pages and budget > 0:
                page = pages.pop()
                budget -= page.rows_on_disk_max()
                self._drop_page(queue_id, page)
            if not pages:
                self._tables.reclaim.pop()

    def _vacuum(self, *, is_idle: bool) -> list[str]:
        tables = self._tables
        if not has_much_free(tables, is_idle=is_idle):
            return []
        tables.free_pages -= VACUUM_PAGES
        tables.file_pages -= VACUUM_PAGES
        return [sql.VACUUM]
