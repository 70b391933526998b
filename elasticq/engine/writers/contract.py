"""The interface of a module of writers, and the roll-back of what they wrote."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from elasticq.engine.state import State
from elasticq.engine.stored.tables import RowChange


class Step(ABC):
    """A step of a roll-back: it undoes one write to the state."""

    __slots__ = ()

    @abstractmethod
    def take_back(self) -> None:
        """Undo this step. Called once, after all later steps have been undone."""


Undo = list[Step | tuple[Callable[..., object], *tuple[Any, ...]]]
"""The steps of a roll-back, the newest last: ``Step`` objects, or tuples of a function and its arguments.

Writes that happen for each message use a ``Step``.
"""

Writer = Callable[[State, Any, Undo | None], None]
"""A function that applies one kind of mutation to the state. If there is an ``Undo``, it adds steps that revert it."""

Declare = Callable[[Any], list[RowChange]]
"""A function that returns the changes of one kind of mutation to the small tables. It reads only the mutation."""


def roll_back(undo: Undo) -> None:
    """Undo all steps, newest first, and empty the list."""
    while undo:
        step = undo.pop()
        if isinstance(step, tuple):
            function, *arguments = step
            function(*arguments)
        else:
            step.take_back()
