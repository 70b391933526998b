"""Bad input by both protocols: AWS's code, message and status, and nothing is changed.

Texts are those recorded from the service or quoted by its users. Where only a
code is known the message is None and not compared.
"""

import json
import socket
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.system.acceptance.raw import Endpoint

PROTOCOLS = ("json", "query")
SQS = "AWS.SimpleQueueService."
BAD_VALUE = "InvalidParameterValue"
NAME_RULE = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
ENTRY_ID_RULE = (
    "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
    "It can be at most 80 letters long."
)
TYPE_RULE = "You must use only the following supported type prefixes: Binary, Number, String."
BODY_BYTES_MAX = 1_048_576


class Bad(NamedTuple):
    """A call and the answer it must get; the QueueUrl is added where the action takes one."""

    action: str
    parameters: dict[str, Any]
    code: str
    message: str | None
    status: int = 400


def string(value: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}


def send(**parameters: Any) -> dict[str, Any]:
    return {"MessageBody": "body"} | parameters


def attribute(name: str, value: dict[str, str]) -> dict[str, Any]:
    return send(MessageAttributes={name: value})


def entries(*identifiers: str, **parameters: Any) -> dict[str, Any]:
    return {"Entries": [{"Id": identifier} | parameters for identifier in identifiers]}


def parameter_is_invalid(value: object, name: str, reason: str) -> str:
    return f"Value {value} for parameter {name} is invalid. Reason: {reason}"


def is_required(name: str) -> str:
    return f"The request must contain the parameter {name}."


WAIT_RULE = "Must be >= 0 and <= 20, if provided."
COUNT_RULE = "Must be between 1 and 10, if provided."
GROUP_RULE = "MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length."
TOO_LONG = "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."
HANDLE_RULE = 'The input receipt handle "garbage" is not a valid receipt handle.'
PERMISSION = {"Label": "l", "AWSAccountIds": ["111111111111"], "Actions": ["SendMessage"]}
NOWHERE_ARN = "arn:aws:sqs:us-east-1:000000000000:no-such-queue"
NOWHERE = f'{{"deadLetterTargetArn":"{NOWHERE_ARN}","maxReceiveCount":1}}'
GARBAGE = {"ReceiptHandle": "garbage"}
IN_FORCE = {"VisibilityTimeout": 1}

