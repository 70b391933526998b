"""What a member of SNS's requests may hold: more is an error of the caller, in SNS's words."""

from typing import Any

import pytest

from elasticq.model import errors
from elasticq.wire import query
from elasticq.wire.operations import SNS
from tests.wire.test_topic_xml import form


@pytest.mark.parametrize(
    ("action", "members", "code"),
    [
        ("Publish", {"TopicArn": "x" * 2_000, "Message": "m"}, "InvalidParameter"),
        ("CreateTopic", {"Name": "n", "Attributes": {"x" * 300: "y"}}, "InvalidParameter"),
        ("TagResource", {"ResourceArn": "r", "Tags": [{"Key": "k", "Value": "v" * 2_000}]}, "InvalidParameter"),
        (
            "PublishBatch",
            {"TopicArn": "t", "PublishBatchRequestEntries": [{"Id": str(at), "Message": "m"} for at in range(101)]},
            "TooManyEntriesInBatchRequest",
        ),
    ],
)
def test_member_beyond_its_bound_is_an_error_of_the_caller(action: str, members: dict[str, Any], code: str) -> None:
    with pytest.raises(errors.TopicError) as caught:
        query.decode(SNS, form(action, **members))
    assert caught.value.code == code
