"""onParseError=deadletter: where bodies that are no rows go, and with what."""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from elasticq.spark.deadletters import REASON_CHARACTERS, DeadLetters
from elasticq.spark.environment import Environment
from elasticq.spark.options import OptionError, Read, parse_queue
from elasticq.spark.queues import QueueError
from elasticq.spark.schema import Rejected
from tests.spark.servers import Server

SOURCE = "http://here/0/jobs"
MESSAGE: dict[str, Any] = {"MessageId": "id-1", "Body": "no row", "Attributes": {"MessageGroupId": "g"}}
COLOUR = {"colour": {"DataType": "String", "StringValue": "red"}}
PICTURE = {"picture": {"DataType": "Binary.png", "BinaryValue": b"\x00\xff"}}
BYTES_MAX = 2_048

Letters = Callable[..., DeadLetters]


@pytest.fixture
def letters(elasticq_server: Server, make_queue: Callable[..., str]) -> Letters:
    def make(queue: str, source: str = "") -> DeadLetters:
        source = source or make_queue(elasticq_server, MaximumMessageSize=str(BYTES_MAX))
        given = {"queueUrl": source, "onParseError": "deadletter", "deadLetterQueue": queue}
        return DeadLetters(parse_queue(Read, given), Environment())

    return make


@pytest.fixture
def bad(elasticq_server: Server, make_queue: Callable[..., str]) -> str:
    return make_queue(elasticq_server, MaximumMessageSize=str(BYTES_MAX))


def test_a_rejected_message_keeps_body_and_attributes_and_tells_reason_and_source(
    elasticq_server: Server, letters: Letters, bad: str
) -> None:
    letters(bad.rpartition("/")[2]).send(
        SOURCE, [Rejected(MESSAGE | {"MessageAttributes": COLOUR | PICTURE}, "x" * 999)]
    )
    (message,) = elasticq_server.drain(bad)
    assert message["Body"] == "no row"
    ours = {"reason": "x" * REASON_CHARACTERS, "source": SOURCE}
    added = {name: {"DataType": "String", "StringValue": value} for name, value in ours.items()}
    assert message["MessageAttributes"] == COLOUR | PICTURE | added


@pytest.mark.parametrize("left_bytes", [0, len("colourStringred")])
def test_a_message_of_the_largest_size_goes_without_a_reason(
    elasticq_server: Server, letters: Letters, bad: str, left_bytes: int
) -> None:
    attributes = {"MessageAttributes": COLOUR} if left_bytes else {}
    largest = MESSAGE | {"Body": "x" * (BYTES_MAX - left_bytes)} | attributes
    letters(bad).send(SOURCE, [Rejected(largest, "why")])
    (message,) = elasticq_server.drain(bad)
    assert message["Body"] == largest["Body"]
    assert message.get("MessageAttributes", {}) == (COLOUR if left_bytes else {})


def test_ten_attributes_of_the_sender_leave_no_place_for_ours(
    elasticq_server: Server, letters: Letters, bad: str
) -> None:
    ten = {f"a{number}": COLOUR["colour"] for number in range(10)}
    letters(bad).send(SOURCE, [Rejected(MESSAGE | {"MessageAttributes": ten}, "why")])
    (message,) = elasticq_server.drain(bad)
    assert message["MessageAttributes"] == ten


def test_many_rejected_messages_are_one_call(elasticq_server: Server, letters: Letters, bad: str) -> None:
    dead = letters(bad)
    many = [Rejected(MESSAGE | {"MessageId": str(number), "Body": str(number)}, "why") for number in range(500)]
    client: Any = Environment().connect(dead._options.connection)
    calls: list[str] = []
    call = client._call
    client._call = lambda action, *members: calls.append(action) or call(action, *members)
    dead.send(SOURCE, many)
    del client._call
    assert calls == ["SendMessageBatch"]
    assert {message["Body"] for message in elasticq_server.drain(bad)} == set(map(str, range(500)))


def test_a_fifo_queue_gets_the_group_and_knows_a_task_that_runs_again(
    elasticq_server: Server, make_queue: Callable[..., str], letters: Letters
) -> None:
    bad = make_queue(elasticq_server, ".fifo")
    dead = letters(bad)
    other = MESSAGE | {"MessageId": "id-2", "Attributes": {}}
    for _ in range(2):
        dead.send(SOURCE, [Rejected(MESSAGE, "why"), Rejected(other, "why")])
    groups = [message["Attributes"]["MessageGroupId"] for message in elasticq_server.drain(bad)]
    assert sorted(groups) == ["g", "sqs"]


@pytest.mark.parametrize("queue", ["", "nowhere", "http://127.0.0.1:9/0/nowhere"])
def test_a_queue_that_is_not_there_is_noticed_at_the_start(letters: Letters, queue: str) -> None:
    with pytest.raises(OptionError, match="deadLetterQueue"):
        letters(queue)


def test_a_queue_for_smaller_messages_is_refused_at_the_start(
    elasticq_server: Server, make_queue: Callable[..., str], letters: Letters, bad: str
) -> None:
    with pytest.raises(OptionError, match="its MaximumMessageSize 2048 is less than of"):
        letters(bad, source=make_queue(elasticq_server))


def test_a_server_that_does_not_answer_is_no_wrong_option() -> None:
    with socket.socket() as bound:  # and nobody listens
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/0/jobs"
        given = {"queueUrl": url, "client": "light", "retrySeconds": "0", "deadLetterQueue": "bad"}
        with pytest.raises(QueueError, match="does not answer"):
            DeadLetters(parse_queue(Read, given), Environment())
