"""SNS's forms and answers: botocore writes the one and reads the other, and bytes are those of AWS."""

from typing import Any

import botocore.session
import pytest
import xmltodict
from botocore.parsers import create_parser
from botocore.serialize import create_serializer

from elasticq.http.connection import exchange
from elasticq.http.connection.head import FORM, FORM_FOR_JSON
from elasticq.model import errors
from elasticq.model import topic_commands as t
from elasticq.model import topic_results as r
from elasticq.model.actions import NOT_HERE, TOPIC_ACTIONS
from elasticq.model.commands import MessageAttributeValue
from elasticq.model.results import BatchError, Result
from elasticq.wire import query
from elasticq.wire.operations import SNS, SQS
from elasticq.wire.services import guess, pick
from elasticq.wire.topic_xml import encode_as_json
from tests.wire.reference import form_of

SERVICE = botocore.session.get_session().get_service_model("sns")
SERIALIZE = create_serializer("query").serialize_to_request
PARSER = create_parser("query")
ID = "00000000-0000-0000-0000-000000000000"
BOTH = (SQS, SNS)


def form(action: str, **members: Any) -> bytes:
    """What boto3 sends."""
    body: dict[str, str] = SERIALIZE(members, SERVICE.operation_model(action))["body"]
    return form_of(list(body.items()))


def decoded(action: str, **members: Any) -> t.TopicCommand:
    operation, command = query.decode(SNS, form(action, **members))
    assert operation is SNS.operations[action]
    assert isinstance(command, t.TopicCommand)
    return command


def parsed(action: str, result: Result) -> dict[str, Any]:
    body = query.encode(SNS.operations[action], t.TopicCommand(), result, ID)
    shape = SERVICE.operation_model(action).output_shape
    found: dict[str, Any] = PARSER.parse({"status_code": 200, "headers": {}, "body": body}, shape)
    assert found.pop("ResponseMetadata")["RequestId"] == ID
    return found


# --- forms ------------------------------------------------------------------------------------


