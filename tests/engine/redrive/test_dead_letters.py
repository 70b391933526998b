"""Redrive policies and dead letters: who may send them where, and what of a message goes with it."""

import json

import pytest

from elasticq.engine.actions.receive import returned
from elasticq.engine.redrive.dead_letters import choose
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.contents import stored_bytes
from elasticq.engine.sweep import Sweeper
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import commands as c
from elasticq.model import limits
from elasticq.model.errors import InvalidParameterValue, QueueDoesNotExist, QueueNameExists
from elasticq.model.results import ReceivedMessage, ReceiveMessageResult
from tests.engine.desk import ENDPOINT, START_MS, Desk
from tests.engine.driver import digest

DLQ_ARN = "arn:aws:sqs:us-east-1:000000000000:dlq"
JOBS_ARN = "arn:aws:sqs:us-east-1:000000000000:jobs"


def policy(receives: object = 1, arn: str = DLQ_ARN) -> str:
    return json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": receives})


def set_policy(desk: Desk, value: str, url: str = "jobs", name: str = "RedrivePolicy") -> None:
    desk.do(c.SetQueueAttributes(queue_url=url, attributes={name: value}))


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.create("dlq")
    desk.create("jobs", RedrivePolicy=policy(2))
    return desk


def fail(desk: Desk, times: int, url: str = "jobs") -> list[ReceivedMessage]:
    return [message for _ in range(times) for message in desk.receive(url=url, visibility_s=0)]


# --- policies ------------------------------------------------------------------------


def test_policies_read_back_as_they_were_set(desk: Desk) -> None:
    value = '{ "maxReceiveCount" : 7, "deadLetterTargetArn":"' + DLQ_ARN + '"}'
    allow = '{"redrivePermission": "byQueue", "sourceQueueArns": ["' + JOBS_ARN + '"]}'
    set_policy(desk, value)
    set_policy(desk, allow, "dlq", "RedriveAllowPolicy")
    shown = desk.do(c.GetQueueAttributes(queue_url="jobs", attribute_names=["RedrivePolicy"])).attributes
    assert shown == {"RedrivePolicy": value}
    assert desk.queue().redrive.receives == 7
    assert desk.queue("dlq").attributes["RedriveAllowPolicy"] == allow


def test_a_count_that_was_given_as_text_reads_back_as_a_number(desk: Desk) -> None:
    set_policy(desk, '{"maxReceiveCount": "7", "deadLetterTargetArn": "' + DLQ_ARN + '"}')
    shown = desk.do(c.GetQueueAttributes(queue_url="jobs", attribute_names=["RedrivePolicy"])).attributes
    assert shown == {"RedrivePolicy": '{"maxReceiveCount":7,"deadLetterTargetArn":"' + DLQ_ARN + '"}'}


@pytest.mark.parametrize("given", [policy("7"), policy("007"), policy(7), policy(7).replace(" ", "")])
@pytest.mark.parametrize("first", [policy("7"), policy(7)])
def test_creating_again_compares_the_count_and_not_its_spelling(desk: Desk, first: str, given: str) -> None:
    set_policy(desk, first)
    desk.create("created", RedrivePolicy=first)
    for each in ("jobs", "created"):
        desk.create(each, RedrivePolicy=given)
        with pytest.raises(QueueNameExists):
            desk.create(each, RedrivePolicy=policy(8))


