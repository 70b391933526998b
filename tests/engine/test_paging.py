"""Pages of names: each name once, in order, on as many pages as are asked for."""

from collections.abc import Iterator

import pytest

from elasticq.engine.paging import page
from elasticq.model.errors import InvalidParameterValue

NAMES = [f"queue-{number:04}" for number in range(1_002)]


def names_behind(name: str) -> Iterator[str]:
    return (each for each in NAMES if each > name)


@pytest.mark.parametrize("size", [1, 3, 334, 501, 1_000])
def test_the_pages_are_all_names_once_and_in_order(size: int) -> None:
    found: list[str] = []
    token = None
    while True:
        names, token = page(names_behind, size, token)
        found += names
        if token is None:
            break
        assert len(names) == size
    assert found == NAMES


def test_without_max_results_there_are_a_thousand_and_no_token() -> None:
    assert page(names_behind, None, None) == (NAMES[:1_000], None)


def test_no_more_names_are_asked_for_than_are_shown_and_one() -> None:
    rest = names_behind("")
    page(lambda name: rest, 10, None)
    assert next(rest) == NAMES[11]


@pytest.mark.parametrize(("size", "token"), [(0, None), (1_001, None), (5, "ä"), (5, "AAA"), (5, "_w==")])
def test_what_is_no_page_is_refused(size: int, token: str | None) -> None:
    with pytest.raises(InvalidParameterValue):
        page(names_behind, size, token)