CALLS: dict[str, Bad] = {
    # queues
    "name with a space": Bad("CreateQueue", {"QueueName": "a b"}, BAD_VALUE, NAME_RULE),
    "name of 81 characters": Bad("CreateQueue", {"QueueName": "a" * 81}, BAD_VALUE, NAME_RULE),
    "name with a slash": Bad("CreateQueue", {"QueueName": "../etc/passwd"}, BAD_VALUE, NAME_RULE),
    "fifo name without FifoQueue": Bad("CreateQueue", {"QueueName": "orders.fifo"}, BAD_VALUE, NAME_RULE),
    "no name": Bad("CreateQueue", {}, "MissingParameter", is_required("QueueName")),
    "FifoQueue=false on a standard queue": Bad(
        "CreateQueue",
        {"QueueName": "standard", "Attributes": {"FifoQueue": "false"}},
        "InvalidAttributeName",
        "Unknown Attribute FifoQueue.",
    ),
    "unknown attribute at create": Bad(
        "CreateQueue",
        {"QueueName": "standard", "Attributes": {"Colour": "green"}},
        "InvalidAttributeName",
        "Unknown Attribute Colour.",
    ),
    "attribute out of range at create": Bad(
        "CreateQueue",
        {"QueueName": "standard", "Attributes": {"DelaySeconds": "901"}},
        "InvalidAttributeValue",
        "Invalid value for the parameter DelaySeconds.",
    ),
    "unknown queue": Bad("GetQueueUrl", {"QueueName": "no-such-queue"}, f"{SQS}NonExistentQueue", None),
    "page of none": Bad("ListQueues", {"MaxResults": 0}, BAD_VALUE, None),
    "page of 1001": Bad("ListQueues", {"MaxResults": 1001}, BAD_VALUE, None),
    "unknown attribute asked": Bad(
        "GetQueueAttributes", {"AttributeNames": ["Colour"]}, "InvalidAttributeName", "Unknown Attribute Colour."
    ),
    **{
        f"{name}={value}": Bad(
            "SetQueueAttributes",
            {"Attributes": {name: value}},
            "InvalidAttributeValue",
            f"Invalid value for the parameter {name}.",
        )
        for name, value in (
            ("VisibilityTimeout", "43201"),
            ("VisibilityTimeout", "-1"),
            ("VisibilityTimeout", "soon"),
            ("DelaySeconds", "901"),
            ("MaximumMessageSize", "1023"),
            ("MaximumMessageSize", "1048577"),
            ("MessageRetentionPeriod", "59"),
            ("MessageRetentionPeriod", "1209601"),
            ("ReceiveMessageWaitTimeSeconds", "21"),
        )
    },
    "one good and one bad attribute": Bad(
        "SetQueueAttributes",
        {"Attributes": {"DelaySeconds": "5", "VisibilityTimeout": "43201"}},
        "InvalidAttributeValue",
        "Invalid value for the parameter VisibilityTimeout.",
    ),
    "unknown attribute set": Bad(
        "SetQueueAttributes",
        {"Attributes": {"Colour": "green"}},
        "InvalidAttributeName",
        "Unknown Attribute Colour.",
    ),
    "read-only attribute set": Bad(
        "SetQueueAttributes", {"Attributes": {"QueueArn": "arn:aws:sqs:x:000000000000:y"}}, "InvalidAttributeName", None
    ),
    "two kinds of encryption": Bad(
        "SetQueueAttributes",
        {"Attributes": {"KmsMasterKeyId": "alias/key", "SqsManagedSseEnabled": "true"}},
        "InvalidAttributeName",
        "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.",
    ),
    # sends
    "no body": Bad("SendMessage", {}, "MissingParameter", is_required("MessageBody")),
    "empty body": Bad("SendMessage", {"MessageBody": ""}, "MissingParameter", is_required("MessageBody")),
    "body with a control character": Bad("SendMessage", {"MessageBody": "a\x00b"}, "InvalidMessageContents", None),
    "body with U+FFFE": Bad("SendMessage", {"MessageBody": "a\ufffeb"}, "InvalidMessageContents", None),
    "body too long": Bad("SendMessage", {"MessageBody": "x" * (BODY_BYTES_MAX + 1)}, BAD_VALUE, TOO_LONG),
    "body and attributes too long": Bad(
        "SendMessage",
        {"MessageBody": "x" * (BODY_BYTES_MAX - 10), "MessageAttributes": {"name": string("value")}},
        BAD_VALUE,
        TOO_LONG,
    ),
    "delay beyond 64 bits": Bad("SendMessage", send(DelaySeconds=2**64), BAD_VALUE, None),
    "trace header too long": Bad(
        "SendMessage", send(MessageSystemAttributes={"AWSTraceHeader": string("t" * 100_000)}), BAD_VALUE, None
    ),
    "redrive policy too long": Bad(
        "SetQueueAttributes", {"Attributes": {"RedrivePolicy": "{" + " " * 100_000 + "}"}}, BAD_VALUE, None
    ),
    "policy far too long": Bad(
        "SetQueueAttributes",
        {"Attributes": {"Policy": "{" + " " * 100_000 + "}"}},
        "OverLimit",
        "Submitted policy is over max allowed size.",
        403,
    ),
    "group id far too long": Bad("SendMessage", send(MessageGroupId="g" * 100_000), BAD_VALUE, None),
    "handle far too long": Bad("DeleteMessage", {"ReceiptHandle": "h" * 100_000}, "ReceiptHandleIsInvalid", None),
    "a thousand and one entries": Bad(
        "DeleteMessageBatch",
        {"Entries": [{"Id": f"{number}"} for number in range(1_001)]},
        SQS + "TooManyEntriesInBatchRequest",
        "Maximum number of entries per request are 10. You have sent 1001.",
    ),
    "delay below 0": Bad("SendMessage", send(DelaySeconds=-1), BAD_VALUE, None),
    "delay above 900": Bad("SendMessage", send(DelaySeconds=901), BAD_VALUE, None),
    "group id with a space": Bad(
        "SendMessage",
        send(MessageGroupId="a b"),
        BAD_VALUE,
        parameter_is_invalid("a b", "MessageGroupId", GROUP_RULE),
    ),
    "deduplication id on a standard queue": Bad(
        "SendMessage",
        send(MessageDeduplicationId="once"),
        BAD_VALUE,
        parameter_is_invalid(
            "once",
            "MessageDeduplicationId",
            "The request includes a parameter that is not valid for this queue type.",
        ),
    ),
    # message attributes
    "empty string attribute": Bad(
        "SendMessage",
        attribute("colour", string("")),
        BAD_VALUE,
        "Message (user) attribute 'colour' must contain a non-empty value of type 'String'.",
    ),
    "attribute of unknown type": Bad(
        "SendMessage",
        attribute("colour", {"DataType": "Colour", "StringValue": "green"}),
        BAD_VALUE,
        f"The type of message (user) attribute 'colour' is invalid. {TYPE_RULE}",
    ),
    "number that is none": Bad(
        "SendMessage",
        attribute("count", {"DataType": "Number", "StringValue": "many"}),
        BAD_VALUE,
        "Can't cast the value of message (user) attribute 'count' to a number.",
    ),
    "eleven attributes": Bad(
        "SendMessage",
        send(MessageAttributes={f"a{number}": string("x") for number in range(11)}),
        BAD_VALUE,
        "Number of message attributes [11] exceeds the allowed maximum [10].",
    ),
    "attribute with a control character": Bad("SendMessage", attribute("colour", string("\x01")), BAD_VALUE, None),
    **{
        f"attribute named {name!r}": Bad("SendMessage", attribute(name, string("x")), BAD_VALUE, None)
        for name in ("AWS.colour", "amazon.colour", ".colour", "colour.", "a..b", "a b", "a!b", "a" * 257)
    },
    # batches
    "batch of none": Bad(
        "SendMessageBatch",
        {"Entries": []},
        f"{SQS}EmptyBatchRequest",
        "There should be at least one SendMessageBatchRequestEntry in the request.",
    ),
    "batch of eleven": Bad(
        "SendMessageBatch",
        entries(*map(str, range(11)), MessageBody="body"),
        f"{SQS}TooManyEntriesInBatchRequest",
        "Maximum number of entries per request are 10. You have sent 11.",
    ),
    "batch with an id twice": Bad(
        "SendMessageBatch",
        entries("a", "b", "b", "a", MessageBody="body"),
        f"{SQS}BatchEntryIdsNotDistinct",
        "Id b repeated.",
    ),
    "batch with a bad id": Bad(
        "SendMessageBatch", entries("a b", MessageBody="body"), f"{SQS}InvalidBatchEntryId", ENTRY_ID_RULE
    ),
    "batch with an id of 81": Bad(
        "SendMessageBatch", entries("a" * 81, MessageBody="body"), f"{SQS}InvalidBatchEntryId", ENTRY_ID_RULE
    ),
    "batch too long": Bad(
        "SendMessageBatch",
        entries("a", "b", MessageBody="x" * 600_000),
        f"{SQS}BatchRequestTooLong",
        "Batch requests cannot be longer than 1048576 bytes. You have sent 1200000 bytes.",
    ),
    "one entry alone too long": Bad(
        "SendMessageBatch",
        entries("a", MessageBody="x" * (BODY_BYTES_MAX + 1)),
        f"{SQS}BatchRequestTooLong",
        "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes.",
    ),
    "delete batch of none": Bad(
        "DeleteMessageBatch",
        {"Entries": []},
        f"{SQS}EmptyBatchRequest",
        "There should be at least one DeleteMessageBatchRequestEntry in the request.",
    ),
    "delete batch with an id twice": Bad(
        "DeleteMessageBatch", entries("a", "a", **GARBAGE), f"{SQS}BatchEntryIdsNotDistinct", "Id a repeated."
    ),
    "visibility batch of none": Bad(
        "ChangeMessageVisibilityBatch",
        {"Entries": []},
        f"{SQS}EmptyBatchRequest",
        "There should be at least one ChangeMessageVisibilityBatchRequestEntry in the request.",
    ),
    "visibility batch of eleven": Bad(
        "ChangeMessageVisibilityBatch",
        entries(*map(str, range(11)), **GARBAGE, **IN_FORCE),
        f"{SQS}TooManyEntriesInBatchRequest",
        "Maximum number of entries per request are 10. You have sent 11.",
    ),
    # receives and handles
    **{
        f"wait of {seconds}": Bad(
            "ReceiveMessage",
            {"WaitTimeSeconds": seconds},
            BAD_VALUE,
            parameter_is_invalid(seconds, "WaitTimeSeconds", WAIT_RULE),
        )
        for seconds in (-1, 21)
    },
    **{
        f"receive of {number}": Bad(
            "ReceiveMessage",
            {"MaxNumberOfMessages": number},
            BAD_VALUE,
            parameter_is_invalid(number, "MaxNumberOfMessages", COUNT_RULE),
        )
        for number in (0, 11)
    },
    "receive hiding too long": Bad("ReceiveMessage", {"VisibilityTimeout": 43_201}, BAD_VALUE, None),
    "receive hiding less than nothing": Bad("ReceiveMessage", {"VisibilityTimeout": -1}, BAD_VALUE, None),
    "garbage handle deleted": Bad("DeleteMessage", GARBAGE, "ReceiptHandleIsInvalid", HANDLE_RULE),
    "no handle deleted": Bad("DeleteMessage", {}, "MissingParameter", is_required("ReceiptHandle")),
    "garbage handle shown": Bad("ChangeMessageVisibility", GARBAGE | IN_FORCE, "ReceiptHandleIsInvalid", HANDLE_RULE),
    # tags and permissions
    "no tags": Bad("TagQueue", {}, "MissingParameter", is_required("Tags")),
    "tag with a reserved prefix": Bad("TagQueue", {"Tags": {"aws:x": "y"}}, BAD_VALUE, None),
    "tag with a long key": Bad("TagQueue", {"Tags": {"k" * 129: ""}}, BAD_VALUE, None),
    "51 tags": Bad("TagQueue", {"Tags": {str(at): "" for at in range(51)}}, BAD_VALUE, None),
    "no tag keys": Bad("UntagQueue", {}, BAD_VALUE, "Tag keys must be between 1 and 128 characters in length."),
    "permission for a batch action": Bad(
        "AddPermission",
        PERMISSION | {"Actions": ["SendMessageBatch"]},
        BAD_VALUE,
        parameter_is_invalid(
            "SQS:SendMessageBatch", "ActionName", "Please refer to the appropriate WSDL for a list of valid actions."
        ),
    ),
    "permission for nobody": Bad(
        "AddPermission",
        PERMISSION | {"AWSAccountIds": ["me"]},
        BAD_VALUE,
        parameter_is_invalid("[me]", "PrincipalId", "Unable to verify principal."),
    ),
    "permission without a label": Bad("AddPermission", PERMISSION | {"Label": ""}, "MissingParameter", None),
    "unknown label": Bad(
        "RemovePermission", {"Label": "no"}, BAD_VALUE, parameter_is_invalid("no", "Label", "can't find label.")
    ),
    "policy of 21 statements": Bad(
        "SetQueueAttributes",
        {"Attributes": {"Policy": json.dumps({"Statement": [{"Effect": "Allow"}] * 21})}},
        "OverLimit",
        "21 statements were found in the submitted policy, max allowed is 20",
        403,
    ),
    # dead letters and move tasks
    "redrive to nowhere": Bad(
        "SetQueueAttributes",
        {"Attributes": {"RedrivePolicy": NOWHERE}},
        BAD_VALUE,
        parameter_is_invalid(NOWHERE, "RedrivePolicy", "Dead letter target does not exist."),
    ),
    "redrive without a count": Bad(
        "SetQueueAttributes",
        {"Attributes": {"RedrivePolicy": '{"deadLetterTargetArn":"x"}'}},
        BAD_VALUE,
        parameter_is_invalid(
            '{"deadLetterTargetArn":"x"}',
            "RedrivePolicy",
            "Redrive policy does not contain mandatory attribute: maxReceiveCount.",
        ),
    ),
    "task without a source": Bad("StartMessageMoveTask", {}, "MissingParameter", is_required("SourceArn")),
    "task from nowhere": Bad(
        "StartMessageMoveTask",
        {"SourceArn": NOWHERE_ARN},
        "ResourceNotFoundException",
        "The resource that you specified for the SourceArn parameter doesn't exist.",
        404,
    ),
    "tasks of nowhere": Bad("ListMessageMoveTasks", {"SourceArn": NOWHERE_ARN}, "ResourceNotFoundException", None, 404),
    "garbage task handle": Bad(
        "CancelMessageMoveTask", {"TaskHandle": "garbage"}, BAD_VALUE, "Value for parameter TaskHandle is invalid."
    ),
    "sources by page of 1001": Bad("ListDeadLetterSourceQueues", {"MaxResults": 1001}, BAD_VALUE, None),
    "no visibility": Bad("ChangeMessageVisibility", GARBAGE, "MissingParameter", is_required("VisibilityTimeout")),
}
ACCOUNT_ACTIONS = (
    "CreateQueue",
    "GetQueueUrl",
    "ListQueues",
    "StartMessageMoveTask",
    "CancelMessageMoveTask",
    "ListMessageMoveTasks",
)
QUEUE_ACTIONS = (
    "DeleteQueue",
    "PurgeQueue",
    "GetQueueAttributes",
    "SetQueueAttributes",
    "SendMessage",
    "SendMessageBatch",
    "ReceiveMessage",
    "DeleteMessage",
    "DeleteMessageBatch",
    "ChangeMessageVisibility",
    "ChangeMessageVisibilityBatch",
    "TagQueue",
    "UntagQueue",
    "ListQueueTags",
    "AddPermission",
    "RemovePermission",
    "ListDeadLetterSourceQueues",
)


