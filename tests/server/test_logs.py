"""Lines of the log."""

import json
import logging
import sys
from typing import Any

from elasticq.server.logs import JsonLine, OneLine


def record(message: str, *arguments: object, **more: Any) -> logging.LogRecord:
    made = logging.LogRecord("elasticq.test", logging.WARNING, "file.py", 1, message, arguments, None)
    made.__dict__.update(more)
    return made


def test_a_line_of_json_has_the_event_and_its_fields() -> None:
    line = json.loads(JsonLine().format(record("request", fields={"status": 400, "queue": "orders"})))
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "warning",
        "logger": "elasticq.test",
        "event": "request",
        "status": 400,
        "queue": "orders",
    }


def test_an_event_is_one_line_whatever_its_fields_hold() -> None:
    odd = record("%s", "a\nb\x1b\u2028", fields={"queue": "c\r\nd"})
    line = JsonLine().format(odd)
    assert "\n" not in line
    assert "\u2028" not in line
    assert json.loads(line)["queue"] == "c\r\nd"
    text = OneLine("%(message)s").format(odd)
    assert text == "a\\nb\\x1b\\x2028 queue=c\\x0d\\nd"


def test_a_trace_is_a_member_of_the_line() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        line = json.loads(JsonLine().format(record("storage_failed", exc_info=sys.exc_info())))
    assert line["event"] == "storage_failed"
    assert line["trace"].endswith("ValueError: broken")
