"""What a file of writers offers for each of its mutations, and how what was written is taken back."""

from collections.abc import Callable
from typing import Any

from elasticq.engine.state import State
from elasticq.engine.tables import RowChange

Undo = list[tuple[Callable[..., object], *tuple[Any, ...]]]
"""Functions with their arguments, the newest last."""

Writer = Callable[[State, Any, Undo | None], None]
"""Writes one kind of mutation to the state; where there is an ``Undo`` it also notes there how to take that back."""

Declare = Callable[[Any], list[RowChange]]
"""Says what one kind of mutation does to the small tables. It reads nothing but the mutation."""


def roll_back(undo: Undo) -> None:
    """Take back what was noted, newest first."""
    while undo:
        function, *arguments = undo.pop()
        function(*arguments)