def test_empty_value_removes_a_policy(desk: Desk) -> None:
    set_policy(desk, "")
    assert desk.queue().redrive is None
    assert "RedrivePolicy" not in desk.do(c.GetQueueAttributes(queue_url="jobs", attribute_names=["All"])).attributes


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no json", "Redrive policy is not a valid JSON map."),
        ("[]", "Redrive policy is not a valid JSON map."),
        ("{}", "Redrive policy does not contain mandatory attribute: maxReceiveCount."),
        ('{"maxReceiveCount": 1}', "Redrive policy does not contain mandatory attribute: deadLetterTargetArn."),
        ('{"deadLetterTargetArn": "a"}', "Redrive policy does not contain mandatory attribute: maxReceiveCount."),
        (policy(1, "dlq"), "Invalid value for deadLetterTargetArn."),
        (policy(0), "Invalid value for maxReceiveCount: 0, valid values are from 1 to 1000 both inclusive."),
        (policy("1001"), "Invalid value for maxReceiveCount: 1001, valid values are from 1 to 1000 both inclusive."),
        (policy(1.5), "Invalid value for maxReceiveCount: 1.5, valid values are from 1 to 1000 both inclusive."),
        (policy(True), "Invalid value for maxReceiveCount: true, valid values are from 1 to 1000 both inclusive."),
        (policy(1, DLQ_ARN + "2"), "Dead letter target does not exist."),
        (policy(1, DLQ_ARN.replace("0" * 12, "1" * 12)), "Dead letter target owner should be same as the source."),
    ],
)
def test_bad_redrive_policy_is_refused(desk: Desk, value: str, reason: str) -> None:
    for command in (
        c.SetQueueAttributes(queue_url="jobs", attributes={"RedrivePolicy": value}),
        c.CreateQueue(queue_name="other", attributes={"RedrivePolicy": value}),
    ):
        with pytest.raises(InvalidParameterValue) as caught:
            desk.do(command)
        assert caught.value.message == f"Value {value} for parameter RedrivePolicy is invalid. Reason: {reason}"


def test_dead_letter_queue_must_be_of_the_same_type(desk: Desk) -> None:
    desk.create("dlq.fifo", FifoQueue="true")
    with pytest.raises(InvalidParameterValue, match="same type"):
        set_policy(desk, policy(1, DLQ_ARN + ".fifo"))


@pytest.mark.parametrize(
    "value",
    [
        "no json",
        '"allowAll"',
        "{}",
        '{"redrivePermission": "some"}',
        '{"redrivePermission": "byQueue"}',
        '{"redrivePermission": "byQueue", "sourceQueueArns": []}',
        '{"redrivePermission": "byQueue", "sourceQueueArns": ["jobs"]}',
        '{"redrivePermission": "allowAll", "sourceQueueArns": ["' + JOBS_ARN + '"]}',
        json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [JOBS_ARN] * 11}),
    ],
)
def test_bad_redrive_allow_policy_is_refused(desk: Desk, value: str) -> None:
    with pytest.raises(InvalidParameterValue, match="for parameter RedriveAllowPolicy is invalid"):
        set_policy(desk, value, "dlq", "RedriveAllowPolicy")


@pytest.mark.parametrize(
    ("allow", "is_allowed"),
    [
        ({"redrivePermission": "allowAll"}, True),
        ({"redrivePermission": "denyAll"}, False),
        ({"redrivePermission": "byQueue", "sourceQueueArns": [JOBS_ARN]}, True),
        ({"redrivePermission": "byQueue", "sourceQueueArns": [JOBS_ARN + "2"]}, False),
    ],
)
def test_redrive_allow_policy_is_asked_when_a_source_sets_its_policy(
    desk: Desk, allow: dict[str, object], is_allowed: bool
) -> None:
    set_policy(desk, json.dumps(allow), "dlq", "RedriveAllowPolicy")
    if is_allowed:
        set_policy(desk, policy(9))
    else:
        with pytest.raises(InvalidParameterValue):
            set_policy(desk, policy(9))
    assert desk.queue().redrive.receives == (9 if is_allowed else 2)


# --- sources --------------------------------------------------------------------------


def test_sources_are_listed_in_pages(desk: Desk) -> None:
    for name in ("b", "a", "c"):
        desk.create(name, RedrivePolicy=policy())
    desk.create("other")
    everything = desk.do(c.ListDeadLetterSourceQueues(queue_url="dlq"))
    assert everything.queue_urls == [f"{ENDPOINT}/000000000000/{name}" for name in ("a", "b", "c", "jobs")]
    assert everything.next_token is None
    found, token = [], None
    while True:
        page = desk.do(c.ListDeadLetterSourceQueues(queue_url="dlq", max_results=3, next_token=token))
        found += page.queue_urls
        token = page.next_token
        if token is None:
            break
        assert len(page.queue_urls) == 3
    assert found == everything.queue_urls


def test_sources_of_a_queue_that_is_none_or_missing(desk: Desk) -> None:
    assert desk.do(c.ListDeadLetterSourceQueues(queue_url="jobs")).queue_urls == []
    with pytest.raises(QueueDoesNotExist):
        desk.do(c.ListDeadLetterSourceQueues(queue_url="none"))
    with pytest.raises(InvalidParameterValue):
        desk.do(c.ListDeadLetterSourceQueues(queue_url="dlq", max_results=1_001))


