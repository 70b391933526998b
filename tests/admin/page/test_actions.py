"""Forms: what they execute, what they only show, and what they refuse."""

import json
from html import unescape

import pytest

from tests.admin.operator import FORM, Operator
from tests.admin.page.browser import form, page


def test_a_form_does_what_it_says(operator: Operator) -> None:
    status, told, _ = operator.ask("/page/do/CreateQueue", form(QueueName="made-by-form"), FORM)
    assert (status, "made-by-form:</strong> The queue was created." in told) == (200, True)
    sent = form(QueueUrl="made-by-form", MessageBody="from a form", MessageAttributes="n:Number=5")
    assert operator.ask("/page/do/SendMessage", sent, FORM)[0] == 200
    (message,) = operator.act("Peek", {"QueueUrl": "made-by-form"})[1]["Messages"]
    assert message["MessageAttributes"] == {"n": {"DataType": "Number", "StringValue": "5"}}
    status, told, _ = operator.ask("/page/do/SendMessage", form(QueueUrl="made-by-form"), FORM)
    assert (status, "MissingRequiredParameter" in told) == (400, True)


def test_the_name_must_be_typed_before_all_is_deleted(operator: Operator) -> None:
    url = operator.act("CreateQueue", {"QueueName": "typed"})[1]["QueueUrl"]
    operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "kept"})
    status, told, _ = operator.ask("/page/do/PurgeQueue", form(QueueUrl=url, _typed="other"), FORM)
    assert (status, "nothing was done" in told) == (400, True)
    assert len(operator.act("Peek", {"QueueUrl": url})[1]["Messages"]) == 1
    assert operator.ask("/page/do/PurgeQueue", form(QueueUrl=url, _typed="typed"), FORM)[0] == 200
    status, _, headers = operator.ask("/page/do/DeleteQueue", form(QueueUrl=url, _typed="typed"), FORM)
    assert (status, headers["HX-Redirect"]) == (200, "/queues")


def test_code_is_shown_and_not_executed(operator: Operator) -> None:
    for tool, word in (("cli", "create-queue"), ("boto3", "create_queue")):
        status, told, _ = operator.ask(f"/page/as/{tool}/CreateQueue", form(QueueName="only-shown"), FORM)
        assert (status, word in told) == (200, True)
    assert operator.get("/api/queues?prefix=only-shown") == {"queues": []}


def test_what_aws_has_not_is_shown_for_curl_alone(operator: Operator) -> None:
    asked = form(QueueUrl="q", MessageIds="a", _region="eu-west-1")
    status, told, _ = operator.ask("/page/as/curl/ElasticqCancelScheduled", asked, FORM)
    assert status == 200
    assert f"curl -s '{operator.url}/api/actions/ElasticqCancelScheduled?region=eu-west-1'" in unescape(told)
    status, told, _ = operator.ask("/page/order-as/curl/transfer", form(member="n2"), FORM)
    assert (status, f"curl -s {operator.url}/cluster/orders" in unescape(told), '"member": "n2"' in unescape(told)) == (
        200,
        True,
        True,
    )
    assert f"curl -s -X PUT {operator.url}/api/definitions" in unescape(page(operator, "/definitions"))
    for path in ("cli/ElasticqCancelScheduled", "boto3/DeleteBySequence", "curl/SendMessage"):
        assert operator.ask(f"/page/as/{path}", asked, FORM)[0] == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "application/x-www-form-urlencoded"},
        {**FORM, "Origin": "http://evil.example"},
        {**FORM, "Sec-Fetch-Site": "cross-site"},
        {**FORM, "Host": "evil.example"},
    ],
)
def test_a_page_of_another_origin_can_do_nothing(operator: Operator, headers: dict[str, str]) -> None:
    assert operator.ask("/page/do/CreateQueue", form(QueueName="foreign"), headers)[0] == 403
    assert operator.get("/api/queues?prefix=foreign") == {"queues": []}


