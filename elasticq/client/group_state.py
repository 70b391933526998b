"""The rights of a consumer of a group: a pure core for the blocking and the asyncio client.

Its inputs are the server's answers, the ends of callbacks, and time. Its outputs are what to start, what to stop, and
what to send to the server. It does not wait, make calls or read a clock. Each assignment, which its token identifies,
takes these steps:

    STARTING --started()--> RUNNING --next_steps()--> STOPPING --stopped()--> gone

An assignment is stopped in four cases: the server revokes it, the session is lost, the consumer closes, or the hold is
over. The hold ends when the server has not answered for so long that it may soon assign the resource to another
consumer. A stopped assignment may still be in the server's newest answer. If the answer lists it as revoking, the next
heartbeat releases it. If the answer lists it as assigned, the consumer had stopped by itself and the server kept the
assignment. The consumer then starts it again with the same token.

Workers check before each step whether they may act, and end at the first no. So when such a check has found the hold to
be over, all assignments are stopped and started again. This is also done if a late answer prolongs the hold before
next_steps is called, or during a start. Else the resource would be held and have no worker.

A consumer always stops before the server assigns the resource to another one. The server counts a session from the
arrival of a call. The consumer counts from before it sent that call, and uses only two thirds of the session. So even
with a clock that runs 10 % slow it stops in time.
"""

from enum import Enum
from typing import Any, Final, NamedTuple, Self


class Assignment(NamedTuple):
    """A resource that is assigned to this consumer. partition: its number in a partitioned queue, else None.

    token: grows with each assignment in the cluster.
    """

    resource: str
    queue_url: str
    partition: int | None
    token: int

    @classmethod
    def read(cls, written: dict[str, Any]) -> Self:
        """Return the assignment of an item in an answer's Assigned or Revoking."""
        return cls(written["Resource"], written["QueueUrl"], written.get("Partition"), int(written["Token"]))


class View(NamedTuple):
    """The server's answer to a join or a heartbeat. assigned, revoking: assignments by token."""

    consumer_id: str
    version: int
    generation: int
    hold_ms: int
    heartbeat_ms: int
    assigned: dict[int, Assignment]
    revoking: dict[int, Assignment]

    @classmethod
    def read(cls, written: dict[str, Any]) -> Self:
        """Return the view in an answer."""
        assigned, revoking = (
            {each.token: each for each in map(Assignment.read, written.get(name) or ())}
            for name in ("Assigned", "Revoking")
        )
        return cls(
            written["ConsumerId"],
            int(written["Version"]),
            int(written["Generation"]),
            int(written["HoldMs"]),
            int(written["HeartbeatMs"]),
            assigned,
            revoking,
        )


class Steps(NamedTuple):
    """The assignments that the client must stop and start. It calls ``stopped`` and ``started`` when that is done."""

    stop: list[Assignment]
    start: list[Assignment]


class Ask(NamedTuple):
    """The next call: a join if consumer_id is empty, else a heartbeat that releases these tokens."""

    consumer_id: str
    released: list[int]


class _Phase(Enum):
    STARTING = 1
    RUNNING = 2
    STOPPING = 3


class _Work:
    """An assignment that is worked on. hold_until_ms: the end of the hold at the moment when its start began."""

    def __init__(self, assignment: Assignment, hold_until_ms: float) -> None:
        self.assignment = assignment
        self.hold_until_ms = hold_until_ms
        self.phase = _Phase.STARTING


RETRY_MS: Final = 250
RELEASED_MAX: Final = 1_000  # tokens in one call
NOBODY: Final = View("", 0, 0, 0, 0, {}, {})
"""The view of a consumer that has not joined, or whose session is over."""


