"""Answers of the Query protocol as JSON: the members of the XML answer, maps as pairs, what is absent as null."""

from typing import Any

import msgspec
import pytest

from elasticq.model.commands import Command, DeleteQueue, GetQueueAttributes, ListQueues, ListQueueTags
from elasticq.model.errors import QueueDoesNotExist, ServiceUnavailable
from elasticq.model.results import (
    EmptyResult,
    ListQueuesResult,
    QueueAttributesResult,
    QueueTagsResult,
    Result,
)
from elasticq.wire import query_json
from elasticq.wire.operations import OPERATIONS


@pytest.mark.parametrize(
    ("command", "result", "members"),
    [
        (
            GetQueueAttributes("u"),
            QueueAttributesResult({"DelaySeconds": "0"}),
            {"Attributes": [{"Name": "DelaySeconds", "Value": "0"}]},
        ),
        (GetQueueAttributes("u"), QueueAttributesResult({}), {"Attributes": []}),
        (ListQueueTags("u"), QueueTagsResult({"a": "b"}), {"Tags": [{"Key": "a", "Value": "b"}]}),
        (ListQueues(), ListQueuesResult(["u"], None), {"NextToken": None, "queueUrls": ["u"]}),
    ],
)
def test_an_answer_has_the_members_of_xml(command: Command, result: Result, members: dict[str, Any]) -> None:
    name = type(command).__name__
    answer = msgspec.json.decode(query_json.encode(OPERATIONS[name], command, result, "r"))
    assert answer == {f"{name}Response": {"ResponseMetadata": {"RequestId": "r"}, f"{name}Result": members}}


def test_an_action_without_a_result_has_none() -> None:
    answer = msgspec.json.decode(query_json.encode(OPERATIONS["DeleteQueue"], DeleteQueue("u"), EmptyResult(), "r"))
    assert answer == {"DeleteQueueResponse": {"ResponseMetadata": {"RequestId": "r"}}}


def test_an_error_tells_its_code_and_whose_fault_it_is() -> None:
    for error, fault in ((QueueDoesNotExist(), "Sender"), (ServiceUnavailable("\ud800"), "Receiver")):
        told = msgspec.json.decode(query_json.encode_error(error, "r"))
        assert (told["Error"]["Code"], told["Error"]["Type"], told["RequestId"]) == (error.code, fault, "r")
