"""What a consumer of a group may do: the pure core that the blocking and the asyncio client share.

The server's answers, the ends of callbacks and time go in; what to start, what to stop and what to tell the server
come out. Nothing here waits, calls or reads a clock. An assignment goes this way, and its token names it:

    STARTING --started()--> RUNNING --next_steps()--> STOPPING --stopped()--> gone

It is stopped when the server revokes it, when the session is lost, when the consumer closes, and when nothing was
answered for so long that the server may give it to somebody else. What is gone and still stands in the newest view as
revoking is released, that is, told with the next heartbeat. What is gone and still stands there as assigned is started
again, under the same token: the consumer had stopped by itself, and the server never gave it away.

Whoever was told once that nothing may be done any more has ended, as workers do that ask before each step. So once
anybody has seen that the time was over, all of it is stopped and started anew, also where a late answer came before
next_steps was asked, or while a start was under way: else it would be held, and nobody would be at work.

Why a consumer stops by itself in time: the server counts a session from when a call comes, the consumer from before it
sent that call, and only two thirds of the session. So a clock that runs 10 % slow is early, too.
"""

from enum import Enum
from typing import Any, Final, NamedTuple, Self


class Assignment(NamedTuple):
    """A resource in this consumer's hands. partition: of a partitioned queue, else None; token: grows for ever."""

    resource: str
    queue_url: str
    partition: int | None
    token: int

    @classmethod
    def read(cls, written: dict[str, Any]) -> Self:
        """Return what an item of a view's Assigned or Revoking says."""
        return cls(written["Resource"], written["QueueUrl"], written.get("Partition"), int(written["Token"]))


class View(NamedTuple):
    """What the server answers to a join and a heartbeat; assigned and revoking are by token."""

    consumer_id: str
    version: int
    generation: int
    hold_ms: int
    heartbeat_ms: int
    assigned: dict[int, Assignment]
    revoking: dict[int, Assignment]

    @classmethod
    def read(cls, written: dict[str, Any]) -> Self:
        """Return the view that an answer holds."""
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
    """What the client has to do now: each start and stop is reported back when it is done."""

    stop: list[Assignment]
    start: list[Assignment]


class Ask(NamedTuple):
    """The next call: a join where consumer_id is empty, else a heartbeat that releases these tokens."""

    consumer_id: str
    released: list[int]


class _Phase(Enum):
    STARTING = 1
    RUNNING = 2
    STOPPING = 3


class _Work:
    """An assignment that is acted on. hold_until_ms: when the hold was to end in which its start began."""

    __slots__ = ("assignment", "hold_until_ms", "phase")

    def __init__(self, assignment: Assignment, hold_until_ms: float) -> None:
        self.assignment = assignment
        self.hold_until_ms = hold_until_ms
        self.phase = _Phase.STARTING


RETRY_MS: Final = 250
RELEASED_MAX: Final = 1_000  # tokens in one call
NOBODY: Final = View("", 0, 0, 0, 0, {}, {})
"""The view of a consumer that has not joined, or whose session is over."""


class GroupState:
    """One consumer. All times are milliseconds of its own monotonic clock; at hold_until_ms it may act no more."""

    __slots__ = (
        "_ask_ms",
        "_is_closing",
        "_is_settled",
        "_seen_over_ms",
        "_told",
        "_wait_until_ms",
        "_was_holding",
        "_work",
        "hold_until_ms",
        "view",
    )

    def __init__(self) -> None:
        self.view = NOBODY
        self.hold_until_ms = 0.0
        self._is_closing = False
        self._is_settled = False  # nothing has happened since next_steps was asked, when the hold was as _was_holding
        self._was_holding = False
        self._seen_over_ms = 0.0  # the end of the newest hold that anybody has seen to be over
        self._work: dict[int, _Work] = {}
        self._ask_ms = 0.0
        self._wait_until_ms = 0.0
        self._told: set[int] = set()  # released by the last call

    # --- calls --------------------------------------------------------------------------

    def ask_ms(self) -> float:
        """Return when the next call is due: at once where there is something to release, or nobody has joined."""
        is_urgent = not self.view.consumer_id or not self._told.issuperset(self.released())
        return self._wait_until_ms if is_urgent else max(self._wait_until_ms, self._ask_ms)

    def ask(self, now_ms: float) -> Ask:
        """Return the call to send now; one of joined, answered, lost and failed tells what came of it."""
        released = self.released()[:RELEASED_MAX]
        self._told = set(released)
        self._ask_ms = now_ms + self.view.heartbeat_ms
        return Ask(self.view.consumer_id, released)

    def failed(self, now_ms: float) -> None:
        """Nobody answered: the call is made again soon."""
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
        """Take the answer to a heartbeat. Answers may overtake each other: an older view only prolongs the hold."""
        if view.consumer_id != self.view.consumer_id:
            return
        self.hold_until_ms = max(self.hold_until_ms, sent_ms + view.hold_ms)
        if view.version > self.view.version:
            self._is_settled = False
        if view.version >= self.view.version:
            self.view = view

    def lost(self, consumer_id: str) -> None:
        """The server does not know this consumer any more: nothing is held, and the client joins again."""
        if consumer_id == self.view.consumer_id:
            self.view = NOBODY
            self._is_settled = False

    def close(self) -> None:
        """Want nothing any more: all is stopped."""
        self._is_closing = True
        self._is_settled = False

    def started(self, token: int) -> None:
        """The start of ``token`` is done."""
        assert self._work[token].phase is _Phase.STARTING, token
        self._work[token].phase = _Phase.RUNNING
        self._is_settled = False

    def stopped(self, token: int) -> None:
        """The stop of ``token`` is done: the consumer does not act on it any more."""
        assert self._work[token].phase is _Phase.STOPPING, token
        del self._work[token]
        self._is_settled = False

    # --- what to do ---------------------------------------------------------------------

    def next_steps(self, now_ms: float) -> Steps:
        """Return what is to be stopped and to be started now, each once.

        A resource is started when all that was done for it before, under another token, has ended.
        """
        is_holding = self._is_holding(now_ms)
        if self._is_settled and is_holding == self._was_holding:
            return Steps([], [])  # asked with each message: there may be thousands of resources to look at
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
        """Return when next_steps is to be asked again though nothing happens: the hold's end; None if it is over."""
        return self.hold_until_ms if self._work and now_ms < self.hold_until_ms else None

    def released(self) -> list[int]:
        """Return the tokens to tell with the next heartbeat: revoked, and not acted on any more."""
        return [token for token in self.view.revoking if token not in self._work]

    # --- what is so ---------------------------------------------------------------------

    def may_act(self, token: int, now_ms: float) -> bool:
        """True if the consumer may begin something new under ``token``; after a no it has to be started anew."""
        work = self._work.get(token)
        if not self._is_holding(now_ms) or work is None or work.phase is _Phase.STOPPING or self._was_over(work):
            return False
        return token in self._wanted(now_ms)

    def may_finish(self, token: int, now_ms: float) -> bool:
        """True if the consumer may still end what it began under ``token``: the server takes its deletes."""
        if not self._is_holding(now_ms) or token not in self._work:
            return False
        return token in self.view.assigned or token in self.view.revoking

    @property
    def acting(self) -> int:
        """How many assignments are acted on, or being stopped."""
        return len(self._work)

    def _is_holding(self, now_ms: float) -> bool:
        """Return whether the hold lasts, and remember that somebody has seen it if it does not."""
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
