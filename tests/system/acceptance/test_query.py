"""The Query protocol by hand, as old SDKs and curl speak it: forms in, XML out."""

import base64
import hashlib
from typing import Any
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

import pytest

from tests.system.acceptance.raw import AUTHORIZATION, Endpoint, form_pairs

NAMESPACE = "http://queue.amazonaws.com/doc/2012-11-05/"


@pytest.fixture
def queue(endpoint: Endpoint) -> str:
    """The QueueUrl of a fresh standard queue."""
    answer = endpoint.query("CreateQueue", {"QueueName": f"query-{uuid4().hex}"})
    return str(answer.xml["CreateQueueResult"]["QueueUrl"])


def members(value: Any) -> list[Any]:
    """A flattened list as xmltodict gives it: nothing, one member, or a list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def received(endpoint: Endpoint, queue: str, **options: Any) -> list[Any]:
    result = endpoint.query("ReceiveMessage", {"QueueUrl": queue} | options).xml["ReceiveMessageResult"]
    return members((result or {}).get("Message"))


def counts(endpoint: Endpoint, queue: str) -> tuple[int, int, int]:
    """(visible, in flight, delayed)."""
    names = [f"ApproximateNumberOfMessages{suffix}" for suffix in ("", "NotVisible", "Delayed")]
    answer = endpoint.query("GetQueueAttributes", {"QueueUrl": queue, "AttributeNames": names})
    shown = {a["Name"]: int(a["Value"]) for a in members(answer.xml["GetQueueAttributesResult"]["Attribute"])}
    return shown[names[0]], shown[names[1]], shown[names[2]]


def test_answer_is_xml_of_the_sqs_namespace_with_a_request_id(endpoint: Endpoint, queue: str) -> None:
    answer = endpoint.query("GetQueueUrl", {"QueueName": queue.rsplit("/", 1)[1]})
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/xml")
    assert answer.body.lstrip().startswith((b"<?xml", b"<GetQueueUrlResponse"))
    assert answer.xml["@xmlns"] == NAMESPACE
    assert answer.xml["GetQueueUrlResult"]["QueueUrl"] == queue
    assert answer.xml["ResponseMetadata"]["RequestId"]


def test_message_goes_round(endpoint: Endpoint, queue: str) -> None:
    body = 'line\r\n\ttab "quotes" <&> ü 漢 🎉'
    attributes = {
        "colour": {"DataType": "String", "StringValue": "grün & <rot>"},
        "picture": {"DataType": "Binary", "BinaryValue": base64.b64encode(bytes(range(256))).decode()},
    }
    sent = endpoint.query("SendMessage", {"QueueUrl": queue, "MessageBody": body, "MessageAttributes": attributes})
    result = sent.xml["SendMessageResult"]
    assert result["MD5OfMessageBody"] == hashlib.md5(body.encode()).hexdigest()
    (message,) = received(endpoint, queue, AttributeNames=["All"], MessageAttributeNames=["All"])
    assert (message["MessageId"], message["Body"]) == (result["MessageId"], body)
    assert message["MD5OfMessageAttributes"] == result["MD5OfMessageAttributes"]
    assert {a["Name"]: a["Value"] for a in message["MessageAttribute"]} == attributes
    assert {a["Name"]: a["Value"] for a in message["Attribute"]}["ApproximateReceiveCount"] == "1"
    assert received(endpoint, queue) == []
    shown = {"QueueUrl": queue, "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": 0}
    assert endpoint.query("ChangeMessageVisibility", shown).status == 200
    (again,) = received(endpoint, queue, WaitTimeSeconds=5)
    removed = endpoint.query("DeleteMessage", {"QueueUrl": queue, "ReceiptHandle": again["ReceiptHandle"]})
    assert list(removed.xml) == ["@xmlns", "ResponseMetadata"]
    assert counts(endpoint, queue) == (0, 0, 0)


def test_digests_are_the_same_as_by_json(endpoint: Endpoint, queue: str) -> None:
    parameters = {
        "QueueUrl": queue,
        "MessageBody": "body",
        "MessageAttributes": {"n": {"DataType": "Number", "StringValue": "1"}},
        "MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-2-3"}},
    }
    by_query = endpoint.query("SendMessage", parameters).xml["SendMessageResult"]
    by_json = endpoint.json("SendMessage", parameters).document
    assert by_query.pop("MessageId") != by_json.pop("MessageId")
    assert by_query == by_json


def test_batches_send_change_and_delete(endpoint: Endpoint, queue: str) -> None:
    entries: list[dict[str, Any]] = [{"Id": f"e{number}", "MessageBody": f"body {number}"} for number in range(9)]
    entries.append({"Id": "late", "MessageBody": "late", "DelaySeconds": 901})
    sent = endpoint.query("SendMessageBatch", {"QueueUrl": queue, "Entries": entries}).xml["SendMessageBatchResult"]
    assert [entry["Id"] for entry in sent["SendMessageBatchResultEntry"]] == [f"e{number}" for number in range(9)]
    assert sent["BatchResultErrorEntry"]["Id"] == "late"
    assert sent["BatchResultErrorEntry"]["SenderFault"] == "true"
    messages = received(endpoint, queue, MaxNumberOfMessages=10)
    assert len(messages) == 9
    handles = [{"Id": str(number), "ReceiptHandle": m["ReceiptHandle"]} for number, m in enumerate(messages)]
    shown = [handle | {"VisibilityTimeout": 0} for handle in handles[:2]]
    changed = endpoint.query("ChangeMessageVisibilityBatch", {"QueueUrl": queue, "Entries": shown})
    result = changed.xml["ChangeMessageVisibilityBatchResult"]
    assert [entry["Id"] for entry in result["ChangeMessageVisibilityBatchResultEntry"]] == ["0", "1"]
    assert counts(endpoint, queue) == (2, 7, 0)
    removed = endpoint.query("DeleteMessageBatch", {"QueueUrl": queue, "Entries": handles})
    assert len(removed.xml["DeleteMessageBatchResult"]["DeleteMessageBatchResultEntry"]) == 9
    assert counts(endpoint, queue) == (0, 0, 0)


def test_attributes_are_set_and_shown(endpoint: Endpoint, queue: str) -> None:
    changes = {"QueueUrl": queue, "Attributes": {"VisibilityTimeout": "7", "DelaySeconds": "3"}}
    assert endpoint.query("SetQueueAttributes", changes).status == 200
    answer = endpoint.query("GetQueueAttributes", {"QueueUrl": queue, "AttributeNames": ["All"]})
    shown = {a["Name"]: a["Value"] for a in answer.xml["GetQueueAttributesResult"]["Attribute"]}
    assert (shown["VisibilityTimeout"], shown["DelaySeconds"]) == ("7", "3")
    by_json = endpoint.json("GetQueueAttributes", {"QueueUrl": queue, "AttributeNames": ["All"]})
    assert by_json.document["Attributes"] == shown


def test_create_takes_attributes(endpoint: Endpoint) -> None:
    parameters = {"QueueName": f"query-{uuid4().hex}", "Attributes": {"VisibilityTimeout": "7"}}
    queue = endpoint.query("CreateQueue", parameters).xml["CreateQueueResult"]["QueueUrl"]
    answer = endpoint.query("GetQueueAttributes", {"QueueUrl": queue, "AttributeNames": ["VisibilityTimeout"]})
    attribute = answer.xml["GetQueueAttributesResult"]["Attribute"]
    assert attribute == {"Name": "VisibilityTimeout", "Value": "7"}


def test_list_queues_pages_within_an_account(endpoint: Endpoint) -> None:
    account = f"{uuid4().int % 10**12:012d}"
    for number in range(3):
        endpoint.query("CreateQueue", {"QueueName": f"page-{number}"}, account=account)
    parameters: dict[str, Any] = {"QueueNamePrefix": "page-", "MaxResults": 2}
    first = endpoint.query("ListQueues", parameters, account=account).xml["ListQueuesResult"]
    assert len(first["QueueUrl"]) == 2
    parameters["NextToken"] = first["NextToken"]
    rest = endpoint.query("ListQueues", parameters, account=account).xml["ListQueuesResult"]
    assert "NextToken" not in rest
    listed = [*first["QueueUrl"], *members(rest["QueueUrl"])]
    assert sorted(listed) == [f"{endpoint.url}/{account}/page-{number}" for number in range(3)]


def test_purge_and_delete_queue(endpoint: Endpoint, queue: str) -> None:
    endpoint.query("SendMessage", {"QueueUrl": queue, "MessageBody": "body"})
    assert endpoint.query("PurgeQueue", {"QueueUrl": queue}).status == 200
    assert counts(endpoint, queue) == (0, 0, 0)
    assert endpoint.query("DeleteQueue", {"QueueUrl": queue}).status == 200
    answer = endpoint.query("SendMessage", {"QueueUrl": queue, "MessageBody": "body"})
    assert answer.error[:2] == (400, "AWS.SimpleQueueService.NonExistentQueue")


def test_error_is_xml_with_type_code_and_empty_detail(endpoint: Endpoint) -> None:
    answer = endpoint.query("GetQueueUrl", {"QueueName": "no-such-queue"})
    assert answer.status == 400
    assert answer.xml["Error"] == {
        "Type": "Sender",
        "Code": "AWS.SimpleQueueService.NonExistentQueue",
        "Message": "The specified queue does not exist for this wsdl version.",
        "Detail": None,
    }
    assert answer.xml["RequestId"]


def test_queue_may_be_named_by_the_path(endpoint: Endpoint, queue: str) -> None:
    path = urlsplit(queue).path
    assert endpoint.query("SendMessage", {"MessageBody": "body"}, path=path).status == 200
    assert counts(endpoint, queue) == (1, 0, 0)


def test_queue_url_parameter_beats_the_path(endpoint: Endpoint, queue: str) -> None:
    parameters = {"QueueUrl": queue, "MessageBody": "body"}
    assert endpoint.query("SendMessage", parameters, path="/000000000000/other").status == 200
    assert counts(endpoint, queue) == (1, 0, 0)


def test_reading_by_query_string_of_a_get(endpoint: Endpoint, queue: str) -> None:
    pairs = {"Action": "GetQueueUrl", "Version": "2012-11-05", "QueueName": queue.rsplit("/", 1)[1]}
    answer = endpoint.request("GET", f"/?{urlencode(pairs)}")
    assert answer.xml["GetQueueUrlResult"]["QueueUrl"] == queue


def test_queue_url_without_action_is_no_operation(endpoint: Endpoint, queue: str) -> None:
    answer = endpoint.request("GET", urlsplit(queue).path)
    assert answer.status == 404
    assert b"<UnknownOperationException" in answer.body


@pytest.mark.parametrize("action", ["CreateQueue", "ListQueues"])
def test_account_actions_are_refused_on_a_queue_url(endpoint: Endpoint, queue: str, action: str) -> None:
    answer = endpoint.query(action, {"QueueName": "x"}, path=urlsplit(queue).path)
    assert answer.error == (400, "InvalidAction", f"The action {action} is not valid for this endpoint.")


def test_empty_result_is_an_empty_element(endpoint: Endpoint, queue: str) -> None:
    answer = endpoint.query("ReceiveMessage", {"QueueUrl": queue})
    assert b"<ReceiveMessageResult/>" in answer.body


def json_answer(endpoint: Endpoint, path: str, **parameters: str) -> tuple[int, Any]:
    """What a signed GET gets that wants JSON."""
    headers = {"Accept": "application/json", "Authorization": AUTHORIZATION.format(account="000000000000")}
    answer = endpoint.request("GET", f"{path}?{urlencode(parameters)}", headers=headers)
    assert answer.headers["content-type"].startswith("application/json")
    return answer.status, answer.document


def test_accept_header_turns_the_answer_into_json(endpoint: Endpoint, queue: str) -> None:
    body = '{"a": "b\rc"} &quot;'
    attributes = {"n": {"DataType": "Number", "StringValue": "1"}}
    sent = endpoint.json("SendMessage", {"QueueUrl": queue, "MessageBody": body, "MessageAttributes": attributes})
    status, answer = json_answer(
        endpoint, "/", Action="ReceiveMessage", QueueUrl=queue, **{"MessageAttributeName.1": "All"}
    )
    (message,) = answer["ReceiveMessageResponse"]["ReceiveMessageResult"]["messages"]
    assert (status, message["Body"]) == (200, body)
    assert message["MessageId"] == sent.document["MessageId"]
    assert message["MessageAttributes"] == [{"Name": "n", "Value": attributes["n"]}]
    assert message["Attributes"] is None
    assert answer["ReceiveMessageResponse"]["ResponseMetadata"]["RequestId"]


def test_accept_header_turns_lists_and_empty_answers_into_json(endpoint: Endpoint, queue: str) -> None:
    path = urlsplit(queue).path
    _, answer = json_answer(endpoint, path, Action="GetQueueAttributes", **{"AttributeName.1": "VisibilityTimeout"})
    result = answer["GetQueueAttributesResponse"]["GetQueueAttributesResult"]
    assert result == {"Attributes": [{"Name": "VisibilityTimeout", "Value": "30"}]}
    _, answer = json_answer(endpoint, "/", Action="ListQueues", QueueNamePrefix=queue.rsplit("/", 1)[1])
    assert answer["ListQueuesResponse"]["ListQueuesResult"]["queueUrls"] == [queue]
    _, answer = json_answer(endpoint, path, Action="SendMessage", MessageBody="x")
    assert answer["SendMessageResponse"]["SendMessageResult"]["SequenceNumber"] is None
    _, answer = json_answer(endpoint, path, Action="PurgeQueue")
    assert list(answer["PurgeQueueResponse"]) == ["ResponseMetadata"]


def test_accept_header_turns_an_error_into_json(endpoint: Endpoint, queue: str) -> None:
    status, answer = json_answer(endpoint, urlsplit(queue).path, Action="ListQueues")
    message = "The action ListQueues is not valid for this endpoint."
    assert (status, answer["Error"]) == (400, {"Code": "InvalidAction", "Message": message, "Type": "Sender"})


def test_posted_form_may_want_json_too(endpoint: Endpoint, queue: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    body = urlencode({"Action": "GetQueueUrl", "QueueName": queue.rsplit("/", 1)[1]}).encode()
    answer = endpoint.request("POST", "/", body, headers)
    assert answer.document["GetQueueUrlResponse"]["GetQueueUrlResult"] == {"QueueUrl": queue}


def test_accept_header_means_nothing_to_json_1_0(endpoint: Endpoint, queue: str) -> None:
    answer = endpoint.json("ListQueueTags", {"QueueUrl": queue}, {"Accept": "application/json"})
    assert answer.headers["content-type"] == "application/x-amz-json-1.0"
    assert answer.document == {}


@pytest.mark.parametrize("protocol", ["json", "query"])
def test_trace_header_of_a_request_goes_with_its_messages(endpoint: Endpoint, queue: str, protocol: str) -> None:
    traced = {"MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "own"}}}
    entries = [{"Id": "1", "MessageBody": "m"}, {"Id": "2", "MessageBody": "traced"} | traced]
    parameters = {"QueueUrl": queue, "Entries": entries}
    headers = {"X-Amzn-Trace-Id": "Root=1-2-3;Sampled=1"}
    if protocol == "json":
        endpoint.json("SendMessageBatch", parameters, headers)
    else:
        pairs = [("Action", "SendMessageBatch"), *form_pairs("SendMessageBatch", parameters)]
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        endpoint.request("POST", "/", urlencode(pairs).encode(), headers)
    asked = {"QueueUrl": queue, "MaxNumberOfMessages": 10, "MessageSystemAttributeNames": ["AWSTraceHeader"]}
    messages = endpoint.json("ReceiveMessage", asked).document["Messages"]
    seen = {message["Body"]: message["Attributes"]["AWSTraceHeader"] for message in messages}
    assert seen == {"m": "Root=1-2-3;Sampled=1", "traced": "own"}


def test_trace_header_that_no_message_can_carry_is_left_out(endpoint: Endpoint, queue: str) -> None:
    headers = {"X-Amzn-Trace-Id": "x" * 1_025}
    endpoint.json("SendMessage", {"QueueUrl": queue, "MessageBody": "m"}, headers)
    asked = {"QueueUrl": queue, "MessageSystemAttributeNames": ["AWSTraceHeader"]}
    assert "Attributes" not in endpoint.json("ReceiveMessage", asked).document["Messages"][0]
