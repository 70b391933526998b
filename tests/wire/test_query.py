"""AWS Query requests: form bytes in, commands out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from elasticq.model.commands import (
    ChangeMessageVisibility,
    ChangeMessageVisibilityBatch,
    ChangeMessageVisibilityBatchEntry,
    Command,
    CreateQueue,
    DeleteMessage,
    GetQueueAttributes,
    GetQueueUrl,
    ListQueues,
    MessageAttributeValue,
    MessageSystemAttributeValue,
    ReceiveMessage,
    SendMessage,
    SendMessageBatch,
    SendMessageBatchEntry,
    SetQueueAttributes,
    TagQueue,
)
from elasticq.model.errors import (
    InvalidAction,
    InvalidParameterValue,
    MissingAction,
    MissingParameter,
    SenderError,
    SqsError,
)
from elasticq.wire import query
from elasticq.wire.operations import OPERATIONS, SQS
from tests.wire.reference import any_command, form_of, parameters_of

BINARY = b"Action=SendMessage&MessageAttribute.1.Name=a&MessageAttribute.1.Value.BinaryValue="


@pytest.mark.parametrize(
    ("body", "command"),
    [
        (b"Action=ListQueues&Version=2012-11-05", ListQueues()),
        (b"Action=ListQueues&MaxResults=5&NextToken=t&QueueNamePrefix=a", ListQueues("a", 5, "t")),
        (b"QueueName=q&Action=GetQueueUrl&QueueOwnerAWSAccountId=1", GetQueueUrl("q", "1")),
        (
            b"Action=CreateQueue&QueueName=q&Attribute.1.Name=A&Attribute.1.Value=1&Tag.1.Key=k&Tag.1.Value=",
            CreateQueue("q", {"A": "1"}, {"k": ""}),
        ),
        (b"Action=TagQueue&Tag.1.Key=k&Tag.1.Value=v", TagQueue(tags={"k": "v"})),
        (b"Action=TagQueue&Tags.1.Key=k&Tags.1.Value=v", TagQueue(tags={"k": "v"})),
        (
            b"Action=SetQueueAttributes&Attribute.2.Value=2&Attribute.10.Name=C&Attribute.2.Name=B&Attribute.10.Value=3",
            SetQueueAttributes(attributes={"B": "2", "C": "3"}),
        ),
        (b"Action=SetQueueAttributes&Attribute.Name=A&Attribute.Value=1", SetQueueAttributes(attributes={"A": "1"})),
        (
            b"Action=ReceiveMessage&MessageSystemAttributeName.1=All",
            ReceiveMessage(message_system_attribute_names=["All"]),
        ),
        (
            b"Action=ReceiveMessage&MessageSystemAttributeName.1=All&AttributeName.1=SenderId",
            ReceiveMessage(attribute_names=["SenderId"]),
        ),
        (b"Action=GetQueueAttributes&AttributeName=All", GetQueueAttributes(attribute_names=["All"])),
        (
            b"Action=GetQueueAttributes&AttributeName.4000000000=b&AttributeName.7=a",
            GetQueueAttributes(attribute_names=["a", "b"]),
        ),
        (b"Action=SendMessage&MessageBody=a+b%0D%0A%C3%A4", SendMessage(message_body="a b\r\n\u00e4")),
        (b"Action=SendMessage&MessageBody=1&MessageBody=2", SendMessage(message_body="2")),
        (b"Action=SendMessage&DelaySeconds=-1", SendMessage(delay_seconds=-1)),
        (
            b"Action=SendMessage&MessageBody=This+is+a+test+message&MessageAttribute.1.Name=n"
            b"&MessageAttribute.1.Value.StringValue=v&MessageAttribute.1.Value.DataType=String"
            b"&MessageAttribute.2.Name=b&MessageAttribute.2.Value.BinaryValue=AP8%3D"
            b"&MessageAttribute.2.Value.DataType=Binary.x&MessageAttribute.1.Value.StringListValue.1=reserved"
            b"&MessageSystemAttribute.1.Name=AWSTraceHeader&MessageSystemAttribute.1.Value.StringValue=t"
            b"&MessageSystemAttribute.1.Value.DataType=String",
            SendMessage(
                message_body="This is a test message",
                message_attributes={
                    "n": MessageAttributeValue("String", "v"),
                    "b": MessageAttributeValue("Binary.x", binary_value=b"\x00\xff"),
                },
                message_system_attributes={"AWSTraceHeader": MessageSystemAttributeValue("String", "t")},
            ),
        ),
        (
            b"Action=SendMessageBatch&SendMessageBatchRequestEntry.2.Id=b&SendMessageBatchRequestEntry.1.Id=a"
            b"&SendMessageBatchRequestEntry.1.MessageBody=x&SendMessageBatchRequestEntry.2.DelaySeconds=3"
            b"&SendMessageBatchRequestEntry.2.MessageAttribute.1.Name=n"
            b"&SendMessageBatchRequestEntry.2.MessageAttribute.1.Value.DataType=String",
            SendMessageBatch(
                entries=[
                    SendMessageBatchEntry("a", "x"),
                    SendMessageBatchEntry("b", None, 3, {"n": MessageAttributeValue("String")}),
                ]
            ),
        ),
        (
            b"Action=ChangeMessageVisibilityBatch&ChangeMessageVisibilityBatchRequestEntry.1.Id=a"
            b"&ChangeMessageVisibilityBatchRequestEntry.1.ReceiptHandle=h"
            b"&ChangeMessageVisibilityBatchRequestEntry.1.VisibilityTimeout=0",
            ChangeMessageVisibilityBatch(entries=[ChangeMessageVisibilityBatchEntry("a", "h", 0)]),
        ),
        (
            b"Action=ReceiveMessage&MessageSystemAttributeName.1=SenderId"
            b"&MessageAttributeName.1=x.*&MaxNumberOfMessages=10&WaitTimeSeconds=20&ReceiveRequestAttemptId=r",
            ReceiveMessage(None, None, ["SenderId"], ["x.*"], 10, None, 20, "r"),
        ),
        (b"Action=DeleteMessage&ReceiptHandle=a%2Bb%3D", DeleteMessage(receipt_handle="a+b=")),
        (b"Action=ChangeMessageVisibility&VisibilityTimeout=007", ChangeMessageVisibility(visibility_timeout=7)),
        (b"Action=ListQueues&Unknown=1&Unknown.1.x=2&X-Amz-Date=3&=&.&..&%41.1=1", ListQueues()),
    ],
)
def test_form_becomes_a_command(body: bytes, command: Command) -> None:
    assert query.decode(SQS, body) == (OPERATIONS[type(command).__name__], command)


@pytest.mark.parametrize(
    ("body", "path", "error", "message"),
    [
        (b"", "/", MissingAction, "The request must contain the parameter Action."),
        (b"Version=2012-11-05", "/", MissingAction, "The request must contain the parameter Action."),
        (b"Action=", "/", InvalidAction, "The action  is not valid for this endpoint."),
        (b"Action=Sing", "/", InvalidAction, "The action Sing is not valid for this endpoint."),
        (
            b"Action=ListQueues",
            "/000000000000/q",
            InvalidAction,
            "The action ListQueues is not valid for this endpoint.",
        ),
        (b"Action=CreateQueue", "/queue/q", InvalidAction, "The action CreateQueue is not valid for this endpoint."),
        (
            b"Action=SendMessage&DelaySeconds=x",
            "/",
            InvalidParameterValue,
            "Value x for parameter DelaySeconds is invalid. Reason: Must be an integer.",
        ),
        (b"Action=SendMessage&DelaySeconds=", "/", InvalidParameterValue, None),
        (b"Action=SendMessage&DelaySeconds=-", "/", InvalidParameterValue, None),
        (b"Action=SendMessage&DelaySeconds=%2B1", "/", InvalidParameterValue, None),
        (b"Action=SendMessage&DelaySeconds=1_0", "/", InvalidParameterValue, None),
        (b"Action=SendMessage&DelaySeconds=+1", "/", InvalidParameterValue, None),
        (b"Action=SendMessage&DelaySeconds=%D9%A3", "/", InvalidParameterValue, None),
        (b"Action=SendMessage&DelaySeconds=" + b"9" * 5000, "/", InvalidParameterValue, None),
        (
            b"Action=SendMessageBatch&SendMessageBatchRequestEntry.3.DelaySeconds=x",
            "/",
            InvalidParameterValue,
            "Value x for parameter SendMessageBatchRequestEntry.3.DelaySeconds is invalid. Reason: Must be an integer.",
        ),
        (b"Action=SetQueueAttributes&Attribute.1x.Name=a", "/", InvalidParameterValue, None),
        (b"Action=SetQueueAttributes&Attribute.%C2%B2.Name=a", "/", InvalidParameterValue, None),
        (b"Action=SetQueueAttributes&Attribute." + b"1" * 5000 + b".Name=a", "/", InvalidParameterValue, None),
        (
            b"Action=SetQueueAttributes&Attribute.2.Value=a",
            "/",
            MissingParameter,
            "The request must contain the parameter Attribute.2.Name.",
        ),
        (
            b"Action=CreateQueue&Tag.1.Key=a",
            "/",
            MissingParameter,
            "The request must contain the parameter Tag.1.Value.",
        ),
        (b"Action=SendMessage&MessageAttribute.1.Value.DataType=String", "/", MissingParameter, None),
        (b"Action=GetQueueAttributes&AttributeName.1.x=All", "/", MissingParameter, None),
        (
            BINARY + b"%21",
            "/",
            InvalidParameterValue,
            "Value ! for parameter MessageAttribute.1.Value.BinaryValue is invalid. Reason: Must be base64.",
        ),
        (BINARY + b"YQ", "/", InvalidParameterValue, None),
        (BINARY + b"%C3%A4", "/", InvalidParameterValue, None),
        (b"Action=SendMessage&MessageBody=%FF", "/", InvalidParameterValue, None),
        (b"Action=SendMessage" + b"&a=1" * 2000, "/", InvalidParameterValue, None),
    ],
)  # fmt: skip
def test_bad_form_is_refused(body: bytes, path: str, error: type[SqsError], message: str | None) -> None:
    with pytest.raises(error) as raised:
        query.decode(SQS, body, path)
    assert message in (None, raised.value.message)
    assert len(raised.value.message) < 1_000


@pytest.mark.parametrize(
    ("path", "queue_url"),
    [
        ("/", None),
        ("", None),
        ("//", None),
        ("/orders", None),
        ("/health/orders", None),
        ("/000000000000/orders", "/000000000000/orders"),
        ("/177715257436/MyQueue/", "/177715257436/MyQueue/"),
        ("/queue/us-east-1/000000000000/orders", "/queue/us-east-1/000000000000/orders"),
        ("/queue/orders", "/queue/orders"),
    ],
)
def test_path_of_a_queue_stands_for_its_url(path: str, queue_url: str | None) -> None:
    assert query.decode(SQS, b"Action=DeleteMessage", path)[1] == DeleteMessage(queue_url)
    assert query.is_queue_path(path) is (queue_url is not None)


def test_queue_url_parameter_beats_the_path() -> None:
    body = b"Action=DeleteMessage&QueueUrl=http%3A%2F%2Fh%2F000000000000%2Fa"
    assert query.decode(SQS, body, "/000000000000/b")[1] == DeleteMessage("http://h/000000000000/a")


def test_get_queue_url_is_valid_on_a_queue_path() -> None:
    assert query.decode(SQS, b"Action=GetQueueUrl&QueueName=a", "/000000000000/b")[1] == GetQueueUrl("a")


def without_the_loser(command: Command) -> Command:
    """Of the two names for system attributes the old one wins in a form."""
    if isinstance(command, ReceiveMessage) and command.attribute_names:
        return replace(command, message_system_attribute_names=None)
    return command


@given(any_command)
def test_command_is_read_back(command: Command) -> None:
    assert query.decode(SQS, form_of(parameters_of(command)))[1] == without_the_loser(command)


@given(any_command, st.randoms(use_true_random=False))
def test_order_of_parameters_does_not_count(command: Command, random: object) -> None:
    parameters = parameters_of(command)
    random.shuffle(parameters)  # type: ignore[attr-defined]
    assert query.decode(SQS, form_of(parameters))[1] == without_the_loser(command)


parameter_names = st.sampled_from(
    [
        "Action", "QueueUrl", "MessageBody", "DelaySeconds", "MaxNumberOfMessages", "Attribute", "Attribute.1.Name",
        "Attribute.1.Value", "Attribute.1", "Attribute.1.", "Attribute..", "AttributeName.1", "Tag.1.Key",
        "MessageAttribute.1.Name", "MessageAttribute.1.Value.BinaryValue", "SendMessageBatchRequestEntry",
        "SendMessageBatchRequestEntry.1", "SendMessageBatchRequestEntry.1.DelaySeconds",
        "SendMessageBatchRequestEntry.1.MessageAttribute.1.Name", "SendMessageBatchRequestEntry.1.MessageAttribute",
    ]
)  # fmt: skip
values = st.sampled_from(sorted(OPERATIONS)) | st.text(max_size=5) | st.sampled_from(["1", "%", "%F", "%FF", "&", "="])
forms = st.lists(st.tuples(parameter_names, values), max_size=12).map(
    lambda pairs: "&".join(f"{name}={value}" for name, value in pairs).encode("utf-8", "replace")
)


@given(
    st.binary() | forms | st.tuples(st.sampled_from(sorted(OPERATIONS)), forms).map(
        lambda drawn: f"Action={drawn[0]}&".encode() + drawn[1]
    ),
    st.sampled_from(["/", "/000000000000/q"]) | st.text(max_size=20),
)  # fmt: skip
def test_any_bytes_are_a_command_or_an_error_of_the_sender(body: bytes, path: str) -> None:
    try:
        operation, command = query.decode(SQS, body, path)
    except SenderError as error:
        query.encode_error(SQS, error, "request")
    else:
        assert type(command) is operation.command
