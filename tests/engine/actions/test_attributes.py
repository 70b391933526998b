"""GetQueueAttributes and SetQueueAttributes: defaults, ranges, what All shows, what is refused."""

import json

import pytest

from elasticq.model import commands as c
from elasticq.model import errors
from elasticq.model.results import QueueAttributesResult
from tests.engine.desk import START_MS, Desk

ALWAYS = {
    "QueueArn": "arn:aws:sqs:us-east-1:000000000000:jobs",
    "ApproximateNumberOfMessages": "0",
    "ApproximateNumberOfMessagesNotVisible": "0",
    "ApproximateNumberOfMessagesDelayed": "0",
    "CreatedTimestamp": str(START_MS // 1_000),
    "LastModifiedTimestamp": str(START_MS // 1_000),
    "DelaySeconds": "0",
    "MaximumMessageSize": "1048576",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "VisibilityTimeout": "30",
    "SqsManagedSseEnabled": "true",
}


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.create()
    return made


def get(desk: Desk, *names: str) -> dict[str, str]:
    result = desk.do(c.GetQueueAttributes(queue_url="jobs", attribute_names=list(names)))
    assert isinstance(result, QueueAttributesResult)
    return result.attributes


def put(desk: Desk, **attributes: str) -> None:
    desk.do(c.SetQueueAttributes(queue_url="jobs", attributes=attributes))


def test_all_shows_the_defaults(desk: Desk) -> None:
    assert get(desk, "All") == ALWAYS


def test_none_asked_none_shown_and_unset_ones_are_left_out(desk: Desk) -> None:
    assert get(desk) == {}
    assert get(desk, "VisibilityTimeout", "Policy", "FifoQueue", "RedrivePolicy") == {"VisibilityTimeout": "30"}


def test_unknown_name_is_refused(desk: Desk) -> None:
    with pytest.raises(errors.InvalidAttributeName, match=r"Unknown Attribute Nope\."):
        get(desk, "All", "Nope")


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("DelaySeconds", 0, 900),
        ("MaximumMessageSize", 1_024, 1_048_576),
        ("MessageRetentionPeriod", 60, 1_209_600),
        ("ReceiveMessageWaitTimeSeconds", 0, 20),
        ("VisibilityTimeout", 0, 43_200),
        ("KmsDataKeyReusePeriodSeconds", 60, 86_400),
    ],
)
def test_ranges_hold_at_both_ends(desk: Desk, name: str, low: int, high: int) -> None:
    for good in (low, high):
        put(desk, **{name: str(good)})
    for bad in (low - 1, high + 1, "x", "", "1.5", "١", "1" * 30):
        with pytest.raises(errors.InvalidAttributeValue) as caught:
            put(desk, **{name: str(bad)})
        assert caught.value.message == f"Invalid value for the parameter {name}."
        with pytest.raises(errors.InvalidAttributeValue):
            desk.create("other", **{name: str(bad)})
    assert get(desk, name).get(name, str(high)) == str(high)


def test_change_acts_at_once_and_moves_the_modified_time(desk: Desk) -> None:
    desk.wait(5)
    put(desk, VisibilityTimeout="3", ReceiveMessageWaitTimeSeconds="7")
    shown = get(desk, "All")
    assert (shown["VisibilityTimeout"], shown["ReceiveMessageWaitTimeSeconds"]) == ("3", "7")
    assert (shown["CreatedTimestamp"], shown["LastModifiedTimestamp"]) == (
        str(START_MS // 1_000),
        str(START_MS // 1_000 + 5),
    )
    desk.send()
    desk.receive_one()
    desk.wait(3)
    assert desk.counts() == (1, 0, 0)


def test_changed_delay_is_for_later_sends_only(desk: Desk) -> None:
    desk.send()
    put(desk, DelaySeconds="5")
    desk.send()
    assert desk.counts() == (1, 0, 1)


def test_nothing_to_set_is_a_missing_parameter(desk: Desk) -> None:
    with pytest.raises(errors.MissingParameter):
        put(desk)


@pytest.mark.parametrize("name", ["QueueArn", "CreatedTimestamp", "ApproximateNumberOfMessages", "Nope", "All"])
def test_read_only_and_unknown_attributes_cannot_be_set(desk: Desk, name: str) -> None:
    with pytest.raises(errors.InvalidAttributeName, match=f"Unknown Attribute {name}"):
        put(desk, **{name: "1"})


@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize("name", ["FifoQueue", "ContentBasedDeduplication"])
def test_fifo_attributes_are_unknown_on_a_standard_queue(desk: Desk, name: str, value: str) -> None:
    with pytest.raises(errors.InvalidAttributeName) as caught:
        put(desk, **{name: value})
    assert caught.value.message == f"Unknown Attribute {name}."


@pytest.mark.parametrize("name", ["DeduplicationScope", "FifoThroughputLimit"])
def test_high_throughput_attributes_need_a_fifo_queue(desk: Desk, name: str) -> None:
    for act in (put, lambda desk, **attributes: desk.create("other", **attributes)):
        with pytest.raises(errors.InvalidAttributeName) as caught:
            act(desk, **{name: "queue"})
        assert caught.value.message == f"You can specify the {name} only when FifoQueue is set to true."


def test_booleans_are_shown_in_lower_case(desk: Desk) -> None:
    put(desk, SqsManagedSseEnabled="False")
    assert get(desk, "SqsManagedSseEnabled") == {"SqsManagedSseEnabled": "false"}
    with pytest.raises(errors.InvalidAttributeValue):
        put(desk, SqsManagedSseEnabled="yes")


def test_one_kind_of_encryption_at_a_time(desk: Desk) -> None:
    put(desk, KmsMasterKeyId="alias/aws/sqs")
    shown = get(desk, "All")
    assert (shown["KmsMasterKeyId"], shown["KmsDataKeyReusePeriodSeconds"]) == ("alias/aws/sqs", "300")
    assert shown["SqsManagedSseEnabled"] == "false"
    with pytest.raises(errors.InvalidAttributeName) as caught:
        put(desk, KmsMasterKeyId="k", SqsManagedSseEnabled="true")
    assert caught.value.message == (
        "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE."
    )
    put(desk, SqsManagedSseEnabled="true")
    assert get(desk, "All") == ALWAYS


def test_policy_is_kept_as_given_and_removed_by_an_empty_one(desk: Desk) -> None:
    policy = json.dumps({"Version": "2008-10-17", "Statement": []})
    put(desk, Policy=policy)
    assert get(desk, "Policy") == {"Policy": policy}
    put(desk, Policy="")
    assert "Policy" not in get(desk, "All")


@pytest.mark.parametrize("policy", ["{", "[]", "1", "[" * 5_000])
def test_policy_that_is_no_object_is_refused(desk: Desk, policy: str) -> None:
    with pytest.raises(errors.InvalidAttributeValue):
        put(desk, Policy=policy)


def test_policy_too_big_is_over_limit(desk: Desk) -> None:
    with pytest.raises(errors.OverLimit) as caught:
        put(desk, Policy=json.dumps({"x": "y" * 8_192}))
    assert (caught.value.status, caught.value.message) == (403, "Submitted policy is over max allowed size.")


def test_reading_attributes_changes_no_row(desk: Desk) -> None:
    desk.send()
    written = len(desk.log)
    get(desk, "All")
    assert len(desk.log) == written
