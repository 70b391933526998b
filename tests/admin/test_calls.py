"""SQS's actions, executed by the admin port."""

import pytest

from elasticq.admin.calls import ACTIONS
from elasticq.model.actions import BY_NAME, TOPIC_ACTIONS
from tests.admin.operator import JSON, Operator
from tests.server.process import Server


def test_each_action_of_the_table_can_be_asked_for_but_internal_ones() -> None:
    assert {operation.command.__name__ for operation in ACTIONS.values()} == BY_NAME.keys() - {
        "AdvanceClock", "DeclareQueue", "DeleteAllQueues"
    }  # fmt: skip
    for operation in ACTIONS.values():
        assert operation.read_only == BY_NAME[operation.command.__name__].is_read_only
    assert {row.name for row in TOPIC_ACTIONS} - {"AddPermission", "RemovePermission"} < ACTIONS.keys()


def test_an_action_is_executed_and_answers_as_aws_json_does(operator: Operator) -> None:
    status, made = operator.act("CreateQueue", {"QueueName": "calls"})
    assert status == 200
    url = made["QueueUrl"]
    status, sent = operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "hello"})
    assert (status, sent["MD5OfMessageBody"]) == (200, "5d41402abc4b2a76b9719d911017c592")
    status, got = operator.act("ReceiveMessage", {"QueueUrl": url, "VisibilityTimeout": 0})
    assert [message["Body"] for message in got["Messages"]] == ["hello"]
    assert operator.act("DeleteQueue", {"QueueUrl": url}) == (200, {})


def test_another_region_is_another_world(operator: Operator) -> None:
    assert operator.act("CreateQueue", {"QueueName": "far"}, "?region=eu-west-1")[0] == 200
    status, missing = operator.act("GetQueueUrl", {"QueueName": "far"})
    assert (status, missing["__type"]) == (400, "com.amazonaws.sqs#QueueDoesNotExist")
    row = next(row for row in operator.get("/api/queues?prefix=far")["queues"])
    assert (row["region"], row["account"]) == ("eu-west-1", "000000000000")


@pytest.mark.parametrize(
    ("action", "query", "status", "told"),
    [
        ("Nothing", "", 404, "InvalidAction"),
        ("DeclareQueue", "", 404, "InvalidAction"),
        ("ListQueues", "?account=1", 400, "InvalidParameterValue"),
        ("ListQueues", "?region=UPPER", 400, "InvalidParameterValue"),
        ("PurgeQueue", "", 400, "MissingRequiredParameterException"),
    ],
)
def test_what_cannot_be_done_is_refused_as_aws_refuses(
    operator: Operator, action: str, query: str, status: int, told: str
) -> None:
    found, answer = operator.act(action, {}, query)
    assert (found, answer["__type"].partition("#")[2]) == (status, told)


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"QueueName": 1}', b"\xff", b"[" * 10_000])
def test_a_body_that_is_no_command_is_refused(operator: Operator, body: bytes) -> None:
    status, text, _ = operator.ask("/api/actions/CreateQueue", body, JSON)
    assert status == 400
    assert "SerializationException" in text


def test_a_body_of_another_type_is_refused_as_a_web_page_could_send_it(operator: Operator) -> None:
    status, text, _ = operator.ask(
        "/api/actions/CreateQueue", b'{"QueueName": "foreign"}', {"Content-Type": "text/plain"}
    )
    assert status == 415, text


def test_a_read_only_port_changes_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("read_only") / "elasticq.toml"
    file.write_text("[admin]\nread_only = true\n[queues.kept]\n")
    with Server("--config", str(file)) as server:
        operator = Operator(server.admin())
        status, refused = operator.act("PurgeQueue", {"QueueUrl": "kept"})
        assert (status, refused["__type"].partition("#")[2]) == (403, "ReadOnly")
        assert operator.act("ListQueues", {})[0] == 200
        assert operator.ask("/page/order/verify", b"", {"HX-Request": "true"})[0] == 403
        assert operator.ask("/cluster/orders", b'{"order": "verify"}', JSON)[0] == 403
        assert "read-only" in operator.ask("/")[1]


def test_actions_of_topics_answer_as_the_sdks_do(operator: Operator) -> None:
    status, made = operator.act("CreateTopic", {"Name": "calls-topic"})
    assert (status, made) == (200, {"TopicArn": "arn:aws:sns:us-east-1:000000000000:calls-topic"})
    given = {**made, "Label": "all", "AWSAccountId": ["123456789012"], "ActionName": ["Publish"]}
    assert operator.act("AddTopicPermission", given) == (200, {})
    told = operator.act("GetTopicAttributes", made)[1]["Attributes"]
    assert "123456789012" in told["Policy"]
    assert operator.act("Publish", {"TopicArn": f"{made['TopicArn']}s", "Message": "x"})[0] == 404
    status, refused = operator.act("CreateTopic", {"Name": 7})
    assert (status, refused["__type"].partition("#")[2]) == (400, "SerializationException")
