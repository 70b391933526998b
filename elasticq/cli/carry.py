"""The export of a queue's messages as JSON lines, and their import into a queue.

A line has the members of SendMessage, so it can be sent again: MessageBody, MessageAttributes (binary values in
base64), MessageSystemAttributes, MessageGroupId, MessageDeduplicationId. The import ignores its other members, such as
MessageId, SentTimestamp and ReceiveCount.

An export without --drain changes nothing. With --drain, a message is deleted when its line is on the disk. If the
export is interrupted in between, the message is in both the file and the queue.
"""

import json
import os
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from elasticq.cli.exits import EXIT_INTERRUPTED
from elasticq.cli.show import Interrupt, bar, count, json_lines, report

if TYPE_CHECKING:
    from elasticq.client import Sqs

PAGE: Final = 1_000
BATCH: Final = 10
BATCH_BYTES: Final = 1_000_000  # less than the limit of 1,048,576, which also counts names and types
DRAIN_WAIT_S: Final = 2
DRAIN_VISIBILITY_S: Final = 120
SENT: Final = (
    "MessageAttributes",
    "MessageSystemAttributes",
    "MessageGroupId",
    "MessageDeduplicationId",
    "DelaySeconds",
)
OF_SYSTEM: Final = ("SentTimestamp", "SenderId", "SequenceNumber", "DeadLetterQueueSourceArn")


class Stopped(Exception):
    """The early end of a command. The text says how much was done."""


def must_be_elasticq(endpoint: str, wish: str) -> None:
    """Raise Stopped if the endpoint is not an elasticq server."""
    from elasticq.client import is_elasticq

    if not is_elasticq(endpoint):
        raise Stopped(f"{endpoint} is not elasticq: {wish} is not possible there")


# --- export -------------------------------------------------------------------------


def line_of(message: dict[str, Any]) -> dict[str, Any]:
    """Return the line of a received or a peeked message."""
    system = message.get("Attributes", {})
    line: dict[str, Any] = {"MessageBody": message["Body"]}
    if message.get("MessageAttributes"):
        line["MessageAttributes"] = {name: _text(value) for name, value in message["MessageAttributes"].items()}
    if "AWSTraceHeader" in system:
        value = {"DataType": "String", "StringValue": system["AWSTraceHeader"]}
        line["MessageSystemAttributes"] = {"AWSTraceHeader": value}
    line |= {name: system[name] for name in ("MessageGroupId", "MessageDeduplicationId") if name in system}
    line["MessageId"] = message["MessageId"]
    line |= {name: system[name] for name in OF_SYSTEM if name in system}
    line["ReceiveCount"] = int(system.get("ApproximateReceiveCount", 0))
    extras = ("State", "Sequence", "Partition", "Priority", "DeliverAt")
    return line | {name: message[name] for name in extras if name in message}


def _text(attribute: dict[str, Any]) -> dict[str, Any]:
    if "BinaryValue" not in attribute:
        return attribute
    return attribute | {"BinaryValue": b64encode(attribute["BinaryValue"]).decode()}


def export(client: "Sqs", url: str, file: str, total: int, place: str, *, drain: bool) -> int:
    """Write the messages of a queue to a file. Return the exit status. place: the queue's name for messages."""
    take = _drain if drain else _look
    with _target(file) as out, Interrupt() as interrupt, bar("exporting", total) as show:
        written = 0
        for lines in take(client, url, interrupt):
            out.write("".join(json.dumps(line) + "\n" for line in lines))
            out.flush()
            if out is not sys.stdout:
                os.fsync(out.fileno())
            written += len(lines)
            show(written)
    report(f"{count(written, 'message')} {'taken out' if drain else 'written'} of {place}")
    return EXIT_INTERRUPTED if interrupt.asked else 0


@contextmanager
def _target(file: str) -> Iterator[IO[str]]:
    """Open a new file, or stdout for ``-``. Raise FileExistsError if the file exists, to protect its lines."""
    if file == "-":
        yield sys.stdout
        return
    with Path(file).open("x", encoding="utf-8") as out:
        yield out


def _look(client: "Sqs", url: str, interrupt: Interrupt) -> Iterator[list[dict[str, Any]]]:
    at: int | None = 0
    while at is not None and not interrupt.asked:
        page = client.peek(QueueUrl=url, FromSequence=at, Limit=PAGE)
        yield [line_of(message) for message in page["Messages"]]
        at = page["NextSequence"]


