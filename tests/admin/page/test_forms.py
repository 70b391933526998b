"""Forms, and the same for the AWS CLI and boto3: what is written must do the same."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from awscli.clidriver import create_clidriver
from botocore.session import get_session

from elasticq.admin.calls import NotExecuted
from elasticq.admin.page import forms
from tests.admin.operator import Operator

SEND: dict[str, Any] = {
    "QueueUrl": "http://127.0.0.1:9324/000000000000/q",
    "MessageBody": 'it\'s "quoted"\n$HOME',
    "DelaySeconds": 3,
    "MessageAttributes": {
        "n": {"DataType": "Number", "StringValue": "5"},
        "b": {"DataType": "Binary", "BinaryValue": "aGk="},
    },
}


def test_fields_become_members() -> None:
    fields = [
        ("QueueUrl", "q"),
        ("MessageBody", "two\r\nlines"),
        ("DelaySeconds", "3"),
        ("MessageGroupId", ""),
        ("MessageAttributes", "n:Number=5\nname=a=b\n\nb:Binary=aGk="),
    ]
    assert forms.members("SendMessage", fields) == {
        "QueueUrl": "q",
        "MessageBody": "two\nlines",
        "DelaySeconds": 3,
        "MessageAttributes": {
            "n": {"DataType": "Number", "StringValue": "5"},
            "name": {"DataType": "String", "StringValue": "a=b"},
            "b": {"DataType": "Binary", "BinaryValue": "aGk="},
        },
    }


def test_an_empty_field_is_left_out_unless_it_takes_something_away() -> None:
    fields = [("QueueUrl", "q"), ("Attributes.DelaySeconds", ""), ("Attributes.Policy+", ""), ("Attributes.A", "1")]
    assert forms.members("SetQueueAttributes", fields) == {"QueueUrl": "q", "Attributes": {"Policy": "", "A": "1"}}


def test_tags_and_lists() -> None:
    assert forms.members("TagQueue", [("Tags", "a=1\nb = 2")]) == {"Tags": {"a": "1", "b": "2"}}
    assert forms.members("UntagQueue", [("TagKeys", "a, b")]) == {"TagKeys": ["a", "b"]}


@pytest.mark.parametrize(
    ("action", "field", "told"),
    [
        ("SendMessage", ("DelaySeconds", "soon"), "not an integer"),
        ("TagQueue", ("Tags", "no equals sign"), "NAME=VALUE"),
        ("Nothing", ("a", "b"), "no action"),
    ],
)
def test_a_field_that_cannot_be_read_is_told(action: str, field: tuple[str, str], told: str) -> None:
    with pytest.raises(NotExecuted, match=told):
        forms.members(action, [field])


def test_times_are_typed_in_utc_or_in_ms() -> None:
    for typed in ("2027-01-30T08:00", "2027-01-30T08:00:00", "1801296000000"):
        asked = forms.members("ElasticqReschedule", [("MessageIds", "a"), ("DeliverAt", typed)])
        assert asked == {"MessageIds": ["a"], "DeliverAt": 1_801_296_000_000}
    fields = [("MessageAttributes.ElasticqDeliverAt:Number", "2027-01-30T08:00"), ("MessageAttributes", "a=1")]
    fields.append(("MessageAttributes.ElasticqPriority:Number", ""))
    assert forms.members("SendMessage", fields)["MessageAttributes"] == {
        "ElasticqDeliverAt": {"DataType": "Number", "StringValue": "1801296000000"},
        "a": {"DataType": "String", "StringValue": "1"},
    }
    with pytest.raises(NotExecuted, match="not an integer"):
        forms.members("ElasticqReschedule", [("DeliverAt", "soon")])


def run(python: str) -> None:
    """Run what the page shows, as somebody who copies it does."""
    done = subprocess.run([sys.executable, "-c", python], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_python_that_is_shown_does_the_same(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    url = operator.act("CreateQueue", {"QueueName": "python"})[1]["QueueUrl"]
    endpoint = url.rsplit("/", 2)[0]
    run(forms.as_boto3("SendMessage", {**SEND, "QueueUrl": url, "DelaySeconds": 0}, endpoint, "us-east-1"))
    asked = {"QueueUrl": url, "MessageAttributeNames": ["All"]}
    (got,) = operator.act("ReceiveMessage", asked)[1]["Messages"]
    assert (got["Body"], got["MessageAttributes"]) == (SEND["MessageBody"], SEND["MessageAttributes"])
    run(forms.as_boto3("ListQueues", {}, endpoint, "us-east-1"))


def test_the_command_that_is_shown_does_the_same(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    url = operator.act("CreateQueue", {"QueueName": "command"})[1]["QueueUrl"]
    endpoint = url.rsplit("/", 2)[0]
    driver = create_clidriver()
    number = {"n": SEND["MessageAttributes"]["n"]}  # version 1 takes bytes as they are, version 2 wants base64
    for action, given in (
        ("SendMessage", {**SEND, "QueueUrl": url, "DelaySeconds": 0, "MessageAttributes": number}),
        ("SetQueueAttributes", {"QueueUrl": url, "Attributes": {"VisibilityTimeout": "7"}}),
        ("UntagQueue", {"QueueUrl": url, "TagKeys": ["a", "b"]}),
    ):
        words = shlex.split(forms.as_cli(action, given, endpoint, "us-east-1"))
        assert words[0] == "aws"
        assert driver.main(words[1:]) == 0, action
    asked: dict[str, Any] = {"QueueUrl": url, "MessageAttributeNames": ["All"]}
    (got,) = operator.act("ReceiveMessage", asked)[1]["Messages"]
    assert (got["Body"], got["MessageAttributes"]) == (SEND["MessageBody"], number)
    told = operator.act("GetQueueAttributes", {"QueueUrl": url, "AttributeNames": ["VisibilityTimeout"]})[1]
    assert told == {"Attributes": {"VisibilityTimeout": "7"}}


def test_what_aws_has_not_is_shown_for_curl(operator: Operator) -> None:
    url = operator.act("CreateQueue", {"QueueName": "curled"})[1]["QueueUrl"]
    operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "it's"})
    (message,) = operator.act("Peek", {"QueueUrl": url})[1]["Messages"]
    told = {action: forms.is_ours(action) for action in ("DeleteBySequence", "ElasticqReschedule", "Peek", "Publish")}
    assert told == {"DeleteBySequence": True, "ElasticqReschedule": True, "Peek": True, "Publish": False}
    given = {"QueueUrl": url, "Sequence": message["Sequence"]}
    words = shlex.split(forms.as_curl("/api/actions/DeleteBySequence", given, operator.url))
    assert words[:2] == ["curl", "-s"]
    asked = words[2].removeprefix(operator.url), words[-1].encode(), {words[4].split(": ")[0]: words[4].split(": ")[1]}
    status, _, _ = operator.ask(*asked)
    assert (status, operator.act("Peek", {"QueueUrl": url})[1]["Messages"]) == (200, [])
    assert ' -H "Authorization: Bearer $TOKEN" ' in forms.as_curl("/x", {}, operator.url, has_token=True)


TEMPLATES = Path(forms.__file__).parent / "templates"
FIELD = re.compile(r'name="([A-Za-z][A-Za-z.+:/]*)"')
BUTTON = re.compile(r"act\(\"(\w+)\", \w+, [^{]*\{([^}]*)\}")


def forms_of_the_page() -> Iterator[tuple[str, set[str]]]:
    """Actions of all forms, each with the members that its fields give."""
    for template in sorted(TEMPLATES.glob("*.html")):
        text = template.read_text()
        for form in re.findall(r"<form.*?</form>", text, re.DOTALL):
            for action in re.findall(r'hx-post="/page/do/(\w+)"', form):
                yield action, {re.split(r"[./+]", name)[0] for name in FIELD.findall(form)}
        for action, fields in BUTTON.findall(text):
            yield action, {name for name in re.findall(r'"(\w+)":', fields) if not name.startswith("_")}


def test_each_form_of_aws_s_has_members_that_its_tools_know() -> None:
    found = list(forms_of_the_page())
    assert len({action for action, _ in found}) >= 20
    models = {name: get_session().get_service_model(name) for name in ("sqs", "sns")}
    for action, members in found:
        if not forms.is_ours(action):
            service, name = forms.service_of(action)
            known = models[service].operation_model(name).input_shape.members
            assert members <= set(known), (action, members)


def test_flags_and_values_that_look_like_options_are_taken_by_the_command(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    url = operator.act("CreateQueue", {"QueueName": "flagged"})[1]["QueueUrl"]
    topic = operator.act("CreateTopic", {"Name": "flagged"})[1]["TopicArn"]
    endpoint = url.rsplit("/", 2)[0]
    fields = [("TopicArn", topic), ("Protocol", "sqs"), ("Endpoint", "arn:aws:sqs:us-east-1:000000000000:flagged")]
    subscribe = forms.members("Subscribe", [*fields, ("ReturnSubscriptionArn", "true")])
    driver = create_clidriver()
    for action, given in (
        ("Subscribe", subscribe),
        ("SendMessage", {"QueueUrl": url, "MessageBody": "--not-an-option"}),
    ):
        words = shlex.split(forms.as_cli(action, given, endpoint, "us-east-1"))
        assert driver.main(words[1:]) == 0, words
    assert operator.act("Peek", {"QueueUrl": url})[1]["Messages"][0]["Body"] == "--not-an-option"
    run(forms.as_boto3("Subscribe", subscribe, endpoint, "us-east-1"))


def test_no_letter_of_a_body_ends_the_command() -> None:
    body = "';\n rm -rf / #\"$(date)`"
    words = shlex.split(forms.as_cli("SendMessage", {"MessageBody": body}, "http://127.0.0.1:9324", "us-east-1"))
    assert words[-1] == body