def test_lists_and_maps_are_read_as_boto3_writes_them() -> None:
    tags = [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": ""}]
    created = decoded("CreateTopic", Name="n", Attributes={"FifoTopic": "true", "DisplayName": "d"}, Tags=tags)
    assert created == t.CreateTopic("n", {"FifoTopic": "true", "DisplayName": "d"}, [t.Tag("a", "1"), t.Tag("b", "")])
    assert decoded("UntagResource", ResourceArn="r", TagKeys=["a", "b"]) == t.UntagResource("r", ["a", "b"])
    permission = decoded("AddPermission", TopicArn="t", Label="l", AWSAccountId=["1", "2"], ActionName=["Publish"])
    assert permission == t.AddTopicPermission("t", "l", ["1", "2"], ["Publish"])


def test_empty_lists_are_read() -> None:
    assert decoded("TagResource", ResourceArn="r", Tags=[]) == t.TagResource("r")
    batch = decoded("PublishBatch", TopicArn="t", PublishBatchRequestEntries=[])
    assert batch == t.PublishBatch("t")


def test_message_attributes_are_read_alone_and_in_a_batch() -> None:
    attributes = {
        "s": {"DataType": "String", "StringValue": "v"},
        "b": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }
    wanted = {"s": MessageAttributeValue("String", "v"), "b": MessageAttributeValue("Binary", None, b"\x00\xff")}
    assert decoded("Publish", TopicArn="t", Message="m", MessageAttributes=attributes) == t.Publish(
        topic_arn="t", message="m", message_attributes=wanted
    )
    entries = [{"Id": str(at), "Message": f"m{at}", "MessageAttributes": attributes} for at in range(11)]
    batch = decoded("PublishBatch", TopicArn="t", PublishBatchRequestEntries=entries)
    assert isinstance(batch, t.PublishBatch)
    found = batch.publish_batch_request_entries
    assert [(each.id, each.message_attributes) for each in found] == [(str(at), wanted) for at in range(11)]


def test_flag_is_its_text() -> None:
    subscribed = decoded("Subscribe", TopicArn="t", Protocol="sqs", Endpoint="e", ReturnSubscriptionArn=True)
    assert subscribed == t.Subscribe("t", "sqs", "e", {}, "true")


@pytest.mark.parametrize(
    "body",
    [
        b"Tags.1.Key=a",
        b"Tags.entry.1.Key=a",
        b"Tags.member.Key=a",
        b"Tag.1.Key=a",
        b"Tags.member=a",
        b"Attributes.member.1.key=a",
    ],
)
def test_lists_of_another_form_are_unknown(body: bytes) -> None:
    assert query.decode(SNS, b"Action=CreateTopic&Name=n&" + body)[1] == t.CreateTopic("n")


@pytest.mark.parametrize("action", sorted(NOT_HERE))
def test_phones_and_mobile_push_are_refused_as_in_regions_without_them(action: str) -> None:
    with pytest.raises(errors.InvalidAction) as caught:
        exchange.decode(BOTH, FORM, None, f"Action={action}&Version=2010-03-31".encode(), "/")
    assert caught.value.message == f"Operation ({action}) is not supported in this region"


def test_unknown_action_names_the_version() -> None:
    with pytest.raises(errors.InvalidAction) as caught:
        exchange.decode(BOTH, FORM, None, b"Action=publish&Version=2010-03-31", "/")
    assert caught.value.message == "Could not find operation publish for version 2010-03-31"
    body = exchange.encode_error(SNS, FORM, caught.value, ID).body
    assert b'<ErrorResponse xmlns="http://webservices.amazon.com/AWSFault/2005-15-09">' in body


# --- which API ---------------------------------------------------------------------------------

SIGNED_SNS = b"AWS4-HMAC-SHA256 Credential=AKID/20260131/us-east-1/sns/aws4_request, SignedHeaders=host, Signature=0"
SIGNED_SQS = SIGNED_SNS.replace(b"/sns/", b"/sqs/")


@pytest.mark.parametrize(
    ("credential", "parameters", "service"),
    [
        (SIGNED_SNS, {}, SNS),
        (SIGNED_SQS, {}, SQS),
        (SIGNED_SQS, {"Version": "2010-03-31", "Action": "Publish"}, SQS),
        (SIGNED_SNS, {"Version": "2012-11-05", "Action": "SendMessage"}, SNS),
        (b"", {"Version": "2010-03-31", "Action": "AddPermission"}, SNS),
        (b"", {"Version": "2012-11-05", "Action": "AddPermission"}, SQS),
        (b"", {"Action": "AddPermission"}, SQS),
        (b"", {"Action": "Publish"}, SNS),
        (b"", {"Action": "OptInPhoneNumber"}, SNS),
        (b"", {"Action": "Unsubscribe"}, SNS),
        (b"", {"Action": "nonsense"}, SQS),
        (b"", {}, SQS),
        (SIGNED_SNS.replace(b"/sns/", b"/s3/"), {"Action": "Publish"}, SNS),
    ],
)
def test_form_is_told_by_signature_then_version_then_action(
    credential: bytes, parameters: dict[str, str], service: object
) -> None:
    assert pick(BOTH, credential, parameters) is service


def test_form_that_cannot_be_read_is_told_too() -> None:
    assert guess(BOTH, SIGNED_SNS, b"%") is SNS
    assert guess(BOTH, b"", b"Action=x&Version=2010-03-31&%") is SNS
    assert guess(BOTH, SIGNED_SQS, b"Version=2010-03-31") is SQS
    assert guess(BOTH, b"", b"") is SQS


# --- answers -------------------------------------------------------------------------------------


def test_answer_to_a_publish_has_as_many_bytes_as_awss() -> None:
    operation = SNS.operations["Publish"]
    assert len(query.encode(operation, t.Publish(), r.PublishResult(ID), ID)) == 294
    assert len(query.encode(operation, t.Publish(), r.PublishResult(ID, "1" * 20), ID)) == 352


RESULTS: list[tuple[str, Result, dict[str, Any]]] = [
    ("CreateTopic", r.TopicArnResult("a"), {"TopicArn": "a"}),
    ("DeleteTopic", r.TopicDone(), {}),
    ("ListTopics", r.TopicsResult(), {"Topics": []}),
    (
        "ListTopics",
        r.TopicsResult([r.ListedTopic("a"), r.ListedTopic("b")], "next"),
        {"Topics": [{"TopicArn": "a"}, {"TopicArn": "b"}], "NextToken": "next"},
    ),
    (
        "GetTopicAttributes",
        r.TopicAttributesResult({"Policy": '{"a":"<&>"}', "DisplayName": ""}),
        {"Attributes": {"Policy": '{"a":"<&>"}', "DisplayName": ""}},
    ),
    ("Subscribe", r.SubscribeResult("pending confirmation", 7, False), {"SubscriptionArn": "pending confirmation"}),
    (
        "ListSubscriptions",
        r.SubscriptionsResult([r.ListedSubscription("a", "o", "sqs", "e", "t")]),
        {
            "Subscriptions": [
                {"SubscriptionArn": "a", "Owner": "o", "Protocol": "sqs", "Endpoint": "e", "TopicArn": "t"}
            ]
        },
    ),
    ("ListSubscriptionsByTopic", r.SubscriptionsResult(), {"Subscriptions": []}),
    ("Publish", r.PublishResult("m", "1", 3, 4), {"MessageId": "m", "SequenceNumber": "1"}),
    (
        "PublishBatch",
        r.PublishBatchResult(
            [r.PublishedEntry("i", "m"), r.PublishedEntry("j", "n", "2")], [BatchError("k", "Code", "text", False)]
        ),
        {
            "Successful": [{"Id": "i", "MessageId": "m"}, {"Id": "j", "MessageId": "n", "SequenceNumber": "2"}],
            "Failed": [{"Id": "k", "Code": "Code", "Message": "text", "SenderFault": False}],
        },
    ),
    (
        "PublishBatch",
        r.PublishBatchResult([r.PublishedEntry("i", "m")]),
        {"Successful": [{"Id": "i", "MessageId": "m"}], "Failed": []},
    ),
    ("TagResource", r.TopicTagged(), {}),
    ("ListTagsForResource", r.TopicTagsResult([r.ListedTag("a", "")]), {"Tags": [{"Key": "a", "Value": ""}]}),
    ("ListTagsForResource", r.TopicTagsResult(), {"Tags": []}),
    ("GetDataProtectionPolicy", r.DataProtectionPolicyResult(""), {"DataProtectionPolicy": ""}),
    ("CheckIfPhoneNumberIsOptedOut", r.NothingThereResult(), {"isOptedOut": False}),
    ("GetSMSAttributes", r.NothingThereResult(), {"attributes": {}}),
    ("GetSMSSandboxAccountStatus", r.NothingThereResult(), {"IsInSandbox": True}),
    ("ListEndpointsByPlatformApplication", r.NothingThereResult(), {"Endpoints": []}),
    ("ListOriginationNumbers", r.NothingThereResult(), {"PhoneNumbers": []}),
    ("ListPhoneNumbersOptedOut", r.NothingThereResult(), {"phoneNumbers": []}),
    ("ListPlatformApplications", r.NothingThereResult(), {"PlatformApplications": []}),
    ("ListSMSSandboxPhoneNumbers", r.NothingThereResult(), {"PhoneNumbers": []}),
]


@pytest.mark.parametrize(("action", "result", "wanted"), RESULTS, ids=[action for action, _, _ in RESULTS])
def test_boto3_reads_what_was_meant(action: str, result: Result, wanted: dict[str, Any]) -> None:
    assert parsed(action, result) == wanted
    told = exchange.encode(BOTH, FORM_FOR_JSON, SNS.operations[action], t.TopicCommand(), result, ID)
    assert told.body == encode_as_json(SNS.operations[action], result, ID)


def test_each_kind_of_answer_is_tried() -> None:
    assert {type(result).__name__ for _, result, _ in RESULTS} == {row.result for row in TOPIC_ACTIONS}


def test_element_of_the_result_is_there_where_the_model_has_one() -> None:
    for row in TOPIC_ACTIONS:
        result = next(each for _, each, _ in RESULTS if type(each).__name__ == row.result)
        name = row.name if row.result != "NothingThereResult" else "GetSMSAttributes"
        answer = xmltodict.parse(query.encode(SNS.operations[name], t.TopicCommand(), result, ID))[f"{name}Response"]
        wrapper = SERVICE.operation_model(name).output_shape
        assert (f"{name}Result" in answer) == (wrapper is not None)


def test_answer_is_indented_and_each_line_is_ended() -> None:
    result = r.TopicTagsResult([r.ListedTag("a", "")])
    assert query.encode(SNS.operations["ListTagsForResource"], t.TopicCommand(), result, "R").decode() == (
        '<ListTagsForResourceResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/">\n'
        "  <ListTagsForResourceResult>\n    <Tags>\n      <member>\n        <Key>a</Key>\n        <Value/>\n"
        "      </member>\n    </Tags>\n  </ListTagsForResourceResult>\n  <ResponseMetadata>\n"
        "    <RequestId>R</RequestId>\n  </ResponseMetadata>\n</ListTagsForResourceResponse>\n"
    )


def test_error_is_read_by_boto3_and_has_no_detail() -> None:
    body = exchange.encode_error(SNS, FORM, errors.TopicNotFound("Topic does not exist"), ID).body
    found = PARSER.parse({"status_code": 404, "headers": {}, "body": body}, None)
    assert found["Error"] == {"Type": "Sender", "Code": "NotFound", "Message": "Topic does not exist"}
    assert b"<Detail/>" not in body