# --- dead letters ----------------------------------------------------------------------


def test_message_moves_in_place_of_one_delivery_too_many(desk: Desk) -> None:
    message_id = desk.send()
    assert len(fail(desk, 2)) == 2
    assert desk.counts("dlq") == (0, 0, 0)
    desk.wait(60)
    assert desk.receive() == []
    assert (desk.counts(), desk.counts("dlq")) == ((0, 0, 0), (1, 0, 0))
    message = desk.receive_one(url="dlq")
    assert (message.message_id, message.body) == (message_id, "body")
    assert message.attributes["ApproximateReceiveCount"] == "3"
    assert message.attributes["DeadLetterQueueSourceArn"] == JOBS_ARN
    assert message.attributes["SentTimestamp"] == str(START_MS)
    assert message.attributes["ApproximateFirstReceiveTimestamp"] == str(START_MS + 60_000)


def test_attributes_and_trace_header_go_with_it(desk: Desk) -> None:
    attributes = {"a": c.MessageAttributeValue("Number", "7")}
    trace = {"AWSTraceHeader": c.MessageAttributeValue("String", "Root=1-5759e988-bd862e3fe1be46a994272793")}
    desk.do(
        c.SendMessage("jobs", "x", message_attributes=attributes, message_system_attributes=trace, message_group_id="g")
    )
    fail(desk, 3)
    message = desk.receive_one(url="dlq")
    assert message.message_attributes == attributes
    assert message.attributes["AWSTraceHeader"].startswith("Root=")
    assert message.attributes["MessageGroupId"] == "g"


def test_move_is_one_entry_and_makes_room_for_the_next_messages(desk: Desk) -> None:
    desk.send("dead")
    fail(desk, 2)
    desk.wait(1)
    for at in range(3):
        desk.send(str(at))
    assert [message.body for message in desk.receive(3)] == ["0", "1", "2"]
    received, stored, removed = desk.steps[-1]
    assert isinstance(received, m.MessagesReceived)
    assert isinstance(stored, m.MessageStored)
    assert isinstance(removed, m.MessagesRemoved)
    assert (stored.queue_id, stored.origin) == (desk.queue("dlq").id, (removed.queue_id, removed.sequences[0]))


def test_only_dead_letters_before_the_last_message_handed_out_move(desk: Desk) -> None:
    for at in range(2):
        desk.send(str(at))
    for _ in range(2):
        desk.receive(2, visibility_s=0)
    desk.wait(1)
    desk.send("fresh")
    desk.send("fresher")
    assert [message.body for message in desk.receive(1)] == ["fresh"]
    assert desk.counts("dlq")[0] == 0, "both stand behind it"
    assert [message.body for message in desk.receive(1)] == ["fresher"]
    assert desk.counts("dlq")[0] == 1, "the other stands behind it"
    assert desk.receive(1) == []
    assert desk.counts("dlq")[0] == 2


def test_many_dead_letters_move_in_bounded_mutations(desk: Desk) -> None:
    for _ in range(30):
        desk.send()
    for _ in range(2):
        while desk.receive(10, visibility_s=5):
            pass
        desk.wait(6)
    for _ in range(30):
        if not desk.receive(10) and not desk.steps[-1]:
            break
    assert (desk.counts(), desk.counts("dlq")) == ((0, 0, 0), (30, 0, 0))


def test_receive_of_dead_letters_only_leaves_no_guid(desk: Desk) -> None:
    desk.send()
    fail(desk, 2)
    assert desk.receive(invocation=b"i" * 16) == []
    assert not any(isinstance(x, m.InvocationRecorded) for x in desk.steps[-1])
    assert desk.state.invocations.count == 0


def test_without_its_dead_letter_queue_a_message_stays(desk: Desk) -> None:
    desk.send()
    desk.do(c.DeleteQueue(queue_url="dlq"))
    assert len(fail(desk, 5)) == 5
    desk.create("dlq")
    assert desk.receive() == []
    assert desk.counts("dlq")[0] == 1


