"""Each field that any entry point reads has a bound, and what entry points make of it passes between members.

A member that takes a call passes it on to the master, whose decoder knows the bounds of commands and nothing else. So
an entry point must refuse first what that decoder would refuse.
"""

import ast
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from elasticq.admin import asking, backups, consumers, definitions, orders
from elasticq.admin.calls import ACTIONS
from elasticq.http import faults
from elasticq.http.pages import testing
from elasticq.model import limits
from elasticq.model.commands import Call
from elasticq.model.errors import SqsError
from elasticq.node.forwarding import Forward, call_of, decode, encode, forward_of
from elasticq.rest import routes
from elasticq.rest.routes import ROUTES, STREAM_QUERY, Route
from elasticq.wire import json
from tests.http.desk import HOST, Desk, Response, json_request
from tests.http.extremes import extremes, largest, unbounded
from tests.http.pages.test_rest import API, asked

PACKAGE = Path(routes.__file__).parents[1]
READ = {
    # a question, and answers of other members
    "admin/asking.py": {"_HistoryOf", "Series", "list[tuple[Key, float, float, float]]"},
    "admin/attention/survey.py": {"Report"},  # what another member answers
    "admin/backups.py": {"_Request", "dict[str, object]"},  # the second: the master's page /cluster
    "admin/calls.py": {"await execute(source, action, msgspec.json.encode(given), owner)"},  # an answer of this server
    # two questions, and the answers to them
    "admin/consumers.py": {"Annotated[int, Meta(ge=0, le=ASKED_MAX)]", "_Numbers", "list[Waiting]", "list[str]"},
    "admin/definitions.py": {"Definitions", "QueueDefinition", "TopicDefinition", "SubscriptionDefinition"},
    "admin/events.py": {"list[Event]"},  # what another member answers
    "admin/orders.py": {"_Request"},
    "admin/comparison.py": {"body"},  # what another member answers
    "admin/page/actions.py": {"answer"},  # an order's answer
    "admin/page/settings.py": {"dict[str, Any]"},  # a stored policy that is shown
    "admin/page/topics.py": {"Publish"},
    "http/pages/peeking.py": {"dict[str, Any]"},  # test_listing_takes_a_queue_url_up_to_its_bound
    "http/pages/testing.py": {"kind"},
    "rest/messages.py": {"dict[str, str]"},  # metadata as the engine keeps it
    "rest/routes.py": {"dict[str, msgspec.Raw]", "kind"},
}
"""What msgspec decodes in the rooms of the entry points; a new place belongs into ENTRIES as well."""
ENTRIES: dict[str, Any] = {
    **{kind.__name__: kind for route in ROUTES for kind in route.takes},
    **{f"operators' {name}": operation.command for name, operation in ACTIONS.items()},
    "definitions": definitions.Definitions,
    "queue of definitions": definitions.QueueDefinition,
    "topic of definitions": definitions.TopicDefinition,
    "subscription of definitions": definitions.SubscriptionDefinition,
    "backup": backups._Request,
    "order": orders._Request,
    "history of a member": asking._HistoryOf,
    "addresses of calls": consumers._Numbers,
    "fault": faults.Order,
    "clock": testing._Clock,
    "reset": testing._Reset,
    "removal of a fault": testing._Removal,
}
READ_ONE_BY_ONE = {"definitions": ["$.queues[]", "$.topics[]"], "topic of definitions": ["$.subscriptions[]"]}
"""The lists whose items are decoded later, each as an entry of its own."""


@pytest.mark.parametrize("name", ENTRIES)
def test_each_field_has_a_bound(name: str) -> None:
    assert list(unbounded(inspect.type_info(ENTRIES[name]))) == READ_ONE_BY_ONE.get(name, [])


def test_a_field_without_a_bound_is_found() -> None:
    class Open(msgspec.Struct):
        text: str
        many: list[dict[str, int]]
        known: bool = False

    found = ["$.text", "$.many", "$.many[]", "$.many[].key", "$.many[].value"]
    assert list(unbounded(inspect.type_info(Open))) == found


