"""The commands ``elasticq queues receive`` and ``tail``: messages on stdout, as texts or as JSON lines."""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from elasticq.cli import carry
from elasticq.cli.queue_sheet import url_of
from elasticq.cli.show import Interrupt, count, one_line, report

if TYPE_CHECKING:
    from elasticq.client import Sqs

RECEIVE: Final = "receive messages; they stay in the queue, invisible for a while, unless --delete is given"
TAIL: Final = "follow new messages without receiving them, until Ctrl-C (elasticq only)"
WAIT_MAX_S: Final = 20
LOOK_S: Final = 0.3
SEQUENCE_MAX: Final = 2**63 - 1
_FACTS: Final = {
    "State": "state",
    "Sequence": "sequence",
    "MessageGroupId": "group",
    "Partition": "partition",
    "Priority": "priority",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--max", type=_positive, default=1, metavar="N", help="receive at most so many (1)")
    parser.add_argument("--wait", type=float, default=0, metavar="S", help="wait so long for the first message (0)")
    words = "keep the messages invisible for so long (the queue's setting); 0 returns them at once"
    parser.add_argument("--visibility-timeout", type=int, metavar="S", help=words)
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--delete", action="store_true", help="delete each message when it is printed")
    end.add_argument("--peek", action="store_true", help="show visible messages without receiving them (elasticq only)")


def add_tail_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--max", type=_positive, metavar="N", help="end after so many messages")
    parser.add_argument("--group", metavar="ID", help="only messages of this group")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def receive(client: "Sqs", options: argparse.Namespace) -> int:
    """Receive messages and print them. Return the exit status, 1 if there was none."""
    url = url_of(client, options.queue)
    if options.peek:
        carry.must_be_elasticq(options.url, "receive --peek")
        batches = _visible(client, url, options.max)
    else:
        batches = _received(client, url, options)
    shown = 0
    with Interrupt() as interrupt:
        for messages in batches:
            _print(messages, as_json=options.json)
            shown += len(messages)
            if options.delete:
                _delete(client, url, messages)
            if interrupt.asked:
                break
    if not shown:
        report("no message")
    elif not options.delete and not options.peek:
        report(f"{count(shown, 'message')} received and not deleted: --delete deletes, --peek only shows")
    return 0 if shown else 1


def _received(client: "Sqs", url: str, options: argparse.Namespace) -> Iterator[list[dict[str, Any]]]:
    """Yield messages until the maximum or an empty answer. Only the first one is waited for."""
    wanted: dict[str, Any] = {"AttributeNames": ["All"], "MessageAttributeNames": ["All"]}
    if options.visibility_timeout is not None:
        wanted["VisibilityTimeout"] = options.visibility_timeout
    deadline_s = time.monotonic() + options.wait
    left = options.max
    while left:
        wait_s = min(WAIT_MAX_S, max(0, round(deadline_s - time.monotonic())))
        batch = min(left, carry.BATCH)
        answer = client.receive_message(QueueUrl=url, MaxNumberOfMessages=batch, WaitTimeSeconds=wait_s, **wanted)
        messages = answer.get("Messages", [])
        if messages:
            left, deadline_s = left - len(messages), 0.0
            yield messages
        elif not wait_s:
            return


def _visible(client: "Sqs", url: str, limit: int) -> Iterator[list[dict[str, Any]]]:
    at: int | None = 0
    while limit and at is not None:
        page = client.peek(QueueUrl=url, FromSequence=at, Limit=min(limit, carry.PAGE), States=["visible"])
        limit, at = limit - len(page["Messages"]), page["NextSequence"]
        yield page["Messages"]


def _delete(client: "Sqs", url: str, messages: list[dict[str, Any]]) -> None:
    handles = [{"Id": str(at), "ReceiptHandle": each["ReceiptHandle"]} for at, each in enumerate(messages)]
    failed = client.delete_message_batch(QueueUrl=url, Entries=handles).get("Failed", [])
    if failed:
        raise carry.Stopped(f"{count(len(failed), 'message')} printed but not deleted: {failed[0]['Message']}")


def tail(client: "Sqs", options: argparse.Namespace) -> int:
    """Print messages that are sent from now on. A message that is deleted within LOOK_S may be missed."""
    url = url_of(client, options.queue)
    carry.must_be_elasticq(options.url, "tail")
    chosen = {} if options.group is None else {"MessageGroupId": options.group}
    left = options.max
    at = client.peek(QueueUrl=url, FromSequence=SEQUENCE_MAX, Limit=1)["LastSequence"] + 1
    report(f"following {options.queue}; Ctrl-C ends")
    with Interrupt() as interrupt:
        while not interrupt.asked and left != 0:
            page = client.peek(QueueUrl=url, FromSequence=at, Limit=min(left or carry.PAGE, carry.PAGE), **chosen)
            messages = page["Messages"]
            _print(messages, as_json=options.json)
            if left is not None:
                left -= len(messages)
            if page["NextSequence"] is not None:
                at = page["NextSequence"]
                continue
            at = page["LastSequence"] + 1
            interrupt.wait(LOOK_S)
    return 0


def _print(messages: list[dict[str, Any]], *, as_json: bool) -> None:
    for message in messages:
        line = carry.line_of(message)
        if "ReceiptHandle" in message:
            line["ReceiptHandle"] = message["ReceiptHandle"]
        print(json.dumps(line) if as_json else _text(line))
    sys.stdout.flush()


def _text(line: dict[str, Any]) -> str:
    """Return a message for people: a line with its facts, then its body as it is, without control characters."""
    facts = [line["MessageId"], f"received {line['ReceiveCount']}"]
    facts += [f"{name} {line[key]}" for key, name in _FACTS.items() if line.get(key) not in (None, "")]
    attributes = line.get("MessageAttributes", {})
    facts += [f"{name}={each.get('StringValue', each.get('BinaryValue'))}" for name, each in attributes.items()]
    body = "\n".join(map(one_line, line["MessageBody"].splitlines()))
    return f"{one_line('  '.join(facts))}\n{body}"
