"""A second API beside SQS is a table and a Service: one that exists only here, by all protocols and both ways."""

from typing import Any

import pytest
import xmltodict
from msgspec import Struct, field
from msgspec.json import decode

from elasticq.http.connection import exchange
from elasticq.http.connection.head import FORM, FORM_FOR_JSON, JSON, HeadReader
from elasticq.model.actions import action
from elasticq.model.commands import Attributes, Command
from elasticq.model.errors import InvalidAction, MissingParameter, SignatureDoesNotMatch, UnknownOperation
from elasticq.model.results import Result
from elasticq.wire.operations import SQS, make_service
from elasticq.wire.sigv4 import Verifier
from tests.http.signing import KEY, NOW_S, signed

NAMESPACE = "http://topics.example.com/doc/2024-01-01/"


class Subscribe(Command):
    topic: str | None = None
    priority: int | None = None
    attributes: Attributes = field(default_factory=dict)


class Subscriber(Struct, rename="pascal"):
    endpoint: str
    count: int | None = None


class SubscribedResult(Result):
    subscription_id: str
    subscribers: list[Subscriber]
    attributes: dict[str, str] = field(default_factory=dict)
    next_token: str | None = None


TOPICS = make_service(
    target_prefix="Topics",
    namespace=NAMESPACE,
    error_prefix="com.example.topics#",
    signing_name="topics",
    table=[action("Subscribe", "SubscribedResult")],
    command_classes={"Subscribe": Subscribe},
    result_classes={"SubscribedResult": SubscribedResult},
)
SUBSCRIBE = TOPICS.operations["Subscribe"]
COMMAND = Subscribe("news", 7, {"Filter": "a&b"})
RESULT = SubscribedResult("s-1", [Subscriber("http://a", 2), Subscriber("http://b")], {"Filter": "a&b"})
BODIES = {
    JSON: b'{"Topic":"news","Priority":7,"Attributes":{"Filter":"a&b"}}',
    FORM: b"Action=Subscribe&Topic=news&Priority=7&Attribute.1.Name=Filter&Attribute.1.Value=a%26b",
}
BODIES[FORM_FOR_JSON] = BODIES[FORM]


@pytest.mark.parametrize("protocol", [JSON, FORM, FORM_FOR_JSON])
def test_a_request_is_decoded(protocol: int) -> None:
    by_target = TOPICS.by_target[b"Topics.Subscribe"] if protocol == JSON else None
    assert exchange.decode((TOPICS,), protocol, by_target, BODIES[protocol], "/") == (SUBSCRIBE, COMMAND)


def test_a_head_is_read_by_the_targets_of_its_service() -> None:
    lines = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: 2\r\n"
    reader = HeadReader(service=TOPICS)
    assert reader.read(lines + b"X-Amz-Target: Topics.Subscribe").operation is SUBSCRIBE
    assert reader.read(lines + b"X-Amz-Target: AmazonSQS.ListQueues").operation is None
    assert HeadReader().read(lines + b"X-Amz-Target: AmazonSQS.ListQueues").operation is SQS.operations["ListQueues"]


def test_an_answer_is_written_as_json() -> None:
    answer = exchange.encode((TOPICS,), JSON, SUBSCRIBE, COMMAND, RESULT, "r")
    assert decode(answer.body) == {
        "SubscriptionId": "s-1",
        "Subscribers": [{"Endpoint": "http://a", "Count": 2}, {"Endpoint": "http://b", "Count": None}],
        "Attributes": {"Filter": "a&b"},
    }


def test_an_answer_is_written_as_xml() -> None:
    answer = exchange.encode((TOPICS,), FORM, SUBSCRIBE, COMMAND, RESULT, "r")
    assert answer.body.decode() == (
        f'<SubscribeResponse xmlns="{NAMESPACE}"><SubscribeResult><SubscriptionId>s-1</SubscriptionId>'
        "<SubscribeResultEntry><Endpoint>http://a</Endpoint><Count>2</Count></SubscribeResultEntry>"
        "<SubscribeResultEntry><Endpoint>http://b</Endpoint></SubscribeResultEntry>"
        "<Attribute><Name>Filter</Name><Value>a&amp;b</Value></Attribute></SubscribeResult>"
        "<ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></SubscribeResponse>"
    )


def test_an_answer_is_written_as_json_for_a_form() -> None:
    answer = decode(exchange.encode((TOPICS,), FORM_FOR_JSON, SUBSCRIBE, COMMAND, RESULT, "r").body)
    assert answer["SubscribeResponse"]["SubscribeResult"]["Attributes"] == [{"Name": "Filter", "Value": "a&b"}]


def test_what_is_required_is_written_when_it_is_empty_and_nothing_else_is() -> None:
    empty = SubscribedResult("", [])
    assert decode(exchange.encode((TOPICS,), JSON, SUBSCRIBE, COMMAND, empty, "r").body) == {
        "SubscriptionId": "",
        "Subscribers": [],
    }


def test_errors_are_those_of_the_service() -> None:
    error = MissingParameter("The request must contain the parameter Topic.")
    in_json = exchange.encode((TOPICS,), JSON, SUBSCRIBE, COMMAND, error, "r")
    assert decode(in_json.body)["__type"] == "com.example.topics#MissingRequiredParameterException"
    in_xml: dict[str, Any] = xmltodict.parse(exchange.encode_error(TOPICS, FORM, error, "r").body)
    assert in_xml["ErrorResponse"]["@xmlns"] == NAMESPACE


def test_actions_of_the_other_service_are_unknown() -> None:
    with pytest.raises(InvalidAction):
        exchange.decode((TOPICS,), FORM, None, b"Action=ListQueues", "/")
    with pytest.raises(InvalidAction):
        exchange.decode((SQS,), FORM, None, BODIES[FORM], "/")
    with pytest.raises(UnknownOperation):
        exchange.decode((TOPICS,), JSON, TOPICS.by_target.get(b"AmazonSQS.ListQueues"), b"{}", "/")


def test_a_signature_for_the_other_service_is_refused() -> None:
    head, _, body = signed().partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    (authorization,) = [line.partition(b": ")[2] for line in lines if line.startswith(b"Authorization: ")]
    assert Verifier([KEY], SQS).check(lines, authorization, body, NOW_S) == KEY
    with pytest.raises(SignatureDoesNotMatch, match="Credential should be scoped to correct service: 'topics'"):
        Verifier([KEY], TOPICS).check(lines, authorization, body, NOW_S)
