"""elasticq queues against a server, and where nobody looks at a terminal."""

import http.server
import io
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from elasticq.cli import carry, main
from elasticq.cli.show import one_line
from elasticq.client import Sqs, SqsError
from tests.server.process import PATIENCE_S, Server


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Server() as server:
        yield server.url


@pytest.fixture
def sqs(url: str) -> Iterator[Sqs]:
    with Sqs(url, "us-east-1") as client:
        yield client


@pytest.fixture
def queue(sqs: Sqs) -> str:
    name = f"jobs-{uuid4().hex}"
    sqs.create_queue(QueueName=name)
    return name


@pytest.fixture
def run(url: str, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Exit status, stdout and stderr of elasticq queues."""

    def run(command: str, *arguments: str) -> tuple[int, str, str]:
        status = main(["queues", command, "--url", url, *arguments])
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


def url_of(sqs: Sqs, queue: str) -> str:
    return str(sqs.get_queue_url(QueueName=queue)["QueueUrl"])


def bodies(sqs: Sqs, queue: str) -> list[str]:
    return [message["Body"] for message in sqs.peek(QueueUrl=url_of(sqs, queue), Limit=1_000)["Messages"]]


def test_ls_tells_how_much_is_in_the_queues(run: Any, sqs: Sqs, queue: str) -> None:
    for delay_s in (0, 0, 60):
        sqs.send_message(QueueUrl=url_of(sqs, queue), MessageBody="x", DelaySeconds=delay_s)
    sqs.receive_message(QueueUrl=url_of(sqs, queue))
    status, out, _ = run("ls", queue)
    assert status == 0
    heads, row = out.splitlines()
    assert heads.split() == ["NAME", "REGION", "VISIBLE", "IN", "FLIGHT", "DELAYED"]
    assert row.split()[:5] == [queue, "us-east-1", "1", "1", "1"]
    _, out, _ = run("ls", queue, "--json")
    assert json.loads(out) == {
        "name": queue,
        "region": "us-east-1",
        "visible": 1,
        "in_flight": 1,
        "delayed": 1,
        "url": url_of(sqs, queue),
    }


def test_ls_of_nothing_is_only_the_heading(run: Any) -> None:
    status, out, _ = run("ls", "no-such-prefix")
    assert (status, len(out.splitlines())) == (0, 1)


def test_regions_are_told_apart_where_a_name_is_in_two(run: Any, sqs: Sqs, queue: str, tmp_path: Path) -> None:
    file = str(tmp_path / "messages.jsonl")
    sqs.send_message(QueueUrl=url_of(sqs, queue), MessageBody="x")
    elsewhere = ("--region", "ap-south-2")
    assert run("ls", *elsewhere)[2] == (
        "elasticq: this account has no queues in this region; --region lists those of another one\n"
    )
    assert run("create", queue, *elsewhere)[0] == 0
    regions = [json.loads(run("ls", queue, "--json", *where)[1])["region"] for where in ((), elsewhere)]
    assert regions == ["us-east-1", "ap-south-2"]
    assert run("export", queue, file)[2] == f"elasticq: 1 message written of {queue} (us-east-1)\n"
    assert run("import", queue, file, *elsewhere)[2] == f"elasticq: 1 message imported into {queue} (ap-south-2)\n"
    assert run("export", queue, "-", "--drain", *elsewhere)[2] == (
        f"elasticq: 1 message taken out of {queue} (ap-south-2)\n"
    )
    assert run("delete", queue, "--yes", *elsewhere)[0] == 0


def test_peek_shows_messages_and_changes_nothing(run: Any, sqs: Sqs, queue: str) -> None:
    sqs.send_message(QueueUrl=url_of(sqs, queue), MessageBody="bell \x09 and " + "x" * 100)
    sqs.send_message(QueueUrl=url_of(sqs, queue), MessageBody="later", DelaySeconds=60)
    status, out, _ = run("peek", queue)
    assert status == 0
    assert "bell \\t and xxx" in out
    assert "…" in out
    _, out, _ = run("peek", queue, "--state", "delayed", "--json")
    [line] = map(json.loads, out.splitlines())
    assert (line["MessageBody"], line["State"], line["ReceiveCount"]) == ("later", "delayed", 0)
    _, out, _ = run("peek", queue, "-n", "1", "--json")
    assert len(out.splitlines()) == 1


def test_send_takes_a_body_with_attributes(run: Any, sqs: Sqs, queue: str) -> None:
    status, out, _ = run("send", queue, "hello", "--attribute", "a=b=c", "--group", "g")
    [message] = sqs.peek(QueueUrl=url_of(sqs, queue))["Messages"]
    assert (status, out.strip()) == (0, message["MessageId"])
    assert message["MessageAttributes"]["a"]["StringValue"] == "b=c"
    assert message["GroupId"] == "g"
    assert run("send", queue, "x", "--attribute", "broken")[0] == 2


def test_reprioritise_changes_messages_by_ids_and_names_those_that_are_missing(
    run: Any, sqs: Sqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"urgent-{uuid4().hex}"
    assert run("create", name, "--attribute", "ElasticqOrder=priority")[0] == 0
    first, second = (run("send", name, body, "--priority", "4")[1].strip() for body in "ab")
    assert run("reprioritise", name, "-5", second)[:2] == (0, "1 message now with the priority -5\n")
    status, out, _ = run("peek", name)
    assert (status, out.splitlines()[0].split()[-3:]) == (0, ["RECV", "PRIO", "BODY"])
    assert [line.split()[-2:] for line in out.splitlines()[1:]] == [["4", "a"], ["-5", "b"]]
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{first}\n\nnone\n"))
    status, out, err = run("reprioritise", name, "9", "--json")
    assert (status, json.loads(out)) == (1, {"priority": 9, "changed": [first], "not_found": ["none"]})
    assert "1 message not in the queue: none" in err
    assert [json.loads(line)["Priority"] for line in run("peek", name, "--json")[1].splitlines()] == [9, -5]


def test_send_to_a_fifo_queue_tells_the_sequence_number(run: Any, sqs: Sqs) -> None:
    name = f"{uuid4().hex}.fifo"
    sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})
    _, out, _ = run("send", name, "x", "--group", "g", "--deduplication-id", "1", "--json")
    assert json.loads(out).keys() == {"MessageId", "SequenceNumber"}


def test_send_takes_lines(run: Any, sqs: Sqs, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"line {number}\n" for number in range(25))))
    status, out, _ = run("send", queue, "--json")
    assert (status, json.loads(out)) == (0, {"sent": 25})
    assert bodies(sqs, queue) == [f"line {number}" for number in range(25)]


def test_create_makes_fifo_queues_and_dead_letter_queues(run: Any, sqs: Sqs, queue: str) -> None:
    name = f"{uuid4().hex}.fifo"
    assert run("create", name)[1].strip() == url_of(sqs, name)
    other = f"{queue}-source"
    run("create", other, "--attribute", "DelaySeconds=7", "--dead-letters", queue, "--max-receives", "5", "--json")
    found = sqs.get_queue_attributes(QueueUrl=url_of(sqs, other), AttributeNames=["All"])["Attributes"]
    assert found["DelaySeconds"] == "7"
    assert json.loads(found["RedrivePolicy"])["maxReceiveCount"] in (5, "5")
    assert json.loads(found["RedrivePolicy"])["deadLetterTargetArn"].endswith(f":{queue}")


def test_scheduled_messages_are_sent_listed_moved_and_cancelled(run: Any, sqs: Sqs, queue: str) -> None:
    tomorrow = datetime.fromtimestamp(time.time() + 86_400).isoformat(timespec="seconds")
    soon = str(int((time.time() + 3_600) * 1_000))
    ids = [run("send", queue, body, "--deliver-at", at)[1].strip() for body, at in (("b", tomorrow), ("a", soon))]
    listed = [json.loads(line) for line in run("scheduled", queue, "--json")[1].splitlines()]
    assert [line["MessageBody"] for line in listed] == ["a", "b"], "the next one first"
    assert run("scheduled", queue, "-n", "1")[1].splitlines()[-1].endswith("a")
    assert "Messages" not in sqs.receive_message(QueueUrl=url_of(sqs, queue))
    assert run("reschedule", queue, "0", ids[0])[0] == 0
    assert sqs.receive_message(QueueUrl=url_of(sqs, queue))["Messages"][0]["Body"] == "b"
    status, out, err = run("cancel", queue, *ids)
    assert (status, out) == (1, "1 message deleted\n")
    assert f"1 message not waiting in the queue: {ids[0]}" in err
    assert run("scheduled", queue, "--json")[1] == ""
    assert run("send", queue, "x", "--deliver-at", "tomorrow")[0] == 2


def test_purge_waits_until_nothing_is_left(run: Any, sqs: Sqs, queue: str) -> None:
    run("send", queue, "x")
    status, out, _ = run("purge", queue, "--yes")
    assert (status, out) == (0, "purged about 1 message\n")
    assert bodies(sqs, queue) == []


def test_delete_takes_the_queue_and_its_messages(run: Any, sqs: Sqs, queue: str) -> None:
    run("send", queue, "x")
    assert run("delete", queue, "--yes") == (0, f"deleted {queue} with about 1 message\n", "")
    with pytest.raises(SqsError, match="NonExistentQueue"):
        url_of(sqs, queue)
    status, out, err = run("delete", queue, "--yes")
    assert (status, out, "NonExistentQueue" in err) == (1, "", True)


def test_delete_as_json_by_url(run: Any, sqs: Sqs, queue: str) -> None:
    status, out, _ = run("delete", url_of(sqs, queue), "--yes", "--json")
    assert (status, json.loads(out)) == (0, {"deleted": queue, "messages": 0})


def test_delete_without_a_terminal_wants_yes_and_on_one_the_name(url: str, sqs: Sqs, queue: str) -> None:
    command = [sys.executable, "-m", "elasticq", "queues", "delete", "--url", url, queue]
    done = subprocess.run(command, input=f"{queue}\n", capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, "use --yes" in done.stderr, done.stdout) == (1, True, "")
    master, terminal = pty.openpty()
    os.write(master, b"another\n")
    done = subprocess.run(command, stdin=terminal, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, "nothing was deleted" in done.stderr) == (1, True)
    assert url_of(sqs, queue)
    os.write(master, f"{queue}\n".encode())
    done = subprocess.run(command, stdin=terminal, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0
    with pytest.raises(SqsError, match="NonExistentQueue"):
        url_of(sqs, queue)
    os.close(master)
    os.close(terminal)


def test_set_changes_attributes_and_takes_policies_away(run: Any, sqs: Sqs, queue: str) -> None:
    dead = f"dead-{uuid4().hex}"
    sqs.create_queue(QueueName=dead)
    arn = sqs.get_queue_attributes(QueueUrl=url_of(sqs, dead), AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "4"})
    status, out, _ = run("set", queue, "VisibilityTimeout=7", f"RedrivePolicy={policy}")
    first, second = out.splitlines()
    assert (status, first) == (0, "VisibilityTimeout=7")
    assert json.loads(second.removeprefix("RedrivePolicy="))["deadLetterTargetArn"] == arn
    status, out, _ = run("set", queue, "RedrivePolicy=", "--json")
    assert (status, json.loads(out)) == (0, {"name": queue, "attributes": {"RedrivePolicy": ""}})
    found = sqs.get_queue_attributes(QueueUrl=url_of(sqs, queue), AttributeNames=["All"])["Attributes"]
    assert (found["VisibilityTimeout"], "RedrivePolicy" in found) == ("7", False)


@pytest.mark.parametrize(
    ("change", "told", "expected"),
    [
        ("VisibilityTimeout", "'VisibilityTimeout' is not NAME=VALUE", 2),
        ("VisibilityTimeout=-1", "InvalidAttributeValue", 1),
        ("Colour=red", "InvalidAttributeName", 1),
    ],
)
def test_set_of_what_cannot_be_set_fails_and_changes_nothing(
    run: Any, sqs: Sqs, queue: str, change: str, told: str, expected: int
) -> None:
    status, out, err = run("set", queue, "DelaySeconds=9", change)
    assert (status, out, told in err) == (expected, "", True), err
    found = sqs.get_queue_attributes(QueueUrl=url_of(sqs, queue), AttributeNames=["DelaySeconds"])["Attributes"]
    assert found["DelaySeconds"] == "0"


def test_purge_on_a_terminal_wants_the_name(url: str, sqs: Sqs, queue: str) -> None:
    sqs.send_message(QueueUrl=url_of(sqs, queue), MessageBody="x")
    master, terminal = pty.openpty()
    command = [sys.executable, "-m", "elasticq", "queues", "purge", "--url", url, queue]
    os.write(master, b"another\n")
    done = subprocess.run(command, stdin=terminal, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, "nothing was purged" in done.stderr) == (1, True)
    os.write(master, f"{queue}\n".encode())
    done = subprocess.run(command, stdin=terminal, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, bodies(sqs, queue)) == (0, [])
    os.close(master)
    os.close(terminal)


def test_purge_without_a_terminal_wants_yes(url: str, sqs: Sqs, queue: str) -> None:
    sqs.send_message(QueueUrl=url_of(sqs, queue), MessageBody="x")
    command = [sys.executable, "-m", "elasticq", "queues", "purge", "--url", url, queue]
    done = subprocess.run(command, input=f"{queue}\n", capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, "use --yes" in done.stderr, done.stdout) == (1, True, "")
    assert bodies(sqs, queue) == ["x"]


def test_ctrl_c_at_a_prompt_ends_the_command_without_a_traceback(url: str, sqs: Sqs, queue: str) -> None:
    sqs.send_message(QueueUrl=url_of(sqs, queue), MessageBody="x")
    master, terminal = pty.openpty()
    command = [sys.executable, "-m", "elasticq", "queues", "purge", "--url", url, queue]
    asked = subprocess.Popen(command, stdin=terminal, stderr=subprocess.PIPE, text=True)
    assert asked.stderr is not None
    prompt = ""
    while not prompt.endswith(": "):
        prompt += asked.stderr.read(1)
    asked.send_signal(signal.SIGINT)
    rest = asked.stderr.read()
    assert (asked.wait(PATIENCE_S), rest) == (130, "\n")
    assert bodies(sqs, queue) == ["x"]
    asked.stderr.close()
    os.close(master)
    os.close(terminal)


def dead_letters(sqs: Sqs, count: int) -> tuple[str, str]:
    """(dead-letter queue with messages, their source)."""
    dead, source = f"dead-{uuid4().hex}", f"source-{uuid4().hex}"
    dead_url = sqs.create_queue(QueueName=dead)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    source_url = sqs.create_queue(QueueName=source, Attributes={"RedrivePolicy": policy, "VisibilityTimeout": "0"})[
        "QueueUrl"
    ]
    for number in range(count):
        sqs.send_message(QueueUrl=source_url, MessageBody=str(number))
    while len(bodies(sqs, dead)) < count:
        sqs.receive_message(QueueUrl=source_url, MaxNumberOfMessages=10)
    return dead, source


def test_redrive_moves_back_and_waits(run: Any, sqs: Sqs) -> None:
    dead, source = dead_letters(sqs, 3)
    status, out, _ = run("redrive", dead)
    assert (status, out) == (0, "moved 3 messages\n")
    assert sorted(bodies(sqs, source)) == ["0", "1", "2"]


def test_redrive_goes_elsewhere_and_can_be_cancelled(run: Any, sqs: Sqs, queue: str) -> None:
    dead, _ = dead_letters(sqs, 3)
    assert run("redrive", dead, "--to", queue, "--rate", "1", "--no-wait")[0] == 0
    status, out, _ = run("redrive", dead, "--cancel")
    assert status == 0
    assert out.startswith("cancelled after ")
    status, _, err = run("redrive", queue, "--cancel")
    assert (status, "no move runs" in err) == (1, True)


def full_message(sqs: Sqs, queue: str) -> None:
    sqs.send_message(
        QueueUrl=url_of(sqs, queue),
        MessageBody="first ☃",
        MessageGroupId="g",
        MessageAttributes={
            "text": {"DataType": "String", "StringValue": "v"},
            "bytes": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
        },
        MessageSystemAttributes={"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-a-b"}},
    )


@pytest.mark.parametrize("flags", [[], ["--drain"]])
def test_what_was_exported_is_imported_with_everything(
    run: Any, sqs: Sqs, queue: str, tmp_path: Path, flags: list[str]
) -> None:
    full_message(sqs, queue)
    for number in range(24):
        sqs.send_message(QueueUrl=url_of(sqs, queue), MessageBody=str(number))
    file = tmp_path / "messages.jsonl"
    assert run("export", queue, str(file), *flags)[0] == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 25
    assert len(bodies(sqs, queue)) == (0 if flags else 25)
    other = f"{queue}-2"
    sqs.create_queue(QueueName=other)
    status, _, err = run("import", other, str(file))
    assert (status, err) == (0, f"elasticq: 25 messages imported into {other} (us-east-1)\n")
    found = {message["Body"]: message for message in sqs.peek(QueueUrl=url_of(sqs, other), Limit=100)["Messages"]}
    first = found["first ☃"]
    assert first["MessageAttributes"]["bytes"]["BinaryValue"] == b"\x00\xff"
    assert first["MessageAttributes"]["text"]["StringValue"] == "v"
    assert first["Attributes"]["AWSTraceHeader"] == "Root=1-a-b"
    assert first["GroupId"] == "g"
    assert len(found) == 25


def test_fifo_messages_keep_order_group_and_deduplication_id(run: Any, sqs: Sqs, tmp_path: Path) -> None:
    names = [f"{uuid4().hex}.fifo" for _ in range(2)]
    urls = [sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})["QueueUrl"] for name in names]
    for number in range(12):
        group, mark = f"g{number % 2}", f"d{number}"
        sqs.send_message(QueueUrl=urls[0], MessageBody=str(number), MessageGroupId=group, MessageDeduplicationId=mark)
    file = str(tmp_path / "fifo.jsonl")
    run("export", names[0], file)
    for _ in range(2):  # again within five minutes: nothing twice
        assert run("import", names[1], file)[0] == 0
    found = sqs.peek(QueueUrl=urls[1], Limit=100)["Messages"]
    expected = [(str(number), f"g{number % 2}", f"d{number}") for number in range(12)]
    assert [(each["Body"], each["GroupId"], each["DeduplicationId"]) for each in found] == expected


def test_export_never_writes_over_a_file(run: Any, queue: str, tmp_path: Path) -> None:
    file = tmp_path / "there"
    file.write_text("mine")
    assert run("export", queue, str(file))[0] == 1
    assert file.read_text() == "mine"


@pytest.mark.parametrize("broken", ["{", "[]", '{"Body": "x"}', '{"MessageBody": "x", "MessageAttributes": 1}', ""])
def test_a_line_that_is_no_message_stops_the_import(
    run: Any, sqs: Sqs, queue: str, tmp_path: Path, broken: str
) -> None:
    file = tmp_path / "broken.jsonl"
    good = "".join(json.dumps({"MessageBody": str(number)}) + "\n" for number in range(10))
    file.write_text(f"{good}{broken}\n{good}")
    status, _, err = run("import", queue, str(file))
    assert status == 1
    assert "line 11 is not a message" in err
    assert "--skip" in err
    assert len(bodies(sqs, queue)) <= 10


def test_a_refused_message_is_told_with_its_line(run: Any, queue: str, tmp_path: Path) -> None:
    file = tmp_path / "refused.jsonl"
    file.write_text('{"MessageBody": "good"}\n{"MessageBody": "\\u0000"}\n')
    status, _, err = run("import", queue, str(file))
    assert status == 1
    assert "message 2 was refused: InvalidMessageContents" in err


def test_batches_are_as_large_as_a_call_may_be() -> None:
    entries = [{"MessageBody": "x" * 400_000} for _ in range(5)] + [{"MessageBody": "y"} for _ in range(25)]
    assert [len(batch) for batch in carry.batches(iter(entries))] == [2, 2, 10, 10, 6]


def test_import_tells_how_much_is_left(run: Any, queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "messages.jsonl"
    file.write_text("".join(json.dumps({"MessageBody": str(at)}) + "\n" for at in range(25)))
    monkeypatch.setattr("elasticq.cli.show.REPORT_EVERY_S", 0.0)
    status, _, err = run("import", queue, str(file), "--skip", "3")
    assert (status, err.splitlines()) == (
        0,
        [
            "elasticq: sending: 13 of 25 done, 12 left",
            "elasticq: sending: 23 of 25 done, 2 left",
            "elasticq: sending: 25 of 25 done, 0 left",
            f"elasticq: 22 messages imported into {queue} (us-east-1)",
        ],
    )


def test_import_from_a_pipe_reads_it_once(
    run: Any, sqs: Sqs, queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(json.dumps({"MessageBody": "x"}) + "\n",))
    writer.start()
    monkeypatch.setattr("elasticq.cli.show.REPORT_EVERY_S", 0.0)
    status, _, err = run("import", queue, str(pipe))
    writer.join(PATIENCE_S)
    assert (status, err.splitlines()) == (
        0,
        ["elasticq: sending: 1 done", f"elasticq: 1 message imported into {queue} (us-east-1)"],
    )
    assert bodies(sqs, queue) == ["x"]


def test_import_draws_how_much_is_left_on_a_terminal(url: str, queue: str, tmp_path: Path) -> None:
    file = tmp_path / "messages.jsonl"
    file.write_text("".join(json.dumps({"MessageBody": str(at)}) + "\n" for at in range(25)))
    master, terminal = pty.openpty()
    command = [sys.executable, "-m", "elasticq", "queues", "import", "--url", url, queue, str(file)]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "200"}
    subprocess.run(command, stderr=terminal, timeout=PATIENCE_S, check=True, env=environment)
    os.close(terminal)
    drawn = os.read(master, 65_536).decode()
    os.close(master)
    assert "25/25" in drawn


def test_an_interrupted_import_says_where_to_go_on(url: str, sqs: Sqs, queue: str) -> None:
    command = [sys.executable, "-m", "elasticq", "queues", "import", "--url", url, queue]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        for number in range(11):
            process.stdin.write(json.dumps({"MessageBody": str(number)}) + "\n")
        process.stdin.flush()
        until(lambda: len(bodies(sqs, queue)) == 10)
        process.send_signal(signal.SIGINT)
        more = "".join(json.dumps({"MessageBody": str(number)}) + "\n" for number in range(11, 40))
        _, err = process.communicate(more, timeout=PATIENCE_S)
    sent = len(bodies(sqs, queue))
    assert process.returncode == 130
    assert f"{sent} messages imported" in err
    assert f"continue with --skip {sent}" in err
    lines = "".join(json.dumps({"MessageBody": str(number)}) + "\n" for number in range(40))
    subprocess.run([*command, "--skip", str(sent)], input=lines, text=True, timeout=PATIENCE_S, check=True)
    assert bodies(sqs, queue) == [str(number) for number in range(40)]


def until(condition: Callable[[], bool]) -> None:
    deadline = threading.Event()
    timer = threading.Timer(PATIENCE_S, deadline.set)
    timer.start()
    while not condition():
        assert not deadline.is_set(), "it never came true"
    timer.cancel()


def test_a_reader_that_has_enough_ends_the_command(url: str, sqs: Sqs, queue: str) -> None:
    for _ in range(3):
        sqs.send_message_batch(
            QueueUrl=url_of(sqs, queue),
            Entries=[{"Id": str(number), "MessageBody": "x" * 60_000} for number in range(10)],
        )
    command = f"{sys.executable} -m elasticq queues export --url {url} {queue} | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert "Traceback" not in done.stderr


def test_a_table_is_drawn_on_a_terminal(url: str, sqs: Sqs, queue: str) -> None:
    master, terminal = pty.openpty()
    command = [sys.executable, "-m", "elasticq", "queues", "ls", "--url", url, queue]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "200"}
    subprocess.run(command, stdout=terminal, stderr=terminal, timeout=PATIENCE_S, check=True, env=environment)
    os.close(terminal)
    drawn = os.read(master, 65_536).decode()
    os.close(master)
    assert queue in drawn
    assert "\x1b[1m" in drawn


class Foreign(http.server.BaseHTTPRequestHandler):
    """Something that speaks a little SQS and is not elasticq."""

    def do_GET(self) -> None:
        self._answer(b"OK")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        action = self.headers["X-Amz-Target"].rpartition(".")[2]
        answers = {"GetQueueUrl": {"QueueUrl": "http://h/000000000000/q"}, "GetQueueAttributes": {"Attributes": {}}}
        self._answer(json.dumps(answers[action]).encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def test_only_elasticq_can_be_peeked(capsys: pytest.CaptureFixture[str]) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Foreign) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        assert main(["queues", "peek", "--url", url, "q"]) == 1
        assert main(["queues", "export", "--url", url, "q"]) == 1
        server.shutdown()
    assert capsys.readouterr().err.count("is not elasticq") == 2


def test_what_is_wrong_is_told_in_a_line(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run("peek", "no-such-queue")
    assert (status, err.count("\n")) == (1, 1)
    assert "NonExistentQueue" in err
    assert main(["queues", "ls", "--url", "nonsense"]) == 2
    assert main(["queues", "ls", "--profile", "no-such-profile"]) == 2


@pytest.mark.parametrize("is_named", [False, True])
def test_who_meant_another_machine_is_told_how_to_name_it(
    is_named: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setattr("elasticq.cli.queues.RETRY_S", 0)
        monkeypatch.setattr("elasticq.cli.queues.DEFAULT_URL", "" if is_named else url)
        monkeypatch.delenv("AWS_ENDPOINT_URL_SQS", raising=False)
        assert main(["queues", "ls", *(["--url", url] if is_named else [])]) == 1
    hint = "(--url or AWS_ENDPOINT_URL_SQS names another server)"
    assert (hint in capsys.readouterr().err) != is_named


def test_nothing_that_was_sent_moves_the_cursor() -> None:
    assert one_line("a\x1b[2Jb\r\n\u2028☃") == "a\\x1b[2Jb\\r\\n\\u2028☃"
