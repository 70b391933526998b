"""Histories as JSON lines."""

import msgspec
import pytest

from elasticq.checks.history import (
    ChangeVisibility,
    Delete,
    HandedOut,
    Receive,
    Send,
    SentMessage,
    dump_lines,
    load_lines,
)

EVENTS = [
    Send(
        client="p", queue="q", invoke_us=1, complete_us=2, outcome="ok", guid="00", messages=[SentMessage("ü", ["1"])]
    ),
    Receive(
        client="c",
        queue="q",
        invoke_us=3,
        complete_us=4,
        outcome="ok",
        visibility_ms=5_000,
        messages=[HandedOut("1", "h", "ü")],
    ),
    ChangeVisibility(client="c", queue="q", invoke_us=4, message_id="1", receipt_handle="h", visibility_ms=0),
    Delete(client="c", queue="q", invoke_us=5, outcome="fail", complete_us=6, message_id="1", receipt_handle="h"),
]


def test_history_survives_its_json_lines() -> None:
    assert list(load_lines(dump_lines(EVENTS).splitlines())) == EVENTS


def test_each_event_is_a_line_with_its_kind() -> None:
    kinds = [msgspec.json.decode(line)["kind"] for line in dump_lines(EVENTS).splitlines()]
    assert kinds == ["send", "receive", "change_visibility", "delete"]


def test_empty_lines_are_skipped() -> None:
    assert list(load_lines([b"", b"\n", *dump_lines(EVENTS[:1]).splitlines()])) == EVENTS[:1]


def test_line_that_is_no_event_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        list(load_lines([b'{"kind":"shout"}']))
