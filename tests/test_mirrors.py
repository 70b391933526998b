"""Each module of the package has its tests beside it, in tests/<room>/test_<module>.py, or stands in the list below.

A module that only declares (constants, structs, protocols) needs none: there is nothing in it that could be wrong
without a test of its users noticing. Whoever adds a module writes its test; the list is for what exists only as a
part of something else, and it must not grow without a reason.
"""

import ast
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, TESTS = ROOT / "elasticq", ROOT / "tests"
SYSTEM = "system"
"""The folder of tests of what mirrors no module: clients, processes and clusters of them, archives, documents."""


class Elsewhere(NamedTuple):
    """modules: paths in the package, with wildcards; tests: what tests them, in tests/."""

    reason: str
    modules: str
    tests: str


ELSEWHERE = (
    Elsewhere("a world runs as a whole: fixed seeds, and planted faults that each part must catch",
              "sim/*", "sim/test_planted_faults.py sim/test_seeds.py"),
    Elsewhere("what a history tells is read by the checks alone, and judged there",
              "checks/queue_history.py", "checks/test_queue.py checks/test_leases.py"),
    Elsewhere("what the light clients share is tried by each of them",
              "client/calls.py", "client/test_sqs.py client/test_sns.py"),
    Elsewhere("commands that ask a server or a cluster: each runs against real ones",
              "cli/admin_options.py cli/carry.py cli/server.py cli/verify.py",
              "cli/test_queues.py cli/test_main.py cli/test_cluster.py"),
    Elsewhere("rules of one attribute or action, shown by what the actions answer",
              "engine/stored/redrive_policies.py engine/redrive/move_actions.py "
              "engine/deduplication.py engine/actions/queue_attributes.py",
              "engine/redrive/test_dead_letters.py engine/redrive/test_mover.py engine/actions/test_fifo.py "
              "engine/actions/test_attributes.py"),
    Elsewhere("rules and ARNs of topics, shown by what the actions answer; copies, by what reaches the queues",
              "engine/topics/fan_out.py engine/topics/publish_attributes.py engine/stored/subscription_attributes.py "
              "engine/topics/arns.py "
              "engine/stored/topic_attributes.py engine/topics/paging.py engine/topics/removal.py",
              "engine/topics/test_actions.py engine/topics/test_subscriptions.py engine/topics/test_publish.py"),
    Elsewhere("rows of topics and the index over them, which are one: compared after any history",
              "engine/writers/topics.py", "engine/stored/test_topic_index.py"),
    Elsewhere("rows of consumer groups and what is decided for them, which show in the index after any history",
              "engine/consumer_groups/rebalance.py engine/writers/consumer_groups.py",
              "engine/stored/test_consumer_group_index.py engine/consumer_groups/test_actions.py"),
    Elsewhere("actions of the settings and of the testing pages, tested with them",
              "engine/actions/declare.py engine/actions/testing.py",
              "server/test_queues.py node/test_first_use.py node/test_advance.py"),
    Elsewhere("the order of a standard queue whose messages have groups, compared with a naive one",
              "engine/ordering/fair.py", "engine/actions/test_fair_queues.py engine/ordering/test_fair_histories.py"),
    Elsewhere("the state that every test of the engine drives and compares",
              "engine/state.py engine/context.py",
              "engine/test_apply.py engine/views/test_dump.py"),
    Elsewhere("what another member may send, refused as the frame or entry that it comes in",
              "engine/validation.py replication/validation.py", "node/test_frames.py"),
    Elsewhere("calls between members, which take two of them",
              "node/waits/pending_calls.py node/forwarder.py node/waits/backpressure.py",
              "node/test_cluster.py node/test_bridge.py node/test_sizes.py"),
    Elsewhere("what members tell proxies", "node/announcer.py", "node/test_proxy.py"),
    Elsewhere("the parts of a node, which it makes together", "node/parts.py", "node/test_node.py"),
    Elsewhere("the replica's timers draw from it, by seed",
              "replication/seeded_random.py", "replication/test_replica.py"),
    Elsewhere("the server's side of a request, in each test that sends bytes; faults, as a client sees them",
              "http/context.py http/faults.py", "http/test_protocol.py http/pages/test_slow.py testing/test_faults.py"),
    Elsewhere("a link takes two members that meet over real sockets",
              "peers/connection.py peers/link.py", "peers/test_peers.py peers/test_floods.py"),
    Elsewhere("node, storage, runtime and peers wired to a member: a process, or a cluster of them",
              "server/declare.py server/cluster_process.py server/view.py server/view_of_topics.py",
              "server/test_life.py server/test_member.py server/test_proxy.py server/test_queues.py "
              "server/test_watched.py"),
    Elsewhere("parts of Spark's reading that mean something beside Spark, or in the model that kills them at any step",
              "spark/acknowledge.py spark/collector.py spark/datasource.py spark/driver.py spark/lease.py "
              "spark/wal.py",
              "spark/model/test_model.py spark/test_source.py spark/test_batch.py spark/test_consuming.py"),
    Elsewhere("what is about to be written to the rows: written, read again and compared as a whole",
              "storage/rows/batches.py storage/rows/statements.py storage/rows/tables.py",
              "storage/rows/test_rows.py storage/test_rows_crash.py"),
    Elsewhere("every storage passes the same tests, and these are its parts",
              "storage/errors.py storage/interface.py storage/rowdb.py storage/sqlite.py storage/writer.py",
              "storage/test_storage.py"),
    Elsewhere("what can still be read of a damaged file shows in its repair, and in its backup",
              "storage/rows/salvage.py storage/offline/backup.py", "storage/offline/test_repair.py cli/test_data.py"),
    Elsewhere("operations of the REST API, by what they answer at the port",
              "rest/api.py rest/messages.py rest/queues.py engine/actions/by_sequence.py", "http/pages/test_rest.py"),
    Elsewhere("servers and clusters inside a test: each part by what a test does with them",
              "testing/asynchronous.py testing/clock.py testing/host.py testing/view.py",
              "testing/test_server.py testing/test_cluster.py"),
)  # fmt: skip


