"""Options: their kinds and bounds, and errors that tell what to write instead."""

from dataclasses import fields
from pathlib import Path

import pytest

from elasticq.spark.options import Connection, OptionError, Read, name_of, parse, parse_queue
from elasticq.spark.sink import Write


def test_names_are_case_insensitive() -> None:
    assert parse(Read, {"MAXMESSAGESPERTRIGGER": "7", "leaseseconds": "1h"}).max_messages_per_trigger == 7


def test_a_time_may_have_a_unit() -> None:
    assert parse(Read, {"leaseSeconds": "1.5h"}).lease_seconds == 5400
    assert parse(Read, {"retrySeconds": "500 ms"}).retry_seconds == 0.5


def test_an_unknown_option_gets_a_suggestion() -> None:
    with pytest.raises(OptionError, match="no option 'maxmessagepertrigger': did you mean maxMessagesPerTrigger"):
        parse(Read, {"maxMessagePerTrigger": "7"})


def test_a_far_off_option_gets_the_list() -> None:
    with pytest.raises(OptionError, match=r"known are .*queueUrl"):
        parse(Read, {"zzz": "7"})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("mode", "fast", "is not auto, lease, wal or driver"),
        ("partitions", "0", "a whole number from 1 to 10000"),
        ("partitions", "many", "a whole number from 1 to 10000"),
        ("leaseSeconds", "13h", "seconds from 1 to 43200"),
        ("includeAttributes", "maybe", "true or false"),
    ],
)
def test_a_value_that_does_not_fit_says_what_would(name: str, value: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        parse(Read, {name: value})


def test_spark_options_are_let_through() -> None:
    assert parse(Read, {"checkpointLocation": "somewhere"}) == Read()


def test_secrets_are_not_shown() -> None:
    options = parse(Read, {"secretAccessKey": "canary", "sessionToken": "canary"})
    assert "canary" not in repr(options)
    assert "canary" not in repr(options.connection)


def test_a_connection_is_the_same_for_two_queues_of_a_server() -> None:
    first = parse_queue(Read, {"queueName": "a", "endpoint": "http://127.0.0.1:1"})
    second = parse_queue(Read, {"queueName": "b", "endpoint": "http://127.0.0.1:1"})
    assert hash(first.connection) == hash(second.connection)
    assert first.connection == second.connection


def test_the_path_names_the_queue() -> None:
    assert parse_queue(Read, {"path": "jobs"}).queue_name == "jobs"
    assert parse_queue(Read, {"path": "http://127.0.0.1:1/0/jobs"}).queue_url == "http://127.0.0.1:1/0/jobs"


def test_the_url_of_a_queue_tells_the_endpoint_unless_it_is_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.delenv("AWS_ENDPOINT_URL_SQS", raising=False)
    assert parse_queue(Read, {"queueUrl": "http://127.0.0.1:1/0/jobs"}).endpoint == "http://127.0.0.1:1"
    assert parse_queue(Read, {"queueUrl": "https://sqs.eu-west-1.amazonaws.com/0/jobs"}).endpoint == ""
    assert parse_queue(Read, {"queueUrl": "http://a:1/0/jobs", "endpoint": "http://b:2"}).endpoint == "http://b:2"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "none is given"),
        ({"queueName": "a", "queueUrl": "http://a/b"}, "not queueUrl and queueName"),
        ({"queueUrl": "jobs"}, "is no URL; is it meant as queueName"),
    ],
)
def test_exactly_one_queue_is_named(options: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        parse_queue(Read, options)


def test_every_option_says_what_it_is_for() -> None:
    for known in fields(Read):
        assert known.metadata["about"], name_of(known)
        if known.default not in ("", 0, -1.0):
            assert known.metadata["parse"](str(known.default)) == known.default


def test_every_option_of_a_connection_is_one_of_reading() -> None:
    assert {name_of(known) for known in fields(Connection)} < {name_of(known) for known in fields(Read)}


def test_every_option_is_in_the_documentation() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "spark.md").read_text()
    assert [name_of(known) for known in fields(Read) if f"`{name_of(known)}`" not in page] == []


def test_what_a_query_is_started_with_is_no_option_of_ours() -> None:
    assert parse(Write, {"queryName": "a", "outputMode": "append", "checkpointLocation": "b"}) == Write()


@pytest.mark.parametrize(
    ("name", "said"), [("maxOffsetsPerTrigger", "use maxMessagesPerTrigger"), ("subscribe", "use queueName")]
)
def test_an_option_of_kafka_gets_ours(name: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        parse(Read, {name: "7"})


def test_the_first_of_the_endpoints_serves_a_queue_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://usual:1")
    options = parse_queue(Read, {"queueName": "a", "endpoints": "http://n1:1/, http://n2:1"})
    assert (options.endpoint, options.servers) == ("http://n1:1", ("http://n1:1", "http://n2:1"))
    options = parse_queue(Read, {"queueUrl": "http://n3:1/0/a", "endpoints": "http://n1:1"})
    assert options.connection.servers == ("http://n3:1", "http://n1:1")
    with pytest.raises(OptionError, match=r"addresses such as http://n1:9324,http://n2:9324"):
        parse(Read, {"endpoints": "n1:9324"})
    assert parse_queue(Read, {"queueName": "a"}).endpoint == "http://usual:1"
