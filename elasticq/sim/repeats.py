"""Calls that are made again under their GUID: one GUID has one effect, and a reply once given stays true.

Both are judged beside the history of what clients saw. A client whose first reply was lost cannot say what it told;
here it is known. An effect is judged in the log: whatever members answer, no two committed entries may record one
GUID, unless a receive in the first one reached nobody and went back.
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
    """What entries recorded of GUIDs, and which calls were answered with success."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._made: dict[tuple[int, int], list[m.Mutation]] = {}  # (index, term) -> what concerns GUIDs
        self._first: dict[bytes, tuple[int, int]] = {}  # GUID -> (index, cluster time) of its effect
        self._answered: dict[bytes, str] = {}  # GUID -> the kind of its answer

    def proposed(self, place: tuple[int, int], made: list[m.Mutation]) -> None:
        """A master made the entry at this index and term."""
        told: list[m.Mutation] = [each for each in made if isinstance(each, (m.InvocationRecorded, m.ReceiveReturned))]
        if told:
            self._made[place] = told

    def committed(self, place: tuple[int, int]) -> None:
        """The entry there is committed; each is told once, in the order of the log."""
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
        """A member lets out an answer, perhaps to an attempt that its client waits for no more.

        A call that changed nothing is remembered by nobody, and runs again. Receives are left out: what they found may
        be deleted or back, and a lease may be over. So are joins whose consumer is gone since.
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