class GroupState:
    """The state of one consumer. All times are milliseconds of its monotonic clock.

    hold_until_ms: the end of the hold. From then on the consumer may not act, unless an answer prolongs the hold.
    """

    def __init__(self) -> None:
        self.view = NOBODY
        self.hold_until_ms = 0.0
        self._is_closing = False
        self._is_settled = False  # nothing has changed since the last next_steps; _was_holding is the hold of then
        self._was_holding = False
        self._seen_over_ms = 0.0  # the end of the newest hold that a check has found to be over
        self._work: dict[int, _Work] = {}
        self._ask_ms = 0.0
        self._wait_until_ms = 0.0
        self._told: set[int] = set()  # tokens that the last call released

    # --- calls --------------------------------------------------------------------------

    def ask_ms(self) -> float:
        """Return when the next call is due: at once if a token must be released, or without a session."""
        is_urgent = not self.view.consumer_id or not self._told.issuperset(self.released())
        return self._wait_until_ms if is_urgent else max(self._wait_until_ms, self._ask_ms)

    def ask(self, now_ms: float) -> Ask:
        """Return the call to send. The caller reports its result to joined, answered, lost or failed."""
        released = self.released()[:RELEASED_MAX]
        self._told = set(released)
        self._ask_ms = now_ms + self.view.heartbeat_ms
        return Ask(self.view.consumer_id, released)

    def failed(self, now_ms: float) -> None:
        """Note that the call had no answer, so it must be repeated after a short pause."""
        self._told = set()
        self._wait_until_ms = now_ms + (min(RETRY_MS, self.view.heartbeat_ms) or RETRY_MS)

    # --- what happened ------------------------------------------------------------------

    def joined(self, view: View, sent_ms: float) -> None:
        """Take the answer to a join that was sent at ``sent_ms``."""
        self.view = view
        self._is_settled = False
        self.hold_until_ms = sent_ms + view.hold_ms
        self._ask_ms = sent_ms + view.heartbeat_ms

    def answered(self, view: View, sent_ms: float) -> None:
        """Take the answer to a heartbeat. Answers may overtake each other, so an older view only prolongs the hold."""
        if view.consumer_id != self.view.consumer_id:
            return
        self.hold_until_ms = max(self.hold_until_ms, sent_ms + view.hold_ms)
        if view.version > self.view.version:
            self._is_settled = False
        if view.version >= self.view.version:
            self.view = view

    def lost(self, consumer_id: str) -> None:
        """Note that the server does not know this consumer any more. All is stopped, and the client joins again."""
        if consumer_id == self.view.consumer_id:
            self.view = NOBODY
            self._is_settled = False

    def close(self) -> None:
        """Stop all assignments, and start no more."""
        self._is_closing = True
        self._is_settled = False

    def started(self, token: int) -> None:
        """Note that the start of ``token`` is done."""
        assert self._work[token].phase is _Phase.STARTING, token
        self._work[token].phase = _Phase.RUNNING
        self._is_settled = False

    def stopped(self, token: int) -> None:
        """Note that the stop of ``token`` is done: the consumer does not work on it any more."""
        assert self._work[token].phase is _Phase.STOPPING, token
        del self._work[token]
        self._is_settled = False

    # --- what to do ---------------------------------------------------------------------

    def next_steps(self, now_ms: float) -> Steps:
        """Return the assignments to stop and to start. Each is returned once.

        A resource is started only after its work with another token has been stopped.
        """
        is_holding = self._is_holding(now_ms)
        if self._is_settled and is_holding == self._was_holding:
            return Steps([], [])  # called often, and there may be thousands of resources to check
        self._is_settled, self._was_holding = True, is_holding
        wanted = self._wanted(now_ms)
        stop = []
        for token, work in self._work.items():
            if work.phase is _Phase.RUNNING and (token not in wanted or self._was_over(work)):
                work.phase = _Phase.STOPPING
                stop.append(work.assignment)
        busy = {work.assignment.resource for work in self._work.values()}
        start = []
        for token, assignment in wanted.items():
            if assignment.resource not in busy:
                busy.add(assignment.resource)
                self._work[token] = _Work(assignment, self.hold_until_ms)
                start.append(assignment)
        return Steps(stop, start)

    def wake_ms(self, now_ms: float) -> float | None:
        """Return when next_steps must be called again even if nothing happens: at the end of the hold.

        None if the hold is over or there is no work.
        """
        return self.hold_until_ms if self._work and now_ms < self.hold_until_ms else None

    def released(self) -> list[int]:
        """Return the tokens that the next heartbeat releases: revoked, and not worked on any more."""
        return [token for token in self.view.revoking if token not in self._work]

    # --- what is so ---------------------------------------------------------------------

    def may_act(self, token: int, now_ms: float) -> bool:
        """Return whether the consumer may begin new work with ``token``.

        If that is False because the hold is over, the assignment is stopped, and must be started again first.
        """
        work = self._work.get(token)
        if not self._is_holding(now_ms) or work is None or work.phase is _Phase.STOPPING or self._was_over(work):
            return False
        return token in self._wanted(now_ms)

    def may_finish(self, token: int, now_ms: float) -> bool:
        """Return whether the consumer may finish work with ``token``: the server still accepts its deletes."""
        if not self._is_holding(now_ms) or token not in self._work:
            return False
        return token in self.view.assigned or token in self.view.revoking

    @property
    def acting(self) -> int:
        """Return how many assignments are started or not yet stopped."""
        return len(self._work)

    def _is_holding(self, now_ms: float) -> bool:
        """Return whether the hold lasts. If it does not, remember that this was found."""
        if now_ms < self.hold_until_ms:
            return True
        if self._seen_over_ms < self.hold_until_ms:
            self._seen_over_ms = self.hold_until_ms
            self._is_settled = False
        return False

    def _was_over(self, work: _Work) -> bool:
        return work.hold_until_ms <= self._seen_over_ms

    def _wanted(self, now_ms: float) -> dict[int, Assignment]:
        return {} if self._is_closing or now_ms >= self.hold_until_ms else self.view.assigned