@pytest.fixture
def queue(endpoint: Endpoint) -> str:
    """A queue that holds one visible, one delayed and one hidden message."""
    url = str(endpoint.json("CreateQueue", {"QueueName": f"bad-{uuid4().hex}"}).document["QueueUrl"])
    endpoint.json("SendMessage", {"QueueUrl": url, "MessageBody": "hidden"})
    endpoint.json("ReceiveMessage", {"QueueUrl": url, "VisibilityTimeout": 43_200})
    endpoint.json("SendMessage", {"QueueUrl": url, "MessageBody": "visible"})
    endpoint.json("SendMessage", {"QueueUrl": url, "MessageBody": "delayed", "DelaySeconds": 900})
    return url


def state(endpoint: Endpoint, queue: str) -> Any:
    """All that a client can see of the queue without changing it, and which queues there are."""
    attributes = endpoint.json("GetQueueAttributes", {"QueueUrl": queue, "AttributeNames": ["All"]}).document
    return attributes, endpoint.json("ListQueues", {}).document


def received_handle(endpoint: Endpoint, queue: str) -> str:
    messages = endpoint.json("ReceiveMessage", {"QueueUrl": queue}).document["Messages"]
    return str(messages[0]["ReceiptHandle"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", CALLS)
def test_bad_call_gets_awss_answer_and_changes_nothing(
    endpoint: Endpoint, queue: str, name: str, protocol: str
) -> None:
    bad = CALLS[name]
    before = state(endpoint, queue)
    parameters = bad.parameters if bad.action in ACCOUNT_ACTIONS else {"QueueUrl": queue} | bad.parameters
    status, code, message = endpoint.call(protocol, bad.action, parameters).error
    assert (status, code) == (bad.status, bad.code), message
    assert message
    if bad.message is not None:
        assert message == bad.message
    assert state(endpoint, queue) == before


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("action", QUEUE_ACTIONS)
def test_every_queue_action_needs_a_queue_that_exists(endpoint: Endpoint, action: str, protocol: str) -> None:
    taken = {
        "SetQueueAttributes": {"Attributes": {"DelaySeconds": "1"}},
        "SendMessage": {"MessageBody": "body"},
        "TagQueue": {"Tags": {"a": "b"}},
        "UntagQueue": {"TagKeys": ["a"]},
        "AddPermission": PERMISSION,
        "RemovePermission": {"Label": "l"},
        "DeleteMessage": GARBAGE,
        "ChangeMessageVisibility": GARBAGE | IN_FORCE,
        "SendMessageBatch": {"Entries": [{"Id": "a", "MessageBody": "body"}]},
        "DeleteMessageBatch": {"Entries": [{"Id": "a"} | GARBAGE]},
        "ChangeMessageVisibilityBatch": {"Entries": [{"Id": "a"} | GARBAGE | IN_FORCE]},
    }
    parameters = {"QueueUrl": f"{endpoint.url}/000000000000/no-such-queue"} | taken.get(action, {})
    version = " for this wsdl version" if protocol == "query" else ""
    assert endpoint.call(protocol, action, parameters).error == (
        400,
        f"{SQS}NonExistentQueue",
        f"The specified queue does not exist{version}.",
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_create_again_with_another_value_names_the_attribute(endpoint: Endpoint, queue: str, protocol: str) -> None:
    before = state(endpoint, queue)
    parameters = {"QueueName": queue.rsplit("/", 1)[1], "Attributes": {"VisibilityTimeout": "31"}}
    assert endpoint.call(protocol, "CreateQueue", parameters).error == (
        400,
        "QueueAlreadyExists",
        "A queue already exists with the same name and a different value for attribute VisibilityTimeout",
    )
    assert state(endpoint, queue) == before


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_visibility_of_a_deleted_message_is_refused(endpoint: Endpoint, queue: str, protocol: str) -> None:
    handle = received_handle(endpoint, queue)
    endpoint.json("DeleteMessage", {"QueueUrl": queue, "ReceiptHandle": handle})
    parameters = {"QueueUrl": queue, "ReceiptHandle": handle, "VisibilityTimeout": 1}
    reason = "Message does not exist or is not available for visibility timeout change."
    answer = endpoint.call(protocol, "ChangeMessageVisibility", parameters)
    assert answer.error == (400, BAD_VALUE, parameter_is_invalid(handle, "ReceiptHandle", reason))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_visibility_beyond_twelve_hours_is_refused_and_not_clipped(
    endpoint: Endpoint, queue: str, protocol: str
) -> None:
    handle = received_handle(endpoint, queue)
    before = state(endpoint, queue)
    parameters = {"QueueUrl": queue, "ReceiptHandle": handle, "VisibilityTimeout": 43_201}
    assert endpoint.call(protocol, "ChangeMessageVisibility", parameters).error[:2] == (400, BAD_VALUE)
    assert state(endpoint, queue) == before


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_altered_handle_and_handle_of_another_queue_are_refused(endpoint: Endpoint, queue: str, protocol: str) -> None:
    handle = received_handle(endpoint, queue)
    other = endpoint.json("CreateQueue", {"QueueName": f"bad-{uuid4().hex}"}).document["QueueUrl"]
    middle = len(handle) // 2
    altered = handle[:middle] + ("B" if handle[middle] == "A" else "A") + handle[middle + 1 :]
    before = state(endpoint, queue)
    for url, forged in ((queue, altered), (other, handle), (queue, handle[:-4])):
        answer = endpoint.call(protocol, "DeleteMessage", {"QueueUrl": url, "ReceiptHandle": forged})
        assert answer.error[:2] == (400, "ReceiptHandleIsInvalid")
    assert state(endpoint, queue) == before


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_bad_entry_fails_alone(endpoint: Endpoint, protocol: str) -> None:
    attributes = {"MaximumMessageSize": "1024"}
    created = endpoint.json("CreateQueue", {"QueueName": f"bad-{uuid4().hex}", "Attributes": attributes})
    queue = created.document["QueueUrl"]
    batch = [
        {"Id": "good", "MessageBody": "body"},
        {"Id": "long", "MessageBody": "x" * 1025},
        {"Id": "late", "MessageBody": "body", "DelaySeconds": 901},
    ]
    answer = endpoint.call(protocol, "SendMessageBatch", {"QueueUrl": queue, "Entries": batch})
    result = answer.document if protocol == "json" else answer.xml["SendMessageBatchResult"]
    failed = result["Failed"] if protocol == "json" else result["BatchResultErrorEntry"]
    assert answer.status == 200
    assert [entry["Id"] for entry in failed] == ["long", "late"]
    assert {entry["Code"] for entry in failed} == {BAD_VALUE}
    too_long = "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes."
    assert failed[0]["Message"] == too_long
    assert str(failed[0]["SenderFault"]).lower() == "true"
    shown = endpoint.json("GetQueueAttributes", {"QueueUrl": queue, "AttributeNames": ["ApproximateNumberOfMessages"]})
    assert shown.document["Attributes"] == {"ApproximateNumberOfMessages": "1"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"QueueName": 7}',
        b'{"QueueName": ["a"]}',
        b'{"QueueName": "a", "Attributes": "text"}',
        b'{"QueueName": "a", "Attributes": {"DelaySeconds": 5}}',
        b'{"QueueName": ' + b"[" * 10_000,
        b'{"QueueName": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    ],
    ids=range(13),
)
def test_json_that_is_no_command_is_refused(endpoint: Endpoint, queue: str, body: bytes) -> None:
    before = state(endpoint, queue)
    answer = endpoint.json_body("CreateQueue", body)
    assert answer.status == 400
    assert answer.document["__type"].startswith("com.amazon")
    assert state(endpoint, queue) == before


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("MaxNumberOfMessages", "many"),
        ("WaitTimeSeconds", "1.5"),
        ("VisibilityTimeout", ""),
        ("WaitTimeSeconds", "9" * 5000),
    ],
    ids=["word", "fraction", "empty", "5000 digits"],
)
def test_query_number_that_is_none_is_refused(endpoint: Endpoint, queue: str, parameter: str, value: str) -> None:
    before = state(endpoint, queue)
    answer = endpoint.query("ReceiveMessage", {"QueueUrl": queue, parameter: value})
    assert answer.status == 400
    assert answer.xml["Error"]["Type"] == "Sender"
    assert state(endpoint, queue) == before


