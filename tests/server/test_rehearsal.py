"""``config check`` passes if and only if a new server starts: both refuse what the rehearsal refuses."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elasticq.cli.main import main
from elasticq.server.settings import SettingsError, load
from elasticq.testing.member import EmbeddedMember

ARN = "arn:aws:sqs:us-east-1:000000000000"
NAMES = ("a", "b", "c", "d.fifo")
FLAGS = {"http": {"port": 0}, "admin": {"port": -1}, "storage": {"memory": True}}


def is_checked(file: Path) -> bool:
    return main(["config", "check", str(file)]) == 0


def has_started(file: Path) -> str:
    """Return what ends a start with this file; empty if the server serves."""

    async def start() -> None:
        member = EmbeddedMember(load(file, {}, FLAGS))
        await member.start()
        await member.kill()

    try:
        asyncio.run(start())
    except SettingsError as error:
        return str(error)
    return ""


def sometimes(values: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=values)


NAME = st.sampled_from((*NAMES, "missing"))
POLICY = st.builds(
    lambda arn, count, field: json.dumps({field: arn, "maxReceiveCount": count}),
    st.sampled_from((f"{ARN}:a", f"{ARN}:d.fifo", f"{ARN}:missing", "arn:aws:sqs:eu-west-1:111111111111:a", "no ARN")),
    st.sampled_from((0, 1, "3", 1_001)),
    st.sampled_from(("deadLetterTargetArn", "deadLetter")),
)
ALLOW = st.sampled_from(
    (
        '{"redrivePermission": "denyAll"}',
        f'{{"redrivePermission": "byQueue", "sourceQueueArns": ["{ARN}:b"]}}',
        '{"redrivePermission": "byQueue"}',
    )
)
FLAG = st.sampled_from(("true", "false", "yes"))
ATTRIBUTES = sometimes(
    {
        "RedrivePolicy": POLICY,
        "RedriveAllowPolicy": ALLOW,
        "DelaySeconds": st.sampled_from(("0", "900", "901", "x")),
        "FifoQueue": FLAG,
        "ContentBasedDeduplication": FLAG,
        "FifoThroughputLimit": st.sampled_from(("perQueue", "perMessageGroupId")),
        "KmsMasterKeyId": st.just("alias/aws/sqs"),
        "SqsManagedSseEnabled": FLAG,
        "Policy": st.sampled_from(('{"Version": "2012-10-17"}', "no JSON")),
        "Colour": st.just("red"),
    }
)
QUEUE = sometimes(
    {
        "delay_s": st.sampled_from((0, 900)),
        "dead_letter_queue": NAME,
        "max_receive_count": st.sampled_from((0, 3)),
        "fifo": st.booleans(),
        "content_based_deduplication": st.booleans(),
        "partitions": st.sampled_from((0, 1, 4)),
        "copy_to": NAME,
        "move_to": NAME,
        "tags": st.sampled_from(({}, {"team": "x"}, {"aws:team": "x"}, {str(n): "x" for n in range(51)})),
        "attributes": ATTRIBUTES,
    }
)
SUBSCRIPTION = sometimes(
    {
        "queue": NAME,
        "url": st.sampled_from(("http://127.0.0.1:9/", "ftp://x")),
        "raw": st.booleans(),
        "filter": st.sampled_from(({"a": ["b"]}, {"a": "b"}, {"a": [{"prefix": 1}]})),
        "filter_body": st.booleans(),
        "dead_letter_queue": NAME,
        "attributes": sometimes({"DeliveryPolicy": st.just("{}"), "RawMessageDelivery": FLAG}),
    }
)
TOPIC = sometimes(
    {
        "fifo": st.booleans(),
        "content_based_deduplication": st.booleans(),
        "subscriptions": st.lists(SUBSCRIPTION, max_size=2),
        "tags": st.sampled_from(({}, {"team": "x"}, {"": "x"})),
        "attributes": sometimes({"DisplayName": st.just("x"), "Colour": st.just("red"), "Policy": st.just("x")}),
    }
)
SETTINGS = st.fixed_dictionaries(
    {"queues": st.dictionaries(st.sampled_from((*NAMES, "a b")), QUEUE, max_size=3)},
    optional={
        "topics": st.dictionaries(st.sampled_from(("t", "t.fifo", "t t")), TOPIC, max_size=2),
        "auto_create": st.fixed_dictionaries({"enabled": st.booleans(), "template": QUEUE}),
        "node": sometimes({"limits": st.sampled_from(("strict", "relaxed")), "single_region": st.booleans()}),
    },
)


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def written(sections: dict[str, Any], file: Path) -> Path:
    file.write_text("\n".join(f"{section} = {toml(values)}" for section, values in sections.items()))
    return file


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SETTINGS)
def test_own_file_is_checked_as_a_start_reads_it(tmp_path: Path, sections: dict[str, Any]) -> None:
    file = written(sections, tmp_path / "e.toml")
    reason = has_started(file)
    assert is_checked(file) == (not reason), reason
    assert "\n" not in reason


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.fixed_dictionaries(
            {"Name": st.sampled_from(NAMES)},
            optional={
                "RedrivePolicy": POLICY,
                "VisibilityTimeout": st.sampled_from((30, -1)),
                "MaximumMessageSize": st.sampled_from((128, 1024)),
                "ContentBasedDeduplication": FLAG,
            },
        ),
        max_size=3,
    ),
    st.lists(
        st.fixed_dictionaries(
            {"QueueName": NAME},
            optional={"Raw": st.booleans(), "FilterPolicy": st.sampled_from(('{"a": ["b"]}', '{"a": "b"}', "x"))},
        ),
        max_size=2,
    ),
)
def test_file_of_goaws_is_checked_as_a_start_reads_it(
    tmp_path: Path, queues: list[dict[str, Any]], subscriptions: list[dict[str, Any]]
) -> None:
    file = tmp_path / "goaws.yaml"  # JSON is YAML
    file.write_text(
        json.dumps({"Local": {"Queues": queues, "Topics": [{"Name": "t", "Subscriptions": subscriptions}]}})
    )
    reason = has_started(file)
    assert is_checked(file) == (not reason), reason


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.sampled_from(NAMES),
        sometimes(
            {
                "defaultVisibilityTimeout": st.sampled_from(("10 seconds", "1 day", "-1 s", "x")),
                "receiveMessageWait": st.sampled_from(("0 seconds", "25 seconds")),
                "deadLettersQueue": st.builds(
                    lambda name, count: {"name": name, "maxReceiveCount": count}, NAME, st.sampled_from((0, 3, 1_001))
                ),
                "fifo": st.booleans(),
                "contentBasedDeduplication": st.booleans(),
                "copyTo": NAME,
                "moveTo": NAME,
                "tags": st.sampled_from(({"a": "b"}, {"aws:a": "b"})),
            }
        ),
        max_size=3,
    ),
    st.sampled_from(("strict", "relaxed")),
)
def test_file_of_elasticmq_is_checked_as_a_start_reads_it(
    tmp_path: Path, queues: dict[str, dict[str, Any]], limits: str
) -> None:
    file = tmp_path / "custom.conf"  # JSON is HOCON
    file.write_text(json.dumps({"queues": queues, "rest-sqs": {"sqs-limits": limits}}))
    reason = has_started(file)
    assert is_checked(file) == (not reason), reason


DENIED = {"attributes": {"RedriveAllowPolicy": '{"redrivePermission": "denyAll"}'}}
REDRIVEN = {"attributes": {"RedrivePolicy": f'{{"deadLetterTargetArn": "{ARN}:b", "maxReceiveCount": 1}}'}}
DEAD = {"dead_letter_queue": "a", "max_receive_count": 1}
PUSHED = {"fifo": True, "subscriptions": [{"url": "http://127.0.0.1:9/"}]}


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        ({"queues": {"a": DENIED, "b": DEAD}}, "queues.b: "),
        ({"queues": {"a": REDRIVEN}}, "queues.a.dead_letter_queue: the settings have no queue b"),
        ({"topics": {"t": PUSHED}}, "topics.t.fifo.subscriptions, number 1: "),
        ({"auto_create": {"enabled": True, "template": DEAD}}, "auto_create.template: "),
    ],
)
def test_what_only_the_execution_finds_is_refused_before_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sections: dict[str, Any], reason: str
) -> None:
    file = written(sections, tmp_path / "e.toml")
    assert not is_checked(file)
    assert reason in capsys.readouterr().err
    assert reason in has_started(file)
