"""Settings that all tests share: how hypothesis searches, what it may keep, the admin port, their order.

Also what errors are in memory before a test, for tests of what failed calls leave behind, and which tests there
are for the build that runs: compiled modules, or their sources.
"""

import gc
import os
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from elasticq import BUILD
from tests.memory import errors_in_memory

# Two cores may be shared with other runs: a slow example is no finding. Nothing is kept between runs,
# so a clean clone and a used one test the same; print_blob gives what is needed to repeat a failure.
settings.register_profile(
    "house",
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")

# Servers of several tests may run at once, each with an admin port; who wants a certain one names it.
os.environ["ELASTICQ_ADMIN__PORT"] = "0"


def shuffled(items: Iterable[pytest.Item], seed: int) -> list[pytest.Item]:
    """The tests in the order of this seed. Those of a file stay together: what a file starts is started once."""
    files = defaultdict(list)
    for item in items:
        files[item.path].append(item)
    chance = random.Random(seed)
    groups = list(files.values())
    chance.shuffle(groups)
    for group in groups:
        chance.shuffle(group)
    return [item for group in groups for item in group]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", metavar="SEED", type=int, help="run the tests in the order of this seed")


def pytest_report_header(config: pytest.Config) -> list[str]:
    seed = config.getoption("shuffle")
    order = [] if seed is None else [f"order of the tests: --shuffle {seed}"]
    return [f"elasticq: {BUILD}; tests marked {marker_of_the_other_build()} are left out", *order]


def marker_of_the_other_build() -> str:
    return "pure" if BUILD.is_compiled else "compiled"


# Last: plugins sort what was collected, too.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    others = [item for item in items if item.get_closest_marker(marker_of_the_other_build())]
    if others:
        config.hook.pytest_deselected(items=others)
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]
    seed = config.getoption("shuffle")
    if seed is not None:
        items[:] = shuffled(items, seed)


@pytest.fixture
def errors_before() -> Iterator[int]:
    """And no collector from then on: what is more afterwards is there because something holds it."""
    gc.collect()
    gc.disable()
    yield errors_in_memory()
    gc.enable()
