"""The table of routes: paths are told apart, queries and bodies are read as the table says."""

import pytest
from msgspec import Meta

from elasticq.model.errors import InvalidParameterValue, RequestTooLarge, SerializationError
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


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/queues", ["GET", "POST"]),
        ("/queues/a/messages/1/priority", ["PUT"]),
        ("/queues/a/stream", ["GET"]),
        ("/docs", ["GET"]),
        ("/openapi.json", ["GET"]),
    ],
)
def test_known_path_does_not_take_every_method(path: str, allowed: list[str]) -> None:
    with pytest.raises(routes.WrongMethod) as caught:
        routes.find("PATCH", path)
    assert caught.value.allowed == allowed


def test_body_of_a_route_without_messages_is_small() -> None:
    body = b'{"ids": [' + b'"x", ' * 60_000 + b'"x"], "priority": 1}'
    with pytest.raises(RequestTooLarge):
        routes.read_body(routes.find("PUT", "/queues/a/priority")[0], body)


def test_body_of_messages_has_so_many_strings_at_most() -> None:
    body = b'{"messages": [' + b'{"content": ""}, ' * 60_000 + b'{"content": ""}]}'
    with pytest.raises(SerializationError):
        routes.read_body(routes.find("POST", "/queues/a/messages")[0], body)


def test_query_is_read_by_its_kinds_and_what_is_unknown_is_passed_over() -> None:
    parameters = (
        Parameter("n", "integer", "", Meta(ge=1, le=10)),
        Parameter("is", "boolean", ""),
        Parameter("text", "string", "", Meta(max_length=3)),
        Parameter("none", "string", "", Meta(max_length=3)),
    )
    assert routes.read_query(parameters, {"n": "10", "is": "false", "text": "", "more": "x"}) == {
        "n": 10,
        "is": False,
        "text": "",
    }
    for wrong in ({"n": "11"}, {"n": "0"}, {"n": "-1"}, {"n": "٣"}, {"n": "1" * 11}, {"is": "yes"}, {"text": "long"}):
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
