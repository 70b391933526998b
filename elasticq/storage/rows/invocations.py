"""The table of histories: executed calls by their invocation ids, and deduplication ids that are taken."""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

from elasticq.engine.stored.mutations import AttemptRecorded, InvocationRecorded, SentIdTaken
from elasticq.engine.writers.history import as_invocation
from elasticq.model.limits import INVOCATION_WINDOW_MS
from elasticq.replication.records import Base
from elasticq.storage.rows.statements import DROP_INVOCATIONS, PUT_INVOCATIONS, Statement, encode


class InvocationTable:
    """The history records that the table on the disk does not have yet.

    Each batch adds one or two rows with many records each. A row is deleted when the window of its newest record is
    over. last_number: the number of the newest row.
    """

    def __init__(self) -> None:
        self.last_number = 0
        self._recorded: dict[bytes, InvocationRecorded] = {}
        self._gone: list[bytes] = []
        self._sent_ids: dict[bytes, SentIdTaken] = {}

    def take_invocation(self, mutation: InvocationRecorded) -> None:
        known = self._recorded.setdefault(mutation.invocation, mutation)
        if known.recorded_ms + INVOCATION_WINDOW_MS <= mutation.recorded_ms:  # the deduplication id is free again
            self._recorded[mutation.invocation] = mutation

    def take_sent_id(self, mutation: SentIdTaken) -> None:
        known = self._sent_ids.setdefault(mutation.key, mutation)
        if known.until_ms < mutation.until_ms:
            self._sent_ids[mutation.key] = mutation

    def take_attempt(self, mutation: AttemptRecorded) -> None:
        self.forget(mutation.attempt)
        if mutation.detail:
            self._recorded[mutation.attempt] = as_invocation(mutation)

    def forget(self, invocation: bytes) -> None:
        """Forget a call, because it had no effect in the end."""
        if self._recorded.pop(invocation, None) is None:
            self._gone.append(invocation)

    def statements(self, taken: Base) -> list[Statement]:
        """Return statements for the records since the last call of this. ``taken``: the base of the newest entry.

        The records then count as written.
        """
        recorded, self._recorded = self._recorded, {}
        gone, self._gone = self._gone, []
        sent_ids, self._sent_ids = self._sent_ids, {}
        rows = []
        if recorded or gone:
            rows.append(self._row(taken.index, taken.time_ms, gone, list(recorded.values())))
        if sent_ids:  # a row of their own, as it stays until the last id is free
            until_ms = max(mutation.until_ms for mutation in sent_ids.values())
            rows.append(self._row(taken.index, until_ms - INVOCATION_WINDOW_MS, [], list(sent_ids.values())))
        return [(PUT_INVOCATIONS, rows), (DROP_INVOCATIONS, [(taken.time_ms - INVOCATION_WINDOW_MS,)])]

    def _row(
        self, index: int, newest_ms: int, gone: list[bytes], mutations: Sequence[InvocationRecorded | SentIdTaken]
    ) -> tuple[Any, ...]:
        """Return a row of the table, which is deleted INVOCATION_WINDOW_MS after ``newest_ms``."""
        removed, recorded = encode(gone), encode(mutations)
        number = self.last_number = max(index, self.last_number + 1)
        return number, newest_ms, removed, recorded, crc32(recorded, crc32(removed, number & 0xFFFFFFFF))
