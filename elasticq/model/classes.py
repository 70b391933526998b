"""The classes of the commands and results that the table of actions names."""

from collections.abc import Iterable
from typing import Any, Final

from elasticq.model import (
    commands,
    extensions,
    group_commands,
    group_results,
    identity,
    results,
    topic_commands,
    topic_results,
)
from elasticq.model.actions import BY_NAME
from elasticq.model.commands import Command
from elasticq.model.results import Result, StaleResult

_ALL: Final = {
    name: each
    for module in (
        commands,
        extensions,
        group_commands,
        group_results,
        identity,
        results,
        topic_commands,
        topic_results,
    )
    for name, each in vars(module).items()
    if isinstance(each, type)
}


def named(base: type, names: Iterable[str]) -> dict[str, Any]:
    """Return the subclasses of ``base`` with these names. Raise LookupError if none of the modules has one of them."""
    wanted = set(names)
    found = {name: each for name, each in _ALL.items() if name in wanted and issubclass(each, base)}
    if missing := sorted(wanted - found.keys()):
        raise LookupError(f"the table of actions names {missing}, which no module in elasticq/model/classes.py has")
    return found


COMMANDS: Final[dict[str, type[Command]]] = named(Command, BY_NAME)
"""The class of each command in the table, by its name."""

RESULTS: Final[dict[str, type[Result]]] = named(
    Result, [*(row.result for row in BY_NAME.values()), StaleResult.__name__]
)
"""The class of each result by its name, with that of a read without a master."""