def test_each_parameter_of_a_url_has_a_bound() -> None:
    for parameter in (*STREAM_QUERY, *(each for route in ROUTES for each in route.query)):
        bound = parameter.bound
        numbers = {"string": [bound.max_length], "integer": [bound.ge, bound.le], "boolean": []}
        assert None not in numbers[parameter.kind], parameter


def read(source: str) -> Iterator[str]:
    """Yield the types that a source has msgspec decode, or the value where no type is given."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = ast.unparse(node.func)
            if name.startswith("msgspec.") and node.func.attr in ("decode", "convert", "Decoder"):
                kinds = [each.value for each in node.keywords if each.arg == "type"] or node.args[-1:]
                yield from map(ast.unparse, kinds)


def test_entry_points_decode_nothing_else() -> None:
    found = {}
    for room in ("rest", "http", "admin"):
        for path in (PACKAGE / room).rglob("*.py"):
            kinds = set(read(path.read_text()))
            if kinds:
                found[path.relative_to(PACKAGE).as_posix()] = kinds
    assert found == READ


# --- what passes between members ---------------------------------------------------------


def check_passes(call: Call) -> None:
    """Encode a call as it is passed on, and decode it as the master does."""
    frame = encode(forward_of(call, "c" * 16, "n1-1", "n2-2", "i" * 16, 1))
    assert len(frame) <= limits.FRAME_BYTES_MAX
    forward = decode(frame)
    assert isinstance(forward, Forward)
    assert call_of(forward) == call


class Watched:
    """A server whose every call is checked; ``calls`` counts them."""

    def __init__(self) -> None:
        self.desk = Desk(has_testing=True)
        self.calls = 0
        submit = self.desk.context.submit

        def watch(call: Call, ticket: Any) -> None:
            self.calls += 1
            check_passes(call)
            submit(call, ticket)

        self.desk.context.submit = watch

    async def ask(self, method: str, path: str, body: bytes | None = None) -> Response:
        self.calls = 0
        return await self.desk.ask(asked(method, path, body))


@pytest.fixture
async def server() -> AsyncIterator[Watched]:
    watched = Watched()
    await watched.desk.ask(json_request("CreateQueue", {"QueueName": "jobs"}))
    yield watched
    await watched.desk.close()


def path_of(route: Route) -> str:
    return API + route.path.format(queue="jobs", id="1099511627777")


BODIES = [(route, kind) for route in ROUTES for kind in route.takes]
OF_A_BODY = pytest.mark.parametrize(("route", "kind"), BODIES, ids=[f"{r.name}-{k.__name__}" for r, k in BODIES])


@OF_A_BODY
async def test_body_one_beyond_a_bound_is_refused_and_one_within_passes(
    server: Watched, route: Route, kind: type[msgspec.Struct]
) -> None:
    found = list(extremes(inspect.type_info(kind)))
    assert found
    for each in found:
        refused = await server.ask(route.method, path_of(route), msgspec.json.encode(each.beyond))
        assert (refused.status, server.calls) in ((400, 0), (413, 0)), each.place
        if each.within is not None:
            answer = await server.ask(route.method, path_of(route), msgspec.json.encode(each.within))
            assert answer.status < 500, each.place


@OF_A_BODY
async def test_body_with_all_that_it_may_hold_passes(server: Watched, route: Route, kind: type[msgspec.Struct]) -> None:
    for choice in range(4):
        body = largest(inspect.type_info(kind), choice)
        answer = await server.ask(route.method, path_of(route), msgspec.json.encode(body))
        assert answer.status < 500, choice


@pytest.mark.parametrize("route", [route for route in ROUTES if route.query], ids=lambda route: route.name)
async def test_query_one_beyond_a_bound_is_refused_and_one_within_passes(server: Watched, route: Route) -> None:
    for parameter in route.query:
        bound = parameter.bound
        if parameter.kind == "boolean":
            continue
        values: list[tuple[Any, Any]] = [(bound.le, bound.le and bound.le + 1), (bound.ge, bound.ge and bound.ge - 1)]
        if parameter.kind == "string":
            assert bound.max_length is not None
            values = [("1" * bound.max_length, "1" * (bound.max_length + 1))]
        for within, beyond in values:
            no_wait = "" if parameter.name == "wait_s" else "&wait_s=0"
            if parameter.name == "wait_s":
                await server.ask("POST", f"{API}/queues/jobs/messages", b'{"content": "x"}')
            answer = await server.ask(route.method, f"{path_of(route)}?{parameter.name}={within}{no_wait}")
            assert answer.status < 500, parameter
            refused = await server.ask(route.method, f"{path_of(route)}?{parameter.name}={beyond or -1}{no_wait}")
            assert (refused.status, server.calls) == (400, 0), parameter


@pytest.mark.parametrize("route", [route for route in ROUTES if "{queue}" in route.path], ids=lambda route: route.name)
async def test_queue_of_a_path_has_its_bound(server: Watched, route: Route) -> None:
    body = b'{"content": "x", "ids": ["x"], "priority": 1, "lease": "a/1/", "action": "commit"}'
    for name in ("x" * limits.QUEUE_URL_CHARS_MAX, "%C4%B0" * limits.QUEUE_URL_CHARS_MAX):
        path = API + route.path.format(queue=name, id="1099511627777")
        assert (await server.ask(route.method, path, body if route.takes else None)).status in (400, 404)
        assert server.calls
        refused = await server.ask(route.method, path.replace(name, f"{name}x"), body if route.takes else None)
        assert (refused.status, server.calls) == (404, 0)
    for number in (str(1 << 63), "1" * 20, "-1", "\N{SUPERSCRIPT TWO}"):
        if "{id}" in route.path:
            path = API + route.path.format(queue="jobs", id=number)
            refused = await server.desk.ask(asked(route.method, path.replace("\N{SUPERSCRIPT TWO}", "%C2%B2"), body))
            assert refused.status == 400


async def test_listing_takes_a_queue_url_up_to_its_bound(server: Watched) -> None:
    for name, calls in (("x" * limits.QUEUE_URL_CHARS_MAX, 1), ("x" * (limits.QUEUE_URL_CHARS_MAX + 1), 0)):
        for path in (f"/_aws/sqs/messages?QueueUrl={name}", f"/_aws/sqs/messages/us-east-1/{name[13:]}/000000000000"):
            refused = await server.ask("GET", path)
            assert (refused.status, b"NonExistentQueue" in refused.body, server.calls) == (400, True, calls)


# --- pages for tests, and the operators' API -------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", "/_elasticq/clock", testing._Clock),
        ("POST", "/_elasticq/reset", testing._Reset),
        ("POST", "/_elasticq/faults", faults.Order),
        ("DELETE", "/_elasticq/faults", testing._Removal),
    ],
)
async def test_pages_for_tests_refuse_what_is_beyond(server: Watched, method: str, path: str, kind: Any) -> None:
    for each in extremes(inspect.type_info(kind)):
        refused = await server.ask(method, path, msgspec.json.encode(each.beyond))
        assert (refused.status, server.calls) == (400, 0), each.place
        answer = await server.ask(method, path, msgspec.json.encode(each.within))
        assert answer.status < 500, each.place
    nested = await server.ask(method, path, b'{"x":' + b"[" * 100_000)
    assert nested.status == 400


def check_action(action: str, body: Any) -> None:
    """Check the call that an operator's request becomes. Raises the SqsError with which the body is refused."""
    command = json.decode(ACTIONS[action], msgspec.json.encode(body))
    check_passes(Call(command, "operator", "0" * 12 + "/" + "r" * 32, f"http://{HOST}"))


@pytest.mark.parametrize("action", ACTIONS)
def test_operators_action_one_beyond_a_bound_is_refused_and_one_within_passes(action: str) -> None:
    kind = inspect.type_info(ACTIONS[action].command)
    for each in extremes(kind):
        with pytest.raises(SqsError) as refused:
            check_action(action, each.beyond)
        assert 400 <= refused.value.status < 500, each.place
        if each.within is not None and len(str(each.within)) < limits.SMALL_REQUEST_BYTES_MAX:
            check_action(action, each.within)
    all_of_it = largest(kind, 0)
    if len(msgspec.json.encode(all_of_it)) <= ACTIONS[action].body_bytes_max:
        check_action(action, all_of_it)
