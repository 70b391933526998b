"""A value that does not fit is told with its setting's name and with what the setting takes."""

from typing import Any

import pytest

from elasticq.server.bad_values import unfit
from elasticq.server.settings import Settings


@pytest.mark.parametrize(
    ("section", "values", "told"),
    [
        ("http", {"port": 99_999}, "http.port 99999 is not a whole number from 0 to 65535"),
        ("http", {"port": "x"}, "http.port x is not a whole number from 0 to 65535"),
        ("http", {"port": ""}, 'http.port "" is not a whole number from 0 to 65535'),
        ("http", {"port": [1]}, "http.port is not a whole number from 0 to 65535"),
        ("admin", {"host": ""}, 'admin.host "" is not text of 1 to 253 characters'),
        ("storage", {"memory": "maybe"}, "storage.memory maybe is not true or false"),
        ("storage", {"durability": "fysnc"}, "storage.durability fysnc is not one of fsync, os, none"),
        ("storage", {"data_dir": True}, "storage.data_dir true is not text that is not empty"),
        ("cluster", {"seeds": "a"}, "cluster.seeds a is not a list"),
        ("cluster", {"seeds": ["a:1", 2]}, "cluster.seeds is not a list"),
        ("queues", {"jobs": {"delay_s": 1_000}}, "queues.jobs.delay_s 1000 is not a whole number from 0 to 900"),
        ("queues", {"jobs": {"tags": {"a": 1}}}, "queues.jobs.tags is not a table"),
        ("queues", {"jobs": 3}, "queues.jobs 3 is not a table"),
        ("auto_create", {"template": {"fifo": 3}}, "auto_create.template.fifo 3 is not true or false"),
        ("auth", {"keys": [3]}, "auth.keys[0] 3 is not a table"),
        (
            "node",
            {"id": "a b"},
            'node.id "a b" is not a name of 1 to 63 letters, digits, ., _ and -, which begins with a letter or a digit',
        ),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_what_is_taken(section: str, values: Any, told: str) -> None:
    assert list(unfit({section: values}, Settings, str)) == [told]


def test_a_secret_is_not_shown() -> None:
    keys = [{"access_key_id": "a", "secret_access_key": "s" * 300}]
    (told,) = unfit({"auth": {"keys": keys}}, Settings, str)
    assert told == "auth.keys[0].secret_access_key is not text of 1 to 256 characters"


def test_all_that_is_wrong_is_told_under_the_name_that_was_given() -> None:
    sections = {"http": {"port": -1, "idle_s": 75}, "log": {"slow_ms": 0}}
    assert [line.split()[0] for line in unfit(sections, Settings, "--{}".format)] == ["--http.port", "--log.slow_ms"]