def is_code(line: ast.stmt) -> bool:
    """Not a docstring, nor three dots."""
    return not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))


def is_field(function: str, line: ast.stmt) -> bool:
    """Whether it gives a new object a field, as a struct's declaration does for a class that cannot be one."""
    return function == "__init__" and isinstance(line, (ast.Assign, ast.AnnAssign))


def does_something(source: str) -> bool:
    """Whether a module has a function with a body."""
    functions = (
        node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    return any(is_code(line) and not is_field(function.name, line) for function in functions for line in function.body)


def modules() -> list[str]:
    """Those that do something, by their path in the package."""
    paths = [path for path in PACKAGE.rglob("*.py") if path.name not in ("__init__.py", "__main__.py")]
    return sorted(str(path.relative_to(PACKAGE)) for path in paths if does_something(path.read_text()))


def mirror_of(module: str) -> str:
    path = Path(module)
    return str(path.with_name(f"test_{path.name}"))


def files_of_tests() -> set[str]:
    return {str(path.relative_to(TESTS)) for path in TESTS.rglob("test_*.py")}


def complaints(modules: Iterable[str], tests: set[str], listed: Iterable[Elsewhere]) -> list[str]:
    """What is missing, and what of the list is stale."""
    bare = [module for module in modules if mirror_of(module) not in tests]
    patterns = [pattern for each in listed for pattern in each.modules.split()]
    found = [
        f"elasticq/{module} has no tests/{mirror_of(module)}"
        for module in bare
        if not any(fnmatchcase(module, pattern) for pattern in patterns)
    ]
    found += [
        f"the list names {pattern}, which has its mirror or is none"
        for pattern in patterns
        if not any(fnmatchcase(module, pattern) for module in bare)
    ]
    found += [f"the list names {pattern} twice" for pattern in set(patterns) if patterns.count(pattern) > 1]
    found += [
        f"the list names tests/{test}, which is not there"
        for each in listed
        for test in each.tests.split()
        if test not in tests
    ]
    return found


def test_each_module_has_its_mirror_or_a_reason() -> None:
    assert complaints(modules(), files_of_tests(), ELSEWHERE) == []


def test_folders_of_tests_are_rooms_of_the_package() -> None:
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("*.py") if path.parent != TESTS}
    assert SYSTEM in folders
    assert [folder for folder in folders - {SYSTEM} if not (PACKAGE / folder / "__init__.py").is_file()] == []


LISTED = [Elsewhere("with b", "a/c.py d/*", "a/test_b.py")]


@pytest.mark.parametrize(
    ("modules", "tests", "complaint"),
    [
        ({"a/b.py", "a/c.py", "d/e.py"}, {"a/test_b.py"}, ""),
        ({"a/b.py", "a/c.py", "d/e.py", "a/new.py"}, {"a/test_b.py"}, "elasticq/a/new.py has no tests/a/test_new.py"),
        ({"a/b.py", "a/c.py", "d/e.py", "f/b.py"}, {"a/test_b.py"}, "elasticq/f/b.py has no tests/f/test_b.py"),
        ({"a/b.py", "a/c.py", "d/e.py"}, {"a/test_b.py", "a/test_c.py"}, "the list names a/c.py, which has its mirror"),
        ({"a/b.py", "d/e.py"}, {"a/test_b.py"}, "the list names a/c.py, which has its mirror or is none"),
        ({"a/b.py", "a/c.py"}, {"a/test_b.py"}, "the list names d/*"),
        ({"a/c.py", "d/e.py"}, {"b/test_b.py"}, "the list names tests/a/test_b.py, which is not there"),
    ],
)
def test_planted_gaps_and_stale_entries_are_found(modules: set[str], tests: set[str], complaint: str) -> None:
    found = complaints(sorted(modules), tests, LISTED)
    assert len(found) == bool(complaint), found
    assert not found or found[0].startswith(complaint)


@pytest.mark.parametrize(
    ("source", "does"),
    [
        ("LIMIT = 3\nclass Base(Exception):\n    '''Says.'''", False),
        (
            "class Shape(Protocol):\n    def area(self) -> int:\n        '''In m.'''\n    def name(self): ...",
            False,
        ),
        ("def area(self): return 3", True),
        ("class Shape:\n    async def area(self):\n        '''Says.'''\n        await self.x", True),
    ],
)
def test_what_only_declares_is_told_from_what_does_something(source: str, does: bool) -> None:
    assert does_something(source) is does