def test_chain_counts_on_and_names_the_newest_source(desk: Desk) -> None:
    desk.create("last")
    set_policy(desk, policy(1, DLQ_ARN.replace("dlq", "last")), "dlq")
    message_id = desk.send()
    fail(desk, 3)
    fail(desk, 2, "dlq")
    message = desk.receive_one(url="last")
    assert message.message_id == message_id
    assert message.attributes["ApproximateReceiveCount"] == "4"
    assert message.attributes["DeadLetterQueueSourceArn"] == DLQ_ARN


def test_age_of_a_dead_letter_is_from_the_original_send(desk: Desk) -> None:
    desk.create("short", MessageRetentionPeriod="100")
    set_policy(desk, policy(1, DLQ_ARN.replace("dlq", "short")))
    desk.send()
    desk.wait(60)
    fail(desk, 2)
    desk.wait(39)
    assert len(desk.receive(url="short", visibility_s=0)) == 1
    desk.wait(2)
    assert desk.receive(url="short") == []


def test_old_dead_letter_behind_a_young_one_expires_in_its_time(desk: Desk) -> None:
    desk.create("short", MessageRetentionPeriod="100")
    set_policy(desk, policy(1, DLQ_ARN.replace("dlq", "short")))
    desk.send("old")
    desk.wait(60)
    desk.send("young", url="short")
    fail(desk, 2)
    desk.wait(50)
    assert desk.counts("short") == (1, 0, 0)
    mutations, _ = Sweeper().step(desk.state, desk.context.now_ms)
    desk.write(mutations)
    assert (desk.counts("short"), desk.queue("short").count) == ((1, 0, 0), 1)
    assert desk.receive_one(url="short").body == "young"


def test_fifo_dead_letter_is_sent_anew_under_its_message_id() -> None:
    desk = Desk()
    desk.create("dlq.fifo", FifoQueue="true")
    desk.create("jobs.fifo", FifoQueue="true", RedrivePolicy=policy(1, DLQ_ARN + ".fifo"))
    for body in ("a", "b"):
        desk.do(c.SendMessage("jobs.fifo", body, message_group_id="g", message_deduplication_id=body))
    desk.wait(60)
    (first,) = desk.receive(url="jobs.fifo", visibility_s=0)
    (second,) = desk.receive(url="jobs.fifo")
    assert (first.body, second.body) == ("a", "b")
    message = desk.receive_one(url="dlq.fifo")
    assert message.message_id == first.message_id
    assert message.attributes["MessageDeduplicationId"] == first.message_id
    assert message.attributes["MessageGroupId"] == "g"
    assert message.attributes["SentTimestamp"] == str(START_MS + 60_000)


def test_move_is_taken_back_by_a_roll_back_and_applied_twice_changes_nothing(desk: Desk) -> None:
    desk.send()
    fail(desk, 2)
    before = digest(desk)
    undo: Undo = []
    assert desk.receive(undo=undo) == []
    after = digest(desk)
    desk.write(desk.steps[-1])
    assert digest(desk) == after
    roll_back(undo)
    assert digest(desk) == before


def test_undeliverable_receive_before_the_move_does_not_count(desk: Desk) -> None:
    desk.send()
    for _ in range(5):
        messages = desk.receive()
        assert len(messages) == 1
        desk.write(returned(desk.state, ReceiveMessageResult(messages), desk.context.now_ms))
    assert desk.counts("dlq")[0] == 0


@pytest.mark.parametrize(("excess_bytes", "moved"), [(0, 5), (1, 4)])
def test_dead_letters_beyond_the_bytes_of_an_entry_wait_for_the_next(desk: Desk, excess_bytes: int, moved: int) -> None:
    for _ in range(4):
        desk.send("x" * limits.BODY_BYTES_MAX)
    filled_bytes = sum(map(stored_bytes, desk.queue().contents.values()))
    overhead_bytes = filled_bytes // 4 - limits.BODY_BYTES_MAX
    desk.send("y" * (limits.BURIED_BYTES_MAX - filled_bytes - overhead_bytes + excess_bytes))
    now_ms, sequences, ones = desk.context.now_ms, list(desk.queue().contents), [1] * 5
    desk.write([m.MessagesReceived(desk.queue().id, now_ms, now_ms, sequences, ones, [2] * 5, [now_ms] * 5)])
    assert choose(desk.state, desk.queue(), 10, now_ms) == ([], sequences[:moved])
