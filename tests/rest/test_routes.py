"""The table of routes: paths are told apart, queries and bodies are read as the table says."""

import pytest

from elasticq.model.errors import InvalidParameterValue
from elasticq.rest import routes
from elasticq.rest import shapes as s
from elasticq.rest.api import Parameter


def test_each_route_is_found_by_its_path_and_method() -> None:
    for route in routes.ROUTES:
        known = {name: text for name, text in (("queue", "a%2Fb"), ("id", "17")) if f"{{{name}}}" in route.path}
        assert routes.find(route.method, route.path.format(**known)) == (route, known)
    assert len({route.name for route in routes.ROUTES}) == len(routes.ROUTES)


@pytest.mark.parametrize("path", ["", "/queues/", "/queues/a/b", "/queues/a/messages/1/2", "/queues//messages"])
def test_other_paths_are_unknown(path: str) -> None:
    with pytest.raises(routes.UnknownPath):
        routes.find("GET", path)


def test_known_path_does_not_take_every_method() -> None:
    with pytest.raises(routes.WrongMethod):
        routes.find("DELETE", "/queues")


def test_query_is_read_by_its_kinds_and_what_is_unknown_is_passed_over() -> None:
    parameters = (
        Parameter("n", "integer", "", 1, 10),
        Parameter("is", "boolean", ""),
        Parameter("text", "string", ""),
        Parameter("none", "string", ""),
    )
    assert routes.read_query(parameters, {"n": "10", "is": "false", "text": "", "more": "x"}) == {
        "n": 10,
        "is": False,
        "text": "",
    }
    for wrong in ({"n": "11"}, {"n": "0"}, {"n": "-1"}, {"n": "٣"}, {"n": "1" * 11}, {"is": "yes"}):
        with pytest.raises(InvalidParameterValue):
            routes.read_query(parameters, wrong)


def test_body_of_two_kinds_is_told_by_its_member() -> None:
    route, _ = routes.find("POST", "/queues/a/messages")
    assert isinstance(routes.read_body(route, b'{"content": "x"}'), s.NewMessage)
    assert isinstance(routes.read_body(route, b'{"messages": [{"content": "x"}]}'), s.NewMessages)
    for wrong in (b"", b"[]", b"{}", b'{"content": 5}', b"[" * 5_000):
        with pytest.raises(InvalidParameterValue):
            routes.read_body(route, wrong)


def test_empty_body_means_the_defaults_where_it_may() -> None:
    route, _ = routes.find("POST", "/queues/a/messages/1/nack")
    assert routes.read_body(route, b"") == s.Nack()
    assert routes.read_body(routes.find("GET", "/queues")[0], b"") is None
