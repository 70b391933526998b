"""The checks of repeated calls: a call has one effect, and a repeated call gets no contradicting answer.

A call is identified by its invocation id, a GUID. The checks of the clients' history cannot do this, because a client
does not see a lost reply. No two committed entries may record the same GUID. The exception is a receive whose answer
reached nobody, and whose messages were returned.
"""

from __future__ import annotations

from collections.abc import Hashable

from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.invocations import SWEPT
from elasticq.model.errors import ElasticqUnknownConsumer, ServiceUnavailable, SqsError
from elasticq.model.limits import INVOCATION_WINDOW_MS
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.sim.trace import Trace

TWO_EFFECTS = "two_effects"
REPLY_WITHDRAWN = "reply_withdrawn"


class Repeats:
    """The GUIDs in the entries, and the calls that were answered with success."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._made: dict[tuple[int, int], list[m.Mutation]] = {}  # (index, term) -> mutations with GUIDs
        self._first: dict[bytes, tuple[int, int]] = {}  # GUID -> (index, cluster time) of its effect
        self._answered: dict[bytes, str] = {}  # GUID -> the kind of its answer

    def proposed(self, place: tuple[int, int], made: list[m.Mutation]) -> None:
        """Record the mutations of an entry that a master made. place: its index and term."""
        found: list[m.Mutation] = [each for each in made if isinstance(each, (m.InvocationRecorded, m.ReceiveReturned))]
        if found:
            self._made[place] = found

    def committed(self, place: tuple[int, int]) -> None:
        """Record that the entry at ``place`` is committed. Called once for each entry, in the order of the log."""
        for mutation in self._made.pop(place, ()):
            if isinstance(mutation, m.ReceiveReturned):
                self._first.pop(mutation.invocation, None)
            elif isinstance(mutation, m.InvocationRecorded) and mutation.invocation != SWEPT:
                self._recorded(place, mutation)

    def _recorded(self, place: tuple[int, int], mutation: m.InvocationRecorded) -> None:
        guid, time_ms = mutation.invocation, mutation.recorded_ms
        before = self._first.get(guid)
        if before is not None and time_ms - before[1] < INVOCATION_WINDOW_MS:
            self.trace.found(TWO_EFFECTS, f"{guid.hex()} in the entries {before[0]} and {place[0]}")
        self._first[guid] = place[0], time_ms

    def replied(self, name: str, ticket: Hashable, outcome: Result | SqsError) -> None:
        """Check an answer against earlier answers to the same call. The client may not wait for it any more.

        A call without an effect is not recorded, and runs again. The check skips receives, because their messages may
        have been deleted or returned, and their leases may have ended. It also skips joins of consumers that are gone.
        """
        passing = (ServiceUnavailable, ReceiveMessageResult, ElasticqUnknownConsumer)
        if not isinstance(ticket, tuple) or isinstance(outcome, passing):
            return
        client, number, _attempt, guid = ticket
        if not isinstance(outcome, SqsError):
            self._answered[guid] = type(outcome).__name__
        elif guid in self._answered and guid in self._first:
            evidence = f"{name} answered {outcome!r} to call {number} of {client}, before {self._answered[guid]}"
            self.trace.found(REPLY_WITHDRAWN, evidence)
