"""What a file of writers offers for each of its mutations, and how what was written is taken back."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from elasticq.engine.state import State
from elasticq.engine.stored.tables import RowChange


class Step(ABC):
    """Something that was written to the state."""

    __slots__ = ()

    @abstractmethod
    def take_back(self) -> None:
        """Make the state what it was before; called once, while the state is as it was behind this."""


Undo = list[Step | tuple[Callable[..., object], *tuple[Any, ...]]]
"""Steps, or functions with their arguments, the newest last. What is written for each message is a ``Step``."""

Writer = Callable[[State, Any, Undo | None], None]
"""Writes one kind of mutation to the state; where there is an ``Undo`` it also notes there how to take that back."""

Declare = Callable[[Any], list[RowChange]]
"""Says what one kind of mutation does to the small tables. It reads nothing but the mutation."""


def roll_back(undo: Undo) -> None:
    """Take back what was noted, newest first."""
    while undo:
        step = undo.pop()
        if isinstance(step, tuple):
            function, *arguments = step
            function(*arguments)
        else:
            step.take_back()
