"""One request of the command line: what it sends, what it makes of an answer, and who is no server."""

import socket

import pytest

from elasticq.cli.ask import Answer, BadUrl, Unreachable, ask
from tests.client.scripted import CUT, Scripted, answer, headers


def test_a_question_has_its_document_and_its_token() -> None:
    with Scripted(answer({"told": 1}, "409 Conflict")) as server:
        assert ask(server.endpoint, "POST", "/orders", 10, {"order": "verify"}, token="t") == Answer(409, {"told": 1})
        (request,) = server.requests
    assert request.startswith(b"POST /orders HTTP/1.1\r\n")
    assert request.endswith(b'{"order": "verify"}')
    assert headers(request)["authorization"] == "Bearer t"


@pytest.mark.parametrize("body", [b"", b"[1]", b"<html>", b"[" * 100_000])
def test_a_body_that_is_no_object_is_an_empty_one(body: bytes) -> None:
    with Scripted(answer(body)) as server:
        assert ask(server.endpoint, "GET", "/", 10) == Answer(200, {})


@pytest.mark.parametrize("url", ["", "127.0.0.1:9324", "ftp://a", "http://", "http://a:x", "http://[::1"])
def test_what_is_no_url_is_told(url: str) -> None:
    with pytest.raises(BadUrl, match="is not an http URL"):
        ask(url, "GET", "/", 10)


@pytest.mark.parametrize("script", [CUT, b"SSH-2.0-x\r\n\r\n"])
def test_what_does_not_speak_http_is_unreachable(script: bytes) -> None:
    with Scripted(script) as server, pytest.raises(Unreachable, match="does not answer"):
        ask(server.endpoint, "GET", "/", 10)


def test_nobody_there_is_unreachable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(Unreachable, match="does not answer"):
            ask("http://127.0.0.1", "GET", "/", 10, port=unused.getsockname()[1])