def test_unknown_json_target_is_refused(endpoint: Endpoint) -> None:
    answer = endpoint.json("FlyToTheMoon", {})
    assert answer.status in (400, 404)
    assert answer.document["__type"].endswith("UnknownOperationException")


def test_unknown_query_action_is_refused(endpoint: Endpoint) -> None:
    assert endpoint.query("FlyToTheMoon", {}).error[:2] == (400, "InvalidAction")


def test_error_headers_are_what_botocore_reads(endpoint: Endpoint) -> None:
    answer = endpoint.json("GetQueueUrl", {"QueueName": "no-such-queue"})
    assert answer.headers["content-type"] == "application/x-amz-json-1.0"
    assert answer.headers["x-amzn-query-error"] == f"{SQS}NonExistentQueue;Sender"
    assert answer.headers["x-amzn-requestid"]
    assert answer.document == {
        "__type": "com.amazonaws.sqs#QueueDoesNotExist",
        "message": "The specified queue does not exist.",
    }


@pytest.mark.parametrize(
    ("code", "tail", "action", "parameters"),
    [
        (BAD_VALUE, "InvalidParameterValueException", "CreateQueue", {"QueueName": "a b"}),
        ("MissingParameter", "MissingRequiredParameterException", "CreateQueue", {}),
        ("InvalidAttributeName", "InvalidAttributeName", "CreateQueue", {"QueueName": "a", "Attributes": {"x": "y"}}),
    ],
)
def test_json_type_is_the_pair_of_the_query_code(
    endpoint: Endpoint, code: str, tail: str, action: str, parameters: dict[str, Any]
) -> None:
    answer = endpoint.json(action, parameters)
    assert answer.headers["x-amzn-query-error"] == f"{code};Sender"
    assert answer.document["__type"] == f"com.amazonaws.sqs#{tail}"


