"""Makes rows of the histories: of calls that had their effect, and of deduplication ids that are taken."""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

from elasticq.engine.stored.mutations import AttemptRecorded, InvocationRecorded, SentIdTaken
from elasticq.engine.writers.history import as_invocation
from elasticq.model.limits import INVOCATION_WINDOW_MS
from elasticq.replication.records import Base
from elasticq.storage.rows.statements import DROP_INVOCATIONS, PUT_INVOCATIONS, Statement, encode


class InvocationTable:
    """Holds what the table of invocations does not hold yet.

    Each batch adds one or two rows; a row is dropped as a whole when the window of its newest call is over.
    last_number: the number of the newest row.
    """

    __slots__ = ("_gone", "_recorded", "_sent_ids", "last_number")

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
        """Forget a call, which had no effect after all."""
        if self._recorded.pop(invocation, None) is None:
            self._gone.append(invocation)

    def statements(self, taken: Base) -> list[Statement]:
        """Return statements for what came since the last call; it counts as written then. ``taken``: newest entry."""
        recorded, self._recorded = self._recorded, {}
        gone, self._gone = self._gone, []
        sent_ids, self._sent_ids = self._sent_ids, {}
        rows = []
        if recorded or gone:
            rows.append(self._row(taken.index, taken.time_ms, gone, list(recorded.values())))
        if sent_ids:  # in a row of their own, which stays until the last of them is free
            until_ms = max(mutation.until_ms for mutation in sent_ids.values())
            rows.append(self._row(taken.index, until_ms - INVOCATION_WINDOW_MS, [], list(sent_ids.values())))
        return [(PUT_INVOCATIONS, rows), (DROP_INVOCATIONS, [(taken.time_ms - INVOCATION_WINDOW_MS,)])]

    def _row(
        self, index: int, newest_ms: int, gone: list[bytes], mutations: Sequence[InvocationRecorded | SentIdTaken]
    ) -> tuple[Any, ...]:
        """Return a row that is dropped INVOCATION_WINDOW_MS after ``newest_ms``."""
        removed, recorded = encode(gone), encode(mutations)
        number = self.last_number = max(index, self.last_number + 1)
        return number, newest_ms, removed, recorded, crc32(recorded, crc32(removed, number & 0xFFFFFFFF))