def _drain(client: "Sqs", url: str, interrupt: Interrupt) -> Iterator[list[dict[str, Any]]]:
    """Receive messages, yield their lines, and delete them when the caller asks for more: then the lines are safe."""
    wanted = {"MaxNumberOfMessages": BATCH, "WaitTimeSeconds": DRAIN_WAIT_S, "VisibilityTimeout": DRAIN_VISIBILITY_S}
    names = {"AttributeNames": ["All"], "MessageAttributeNames": ["All"]}
    while not interrupt.asked:
        messages = client.receive_message(QueueUrl=url, **wanted, **names).get("Messages", [])
        if not messages:
            return
        yield [line_of(message) for message in messages]
        handles = [{"Id": str(at), "ReceiptHandle": each["ReceiptHandle"]} for at, each in enumerate(messages)]
        failed = client.delete_message_batch(QueueUrl=url, Entries=handles).get("Failed", [])
        if failed:
            raise Stopped(f"{count(len(failed), 'message')} written but not deleted: {failed[0]['Message']}")


# --- import -------------------------------------------------------------------------


def load(client: "Sqs", url: str, file: str, skip: int, place: str) -> int:
    """Send the lines of a file, except the first ``skip``. Return the exit status. place: the queue, for the user."""
    source = sys.stdin if file == "-" else Path(file).open(encoding="utf-8")  # noqa: SIM115
    with source:
        entries = (_entry(line, number) for number, line in enumerate(source, 1) if number > skip)
        return send_all(client, url, entries, "imported", before=skip, total=_total(file), into=f" into {place}")


def _total(file: str) -> int | None:
    """Return how many lines the file has, None if it can be read only once, such as a pipe."""
    path = Path(file)
    if file == "-" or not path.is_file():
        return None
    with path.open("rb") as lines:
        return sum(1 for _ in lines)


def _entry(line: str, number: int) -> dict[str, Any]:
    try:
        message = json.loads(line)
        entry = {"MessageBody": message["MessageBody"]} | {name: message[name] for name in SENT if name in message}
        for attribute in entry.get("MessageAttributes", {}).values():
            if "BinaryValue" in attribute:
                attribute["BinaryValue"] = b64decode(attribute["BinaryValue"], validate=True)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Stopped(f"line {number} is not a message: {error!r}") from error
    return entry


def send_all(
    client: "Sqs",
    url: str,
    entries: Iterator[dict[str, Any]],
    done: str,
    *,
    before: int = 0,
    total: int | None = None,
    as_json: bool = False,
    into: str = "",
) -> int:
    """Send the messages in their order, in batches. Return the exit status. Raise Stopped if one is refused.

    done: the participle for the report, such as "sent"; before: how many lines were skipped; total: how many there
    are, including those, None if unknown; into: the end of the report, such as " into jobs".
    """
    sent = 0
    with Interrupt() as interrupt, bar("sending", total) as show:
        try:
            for batch in batches(entries):
                if interrupt.asked:
                    break
                sent += _send_batch(client, url, batch, before + sent)
                show(before + sent)
        except (Stopped, OSError) as error:
            raise Stopped(f"{error}; {count(sent, 'message')} {done}{_continue_hint(before + sent, done)}") from error
    if as_json:
        json_lines([{"sent": sent}])
    else:
        report(f"{count(sent, 'message')} {done}{into}")
    if interrupt.asked:
        report(f"interrupted{_continue_hint(before + sent, done)}")
        return EXIT_INTERRUPTED
    return 0


def _continue_hint(lines: int, done: str) -> str:
    return f": continue with --skip {lines}" if done == "imported" else ""


def batches(
    entries: Iterable[dict[str, Any]], body: str = "MessageBody", bytes_max: int = BATCH_BYTES
) -> Iterator[list[dict[str, Any]]]:
    """Yield batches of messages that fit into one call each. A message that is too long is a batch of its own.

    body: the member with the body. The server refuses messages that are too long.
    """
    batch: list[dict[str, Any]] = []
    size_bytes = 0
    for entry in entries:
        entry_bytes = _weigh(entry, body)
        if batch and (len(batch) == BATCH or size_bytes + entry_bytes > bytes_max):
            yield batch
            batch, size_bytes = [], 0
        batch.append({"Id": str(len(batch)), **entry})
        size_bytes += entry_bytes
    if batch:
        yield batch


def _weigh(entry: dict[str, Any], body: str) -> int:
    attributes = entry.get("MessageAttributes", {})
    parts = (part for name, value in attributes.items() for part in (name, *value.values()))
    return len(entry[body].encode("utf-8", "surrogatepass")) + sum(map(len, parts))


def _send_batch(client: "Sqs", url: str, batch: list[dict[str, Any]], before: int) -> int:
    check_taken(client.send_message_batch(QueueUrl=url, Entries=batch), batch, before)
    return len(batch)


def check_taken(answer: dict[str, Any], batch: list[dict[str, Any]], before: int) -> None:
    """Raise Stopped if a message of the batch was refused. before: how many messages came before the batch."""
    failed = answer.get("Failed", [])
    if failed:
        first = min(failed, key=lambda each: int(each["Id"]))
        refusal = f"message {before + int(first['Id']) + 1} was refused: {first['Code']}: {first.get('Message', '')}"
        others = len(batch) - len(failed)
        raise Stopped(
            f"{refusal} ({count(others, 'other')} of its batch of {len(batch)} accepted)" if others else refusal
        )