def raw_exchange(endpoint: Endpoint, request: bytes) -> bytes:
    """Sends bytes as they are and reads until the server closes or answers no more for a while."""
    parts = urlsplit(endpoint.url)
    assert parts.hostname
    assert parts.port
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


LENGTHS = b"Content-Length: 4\r\nContent-Length: 5\r\n"
BOTH = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"


@pytest.mark.parametrize("fields", [LENGTHS, BOTH, b"Content-Length: -1\r\n", b"Content-Length: many\r\n"])
def test_ambiguous_length_is_refused_and_answered_once(endpoint: Endpoint, fields: bytes) -> None:
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.ListQueues\r\n"
    smuggled = (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.ListQueues\r\nContent-Length: 2\r\n\r\n{}"
    )
    answer = raw_exchange(endpoint, head + fields + b"\r\n" + b"0\r\n\r\n" + smuggled)
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400"))
    assert answer.count(b"HTTP/1.") == 1


def test_body_that_begins_like_a_request_is_a_body(endpoint: Endpoint) -> None:
    body = b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.ListQueues\r\nContent-Length: 2\r\n\r\n{}"
    answer = endpoint.json_body("ListQueues", body)
    assert answer.status == 400


def test_oversized_request_is_refused_before_it_is_read(endpoint: Endpoint) -> None:
    head = (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.SendMessage\r\nContent-Length: 40000000\r\n\r\n"
    )
    answer = raw_exchange(endpoint, head)
    assert answer.startswith(b"HTTP/1.1 413")


def test_server_still_serves_after_all_that(endpoint: Endpoint, queue: str) -> None:
    answer = endpoint.json("SendMessage", {"QueueUrl": queue, "MessageBody": json.dumps({"still": "here"})})
    assert answer.status == 200