def test_definitions_can_be_pasted(operator: Operator) -> None:
    pasted = json.dumps({"elasticq": 1, "queues": [{"name": "pasted", "attributes": {"DelaySeconds": "3"}}]})
    status, told, _ = operator.ask("/page/definitions", form(definitions=pasted), FORM)
    assert (status, "1 queues and 0 topics were created" in told) == (200, True)


def test_notes_are_sentences_without_handles(operator: Operator) -> None:
    dead = operator.act("CreateQueue", {"QueueName": "noted-dead"})[1]["QueueUrl"]
    policy = '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:noted-dead", "maxReceiveCount": 1}'
    operator.act("CreateQueue", {"QueueName": "noted", "Attributes": {"RedrivePolicy": policy}})
    operator.act("SendMessage", {"QueueUrl": dead, "MessageBody": "x"})
    given = form(SourceArn="arn:aws:sqs:us-east-1:000000000000:noted-dead")
    status, words, _ = operator.ask("/page/do/StartMessageMoveTask", given, FORM)
    assert (status, "The messages are being moved." in words) == (200, True), words
    assert "<pre" not in words
    status, words, _ = operator.ask("/page/do/SendMessage", form(QueueUrl=dead, MessageBody="y"), FORM)
    assert (status, "The message was sent." in words, "MessageId: " in words) == (200, True, True)
    assert "MD5" not in words


def test_rows_are_compared_in_words(operator: Operator) -> None:
    status, words, _ = operator.ask("/page/order/verify", form(), FORM)
    assert "digest at" not in words
    assert (status, "This server is not in a cluster: there is nothing to compare." in unescape(words)) == (200, True)


def test_policies_are_set_by_fields_and_removed_by_empty_ones(operator: Operator) -> None:
    operator.act("CreateQueue", {"QueueName": "fields-dead"})
    url = operator.act("CreateQueue", {"QueueName": "fields"})[1]["QueueUrl"]

    def attributes(**fields: str) -> dict[str, str]:
        names = {name.replace("__", "/"): value for name, value in fields.items()}
        given = form(QueueUrl=url, **{f"Attributes.{name}+": value for name, value in names.items()})
        status, words, _ = operator.ask("/page/do/SetQueueAttributes", given, FORM)
        assert status == 200, words
        found: dict[str, str] = operator.act("GetQueueAttributes", {"QueueUrl": url, "AttributeNames": ["All"]})[1]
        return dict(found["Attributes"])

    both = {"RedrivePolicy__deadLetterTargetArn": "fields-dead", "RedrivePolicy__maxReceiveCount": "4"}
    stored = json.loads(attributes(**both)["RedrivePolicy"])
    assert stored == {"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:fields-dead", "maxReceiveCount": 4}
    assert "RedrivePolicy" not in attributes(**dict.fromkeys(both, ""))
    weights = attributes(ElasticqFairness="weighted", ElasticqGroupWeights="a=2\nb=5")
    assert json.loads(weights["ElasticqGroupWeights"]) == {"a": 2, "b": 5}
    assert "ElasticqGroupWeights" not in attributes(ElasticqGroupWeights="")


@pytest.mark.parametrize(
    ("name", "fields", "kind"),
    [
        ("kind-standard", {"Attributes.ElasticqFairness": "adaptive"}, "standard"),
        ("kind-fifo.fifo", {"Attributes.FifoQueue": "true", "Attributes.ElasticqPartitions": "4"}, "FIFO"),
        ("kind-priority", {"Attributes.ElasticqOrder": "priority"}, "priority"),
    ],
)
def test_each_kind_of_queue_can_be_created(operator: Operator, name: str, fields: dict[str, str], kind: str) -> None:
    status, words, _ = operator.ask("/page/do/CreateQueue", form(QueueName=name, **fields, _kind=kind), FORM)
    assert status == 200, words
    assert [row["kind"] for row in operator.get(f"/api/queues?prefix={name}")["queues"]] == [kind]
