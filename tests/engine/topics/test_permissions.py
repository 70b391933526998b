"""AddPermission and RemovePermission of topics."""

import json
from typing import Any

import pytest

from elasticq.model import errors
from elasticq.model import topic_commands as t
from tests.engine.topic_desk import TopicDesk, arn

STRANGERS = ["111122223333", "444455556666"]


@pytest.fixture
def desk() -> TopicDesk:
    made = TopicDesk()
    made.topic()
    return made


def statements(desk: TopicDesk) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(desk.attributes()["Policy"])["Statement"]
    return found


def test_statement_stands_behind_that_of_the_owner(desk: TopicDesk) -> None:
    desk.do(t.AddTopicPermission(arn(), "one", STRANGERS[:1], ["Publish"]))
    desk.do(t.AddTopicPermission(arn(), "two", STRANGERS, ["Publish", "Subscribe"]))
    owner, one, two = statements(desk)
    assert owner["Sid"] == "__default_statement_ID"
    assert one == {
        "Sid": "one",
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::111122223333:root"},
        "Action": "SNS:Publish",
        "Resource": arn(),
    }
    assert two["Action"] == ["SNS:Publish", "SNS:Subscribe"]
    assert two["Principal"] == {"AWS": [f"arn:aws:iam::{account}:root" for account in STRANGERS]}


def test_permission_is_removed_by_its_label_and_an_unknown_one_is_no_error(desk: TopicDesk) -> None:
    desk.do(t.AddTopicPermission(arn(), "one", STRANGERS[:1], ["Publish"]))
    for label in ("one", "one", "two"):
        desk.do(t.RemoveTopicPermission(arn(), label))
    assert len(statements(desk)) == 1


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (t.AddTopicPermission(arn(), "one", STRANGERS, ["Publish"]), "Statement already exists"),
        (t.AddTopicPermission(arn(), "x", STRANGERS, ["Fly"]), "Policy statement action out of service scope!"),
        (t.AddTopicPermission(arn(), "x", STRANGERS, []), "Policy statement action out of service scope!"),
        (t.AddTopicPermission(arn(), "x", ["nobody"], ["Publish"]), "AWSAccountId"),
        (t.AddTopicPermission(arn(), None, STRANGERS, ["Publish"]), "Label Reason: no value for required parameter"),
        (t.RemoveTopicPermission(arn(), ""), "Label Reason: no value for required parameter"),
    ],
)
def test_what_is_no_permission_is_refused(desk: TopicDesk, command: t.TopicCommand, text: str) -> None:
    desk.do(t.AddTopicPermission(arn(), "one", STRANGERS[:1], ["Publish"]))
    with pytest.raises(errors.InvalidParameter) as caught:
        desk.do(command)
    assert caught.value.message == f"Invalid parameter: {text}"
