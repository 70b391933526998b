"""How a client finds out whether an endpoint is elasticq."""

import pytest

from elasticq.client import Unreachable, is_elasticq
from tests.client.scripted import CUT, Scripted, answer


def test_elasticq_is_known_by_its_server_header_and_asked_once() -> None:
    with Scripted(answer(b"OK", Server="elasticq/0.1.0")) as server:
        assert is_elasticq(server.endpoint)
        assert is_elasticq(server.endpoint + "/")
        assert [request.split(b" ")[:2] for request in server.requests] == [[b"GET", b"/health"]]
    with Scripted(answer(b"no", "404 Not Found", Server="other")) as server:
        assert not is_elasticq(server.endpoint)


def test_nobody_there_is_no_verdict() -> None:
    with Scripted(CUT, answer(b"OK", Server="elasticq/0.1.0")) as server:
        with pytest.raises(Unreachable):
            is_elasticq(server.endpoint)
        assert is_elasticq(server.endpoint)
