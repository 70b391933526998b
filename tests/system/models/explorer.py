"""A search through all states that a small model can reach."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

State = TypeVar("State", bound=Hashable)
Steps = Callable[[State], Iterable[tuple[str, State]]]


class Found(NamedTuple):
    """What a search found.

    states: the number of different states. fault: the text of the first broken invariant, empty if all hold.
    trail: the names of the steps from the start to the fault, as few as possible.
    """

    states: int
    fault: str
    trail: tuple[str, ...]


class Explorer(Generic[State]):
    """A breadth-first search. It remembers by which steps each state was reached."""

    def __init__(self, start: State, steps: Steps[State], *, states_max: int) -> None:
        self._start = start
        self._steps = steps
        self._states_max = states_max
        self._from: dict[State, tuple[State, str] | None] = {start: None}
        self._before: dict[State, list[State]] = {}

    def find(self, check: Callable[[State], str], is_end: Callable[[State], bool]) -> Found:
        """Search until ``check`` returns a fault, or until all states are known.

        Then a state from which no state with ``is_end`` can be reached is a fault, too. Raise AssertionError if there
        are more than ``states_max`` states.
        """
        waiting = deque([self._start])
        while waiting:
            state = waiting.popleft()
            if fault := check(state):
                return Found(len(self._from), fault, self._trail(state))
            for name, after in self._steps(state):
                self._before.setdefault(after, []).append(state)
                if after not in self._from:
                    self._from[after] = state, name
                    waiting.append(after)
            assert len(self._from) <= self._states_max, "the model is too large"
        stuck = self._stuck(is_end)
        if stuck is not None:
            return Found(len(self._from), "stuck: no end can be reached", self._trail(stuck))
        return Found(len(self._from), "", ())

    def _stuck(self, is_end: Callable[[State], bool]) -> State | None:
        """Return the first state from which no end can be reached; None if there is none."""
        ends = [state for state in self._from if is_end(state)]
        good = set(ends)
        while ends:
            for before in self._before.get(ends.pop(), ()):
                if before not in good:
                    good.add(before)
                    ends.append(before)
        return next((state for state in self._from if state not in good), None)

    def _trail(self, state: State) -> tuple[str, ...]:
        names: list[str] = []
        while (origin := self._from[state]) is not None:
            state, name = origin
            names.append(name)
        return tuple(reversed(names))
