"""GoAWS's file of settings."""

from pathlib import Path

import pytest

from elasticq.server import goaws
from elasticq.server.hocon import MigrationError
from elasticq.server.settings import SettingsError, declarations, load

FILE = """
Local:
  Host: goaws
  Port: 4100
  Region: us-east-2
  AccountId: "100010001000"
  LogToFile: false
  QueueAttributeDefaults:
    VisibilityTimeout: 45
  Queues:
    - Name: local-queue1
    - Name: local-queue3
      RedrivePolicy: '{"maxReceiveCount": 9, "deadLetterTargetArn": "arn:aws:sqs:us-east-2:100010001000:local-queue1"}'
    - Name: local-queue3-dlq
  Topics:
    - Name: local-topic1
      Subscriptions:
        - QueueName: local-queue4
          Raw: true
          FilterPolicy: '{"foo": ["bar"]}'
        - Protocol: http
          EndPoint: http://127.0.0.1:9/hook
        - Protocol: email
    - Name: local-topic2
NewColour:
  Port: 1
"""


def test_queues_topics_and_subscriptions_are_taken_over(tmp_path: Path) -> None:
    file = tmp_path / "goaws.yaml"
    file.write_text(FILE)
    notes: list[str] = []
    settings = load(file, {}, {}, notes=notes)
    assert (settings.http.port, settings.node.region, settings.node.account) == (4100, "us-east-2", "100010001000")
    assert list(settings.queues) == ["local-queue1", "local-queue3", "local-queue3-dlq", "local-queue4"]
    assert settings.queues["local-queue4"].attributes == {"VisibilityTimeout": "45"}
    third = settings.queues["local-queue3"]
    assert (third.dead_letter_queue, third.max_receive_count) == ("local-queue1", 9)
    assert settings.http.host == "0.0.0.0"
    assert settings.auth.allowed_hosts == ["goaws", "us-east-2.goaws"]
    first, second = settings.topics["local-topic1"].subscriptions
    assert (first.queue, first.raw, first.attributes) == ("local-queue4", True, {"FilterPolicy": '{"foo": ["bar"]}'})
    assert second.url == "http://127.0.0.1:9/hook"
    assert settings.topics["local-topic2"].subscriptions == []
    assert notes == [
        "only the environment Local is read",
        "LogToFile is ignored",
        "a subscription of local-topic1 names neither a queue nor a web server, and is ignored",
    ]


def test_queue_may_stand_before_its_dead_letter_queue(tmp_path: Path) -> None:
    """GoAWS's own goaws.yaml has this order. Its ARN names any account."""
    file = tmp_path / "goaws.yaml"
    file.write_text(
        "Local: {Queues: [{Name: a, RedrivePolicy: "
        """'{"maxReceiveCount": 100, "deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:b"}'}, {Name: b}]}"""
    )
    loaded = load(file, {}, {"storage": {"memory": True}})
    assert [getattr(command, "queue_name", "") for command in declarations(loaded)] == ["b", "a"]


def test_dead_letter_queue_that_the_file_does_not_have_is_created(tmp_path: Path) -> None:
    file = tmp_path / "goaws.yaml"
    policy = '{"maxReceiveCount": 3, "deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:b"}'
    file.write_text(f"Local: {{Queues: [{{Name: a, IsFIFO: false, RedrivePolicy: '{policy}'}}]}}")
    notes: list[str] = []
    assert list(load(file, {}, {}, notes=notes).queues) == ["a", "b"]
    assert notes[-1] == "RedrivePolicy of queue a names b, which is not in the file: it is created"


@pytest.mark.parametrize(
    ("given", "account", "note"),
    [
        ("01234567901", "001234567901", "AccountId 01234567901 is read as 001234567901"),
        ("queue", "000000000000", "AccountId queue is ignored: an account has 12 digits"),
    ],
)
def test_account_may_be_any_text_as_in_goaws(tmp_path: Path, given: str, account: str, note: str) -> None:
    file = tmp_path / "goaws.yaml"
    file.write_text(f'Local: {{AccountId: "{given}", Queues: [{{Name: a}}]}}')
    notes: list[str] = []
    assert load(file, {}, {}, notes=notes).node.account == account
    assert note in notes


def test_values_that_sqs_refuses_are_ignored_with_a_note(tmp_path: Path) -> None:
    """GoAWS's own test file has the size."""
    file = tmp_path / "goaws.yaml"
    file.write_text(
        "Local: {SqsPort: 9324, SnsPort: 9292, Queues: [{Name: a, MaximumMessageSize: 128, DelaySeconds: 3}]}"
    )
    notes: list[str] = []
    loaded = load(file, {}, {}, notes=notes)
    assert (loaded.http.port, loaded.queues["a"].attributes) == (9324, {"DelaySeconds": "3"})
    assert notes[:2] == [
        "MaximumMessageSize = 128 of queue a is ignored: Invalid value for the parameter MaximumMessageSize.",
        "SnsPort is ignored: SNS is at the port of SQS, 9324",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- a", "not a file of GoAWS"),
        ("", "not a file of GoAWS"),
        ("Local: [", "expected"),
        ("Local: {Queues: 1}", "Queues is not a list"),
        ("Local: {Queues: [a]}", "an entry of Queues is not a mapping"),
        ("Local: {Topics: [{}]}", "has no Name"),
    ],
)
def test_what_is_none_of_its_files_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "goaws.yml"
    file.write_text(text)
    with pytest.raises(MigrationError, match=reason):
        goaws.read(file, [])
    with pytest.raises(SettingsError, match=reason):
        load(file, {}, {})
