"""The classes that the table of actions names."""

import pytest

from elasticq.model.actions import BY_NAME
from elasticq.model.classes import COMMANDS, RESULTS, named
from elasticq.model.commands import Command
from elasticq.model.results import Result, StaleResult


def test_table_finds_every_class_that_it_names() -> None:
    assert COMMANDS.keys() == BY_NAME.keys()
    assert RESULTS.keys() == {row.result for row in BY_NAME.values()} | {StaleResult.__name__}


@pytest.mark.parametrize(
    ("base", "name"), [(Command, "NoSuchAction"), (Command, "EmptyResult"), (Result, "SendMessage")]
)
def test_name_without_a_class_of_its_kind_is_reported(base: type, name: str) -> None:
    with pytest.raises(LookupError, match=name):
        named(base, [name])
