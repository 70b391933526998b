"""The commands ``elasticq queues``: they show and change queues and messages, at any SQS endpoint."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Final

from elasticq.cli import carry, queue_sheet, receiving
from elasticq.cli.confirm import NotConfirmed, confirm
from elasticq.cli.exits import EXIT_INTERRUPTED, fail, refuse
from elasticq.cli.queue_sheet import attributes_of, counts_of, region_of, url_of
from elasticq.cli.show import Interrupt, bar, count, json_lines, one_line, report, table

if TYPE_CHECKING:
    from elasticq.client import Sqs

DEFAULT_URL: Final = "http://127.0.0.1:9324"
URL_VARIABLE: Final = "AWS_ENDPOINT_URL_SQS"
RETRY_S: Final = 5
LOOK_S: Final = 0.2
STATES: Final = ("visible", "inflight", "delayed")
BODY_SHOWN: Final = 60
TIME_WORDS: Final = "ms since the epoch, or as 2027-01-31T08:00 (local) or 2027-01-31T08:00+00:00"


class Failure(Exception):
    """A command that failed. The text is for the operator."""


class Misuse(Exception):
    """An argument that is not valid. The text is for the operator."""


def add_queues(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    ls = _add(commands, "ls", "list queues with the numbers of their messages", _ls)
    ls.add_argument("prefix", nargs="?", default="", metavar="PREFIX", help="only queues whose names begin so")
    create = _add(commands, "create", "create a queue, a FIFO queue if its name ends in .fifo", _create, "queue")
    create.add_argument("--attribute", action="append", default=[], metavar="NAME=VALUE", help="may be repeated")
    create.add_argument("--dead-letters", metavar="QUEUE", help="its dead-letter queue")
    words = "receives after which a message moves to the dead-letter queue (3)"
    create.add_argument("--max-receives", type=int, default=3, metavar="N", help=words)
    _add(commands, "show", "show a queue: its counts, attributes, policies and tags", _show, "queue")
    change = _add(commands, "set", "change attributes of a queue", _set, "queue")
    change.add_argument(
        "attributes", nargs="+", metavar="NAME=VALUE", help="a policy is JSON; an empty value removes it"
    )
    peek = _add(commands, "peek", "show messages without a change of them (elasticq only)", _peek, "queue")
    peek.add_argument("-n", "--limit", type=int, default=10, metavar="N", help="show at most so many (10)")
    peek.add_argument(
        "--from", dest="first", type=int, default=0, metavar="SEQUENCE", help="the first sequence to show"
    )
    peek.add_argument("--state", choices=STATES, action="append", help="only messages in this state; may be repeated")
    peek.add_argument("--group", metavar="ID", help="only messages of this group")
    receiving.add_options(_add(commands, "receive", receiving.RECEIVE, receiving.receive, "queue"))
    receiving.add_tail_options(_add(commands, "tail", receiving.TAIL, receiving.tail, "queue"))
    send = _add(commands, "send", "send a message, or each line of stdin", _send, "queue")
    send.add_argument("body", nargs="?", metavar="BODY", help="without it each line of stdin is a message")
    send.add_argument("--group", metavar="ID", help="MessageGroupId")
    send.add_argument("--deduplication-id", metavar="ID", help="of a single BODY")
    send.add_argument("--delay-s", type=int, metavar="S", help="DelaySeconds, 0 to 900")
    send.add_argument("--attribute", action="append", default=[], metavar="NAME=VALUE", help="may be repeated")
    send.add_argument("--deliver-at", metavar="TIME", help=TIME_WORDS)
    send.add_argument("--priority", type=int, metavar="N", help="for a priority queue; the lowest number goes first")
    move = _add(commands, "reprioritise", "change the priority of messages of a priority queue", _reprioritise, "queue")
    move.add_argument("priority", type=int, metavar="PRIORITY", help="the lowest number goes first")
    move.add_argument("ids", nargs="*", metavar="ID", help="MessageIds; without them each line of stdin is one")
    words = "show messages that wait for their delivery time, the next one first"
    wait = _add(commands, "scheduled", words, _scheduled, "queue")
    wait.add_argument("-n", "--limit", type=int, default=10, metavar="N", help="show at most so many (10)")
    later = _add(commands, "reschedule", "change the delivery time of messages that wait for it", _reschedule, "queue")
    later.add_argument("time", metavar="TIME", help=TIME_WORDS)
    later.add_argument("ids", nargs="*", metavar="ID", help="MessageIds; without them each line of stdin is one")
    cancel = _add(commands, "cancel", "delete messages that wait for their delivery time", _cancel, "queue")
    cancel.add_argument("ids", nargs="*", metavar="ID", help="MessageIds; without them each line of stdin is one")
    purge = _add(commands, "purge", "delete all messages and wait until they are gone", _purge, "queue")
    purge.add_argument("--yes", action="store_true", help="do not ask")
    purge.add_argument("--wait-s", type=float, default=60, metavar="S", help="wait at most so long (60)")
    delete = _add(commands, "delete", "delete a queue and all its messages", _delete, "queue")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    redrive = _add(commands, "redrive", "move a dead-letter queue's messages back, and wait for it", _redrive, "queue")
    redrive.add_argument("--to", metavar="QUEUE", help="move all to this queue, not each to the queue it came from")
    redrive.add_argument("--rate", type=int, metavar="N", help="move at most N messages a second")
    redrive.add_argument("--no-wait", action="store_true", help="only start the move")
    redrive.add_argument("--cancel", action="store_true", help="end a move that runs")
    export = _add(commands, "export", "write messages with all their members as JSON lines", _export, "queue")
    export.add_argument("file", nargs="?", default="-", metavar="FILE", help="a new file; - is stdout (-)")
    export.add_argument("--drain", action="store_true", help="receive and delete the messages, at any SQS endpoint")
    load = _add(commands, "import", "send the messages of an export", _import, "queue")
    load.add_argument("file", nargs="?", default="-", metavar="FILE", help="- is stdin (-)")
    load.add_argument("--skip", type=int, default=0, metavar="N", help="skip so many lines")


def _add(commands: Any, name: str, words: str, run: Any, *arguments: str) -> argparse.ArgumentParser:
    parser = add_command(commands, name, words, URL_VARIABLE)
    for argument in arguments:
        parser.add_argument(argument, metavar=argument.upper(), help="its name or URL")
    parser.set_defaults(run=lambda options: run_with("Sqs", run, options), action=name)
    return parser


def add_command(commands: Any, name: str, words: str, variable: str) -> argparse.ArgumentParser:
    """Add a command that calls an endpoint. variable: the environment variable with the endpoint."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=words)
    with_endpoint(parser, variable)
    return parser


def with_endpoint(parser: argparse.ArgumentParser, variable: str = URL_VARIABLE) -> None:
    """Add the options of a command that calls an endpoint. variable: the environment variable with the endpoint.

    If it is not set, SQS's variable is used, because elasticq serves all APIs at one endpoint.
    """
    url = os.environ.get(variable) or os.environ.get(URL_VARIABLE, DEFAULT_URL)
    parser.add_argument("--url", default=url, help=f"the endpoint (${variable}, else {DEFAULT_URL})")
    parser.add_argument("--region", default="", help="the endpoint's region (default: as for the AWS CLI)")
    parser.add_argument("--profile", default="", help="profile of AWS credentials (default: as for the AWS CLI)")
    parser.add_argument("--json", action="store_true", help="print JSON objects, one a line")


def run_with(kind: str, run: Any, options: argparse.Namespace) -> int:
    """Run a command with a client, Sqs or Sns. Print its error if it fails. Return the exit status."""
    from elasticq import client as clients
    from elasticq.client import ClientError, SqsError, Unreachable

    try:
        client = getattr(clients, kind)(options.url, options.region, profile=options.profile, retry_s=RETRY_S)
    except (ValueError, LookupError) as error:
        return refuse(str(error.args[0]))
    try:
        with client:
            return int(run(client, options))
    except Misuse as error:
        return refuse(str(error))
    except SqsError as error:
        return fail(f"{error.code}: {error.message}")
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (the reader closed the pipe)
        return 0
    except Unreachable as error:
        hint = f" (--url or {URL_VARIABLE} names another server)" if options.url == DEFAULT_URL else ""
        return fail(f"{error}{hint}")
    except (ClientError, Failure, NotConfirmed, carry.Stopped, OSError, ValueError) as error:
        return fail(str(error))


# --- show ---------------------------------------------------------------------------


def _urls(client: "Sqs", prefix: str) -> Iterator[str]:
    page: dict[str, Any] = {"MaxResults": 1_000}
    if prefix:
        page["QueueNamePrefix"] = prefix
    return pages(client.list_queues, "QueueUrls", **page)


def pages(call: Callable[..., dict[str, Any]], members: str, **page: Any) -> Iterator[Any]:
    """Yield the items of all pages of a list call."""
    while True:
        answer = call(**page)
        yield from answer.get(members, ())
        if not answer.get("NextToken"):
            return
        page["NextToken"] = answer["NextToken"]


def _ls(client: "Sqs", options: argparse.Namespace) -> int:
    urls = list(_urls(client, options.prefix))
    found: list[dict[str, Any]] = []
    with bar("queues", len(urls)) as show, Interrupt() as interrupt:
        for url in urls:
            if interrupt.asked:
                return EXIT_INTERRUPTED
            attributes = attributes_of(client, url)
            place = {"name": url.rpartition("/")[2], "region": region_of(attributes)}
            found.append({**place, **counts_of(attributes), "url": url})
            show(len(found))
    if options.json:
        json_lines(found)
    else:
        rows = [[str(value) for name, value in queue.items() if name != "url"] for queue in found]
        table(["NAME", "REGION", "VISIBLE", "IN FLIGHT", "DELAYED"], rows)
    if not found and not options.prefix:
        report("this account has no queues in this region; --region lists those of another one")
    return 0


def _show(client: "Sqs", options: argparse.Namespace) -> int:
    queue_sheet.show(client, url_of(client, options.queue), as_json=options.json)
    return 0


def _peek(client: "Sqs", options: argparse.Namespace) -> int:
    chosen: dict[str, Any] = {"QueueUrl": url_of(client, options.queue), "FromSequence": options.first}
    if options.state:
        chosen["States"] = options.state
    if options.group is not None:
        chosen["MessageGroupId"] = options.group
    messages: list[dict[str, Any]] = []
    carry.must_be_elasticq(options.url, "peek")
    while len(messages) < options.limit:
        page = client.peek(**chosen, Limit=min(options.limit - len(messages), carry.PAGE))
        messages += page["Messages"]
        if page["NextSequence"] is None:
            break
        chosen["FromSequence"] = page["NextSequence"]
    if options.json:
        json_lines([carry.line_of(message) for message in messages])
        return 0
    rows = [
        [
            str(message["Sequence"]),
            message["State"],
            _clock(message["SentTimestamp"]),
            str(message["ReceiveCount"]),
            message.get("GroupId", ""),
            str(message.get("Partition", "")),
            str(message.get("Priority", "")),
            _short(message["Body"]),
        ]
        for message in messages
    ]
    table(["SEQUENCE", "STATE", "SENT", "RECV", "GROUP", "PART", "PRIO", "BODY"], rows, ("STATE", "SENT"))
    return 0


def _short(body: str) -> str:
    return body if len(body) <= BODY_SHOWN else body[: BODY_SHOWN - 1] + "…"


def _clock(time_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_ms / 1_000))


# --- change -------------------------------------------------------------------------


def _create(client: "Sqs", options: argparse.Namespace) -> int:
    attributes = dict(pair(text) for text in options.attribute)
    if options.queue.endswith(".fifo"):
        attributes.setdefault("FifoQueue", "true")
    if options.dead_letters:
        arn = attributes_of(client, url_of(client, options.dead_letters))["QueueArn"]
        policy = {"deadLetterTargetArn": arn, "maxReceiveCount": options.max_receives}
        attributes["RedrivePolicy"] = json.dumps(policy)
    url = client.create_queue(QueueName=options.queue, Attributes=attributes)["QueueUrl"]
    if options.json:
        json_lines([{"name": options.queue, "url": url}])
    else:
        print(url)
    return 0


def _send(client: "Sqs", options: argparse.Namespace) -> int:
    shared: dict[str, Any] = {}
    if options.group is not None:
        shared["MessageGroupId"] = options.group
    if options.delay_s is not None:
        shared["DelaySeconds"] = options.delay_s
    attributes = message_attributes(options.attribute)
    if options.priority is not None:
        attributes["ElasticqPriority"] = {"DataType": "Number", "StringValue": str(options.priority)}
    if options.deliver_at is not None:
        deliver_at = str(_time_ms(options.deliver_at))
        attributes["ElasticqDeliverAt"] = {"DataType": "Number", "StringValue": deliver_at}
    if attributes:
        shared["MessageAttributes"] = attributes
    url = url_of(client, options.queue)
    if options.body is None:
        lines = ({"MessageBody": line.rstrip("\n"), **shared} for line in sys.stdin)
        return carry.send_all(client, url, lines, "sent", as_json=options.json)
    if options.deduplication_id is not None:
        shared["MessageDeduplicationId"] = options.deduplication_id
    sent = client.send_message(QueueUrl=url, MessageBody=options.body, **shared)
    if options.json:
        json_lines([{name: sent[name] for name in ("MessageId", "SequenceNumber") if name in sent}])
    else:
        print(sent["MessageId"])
    return 0


def _reprioritise(client: "Sqs", options: argparse.Namespace) -> int:
    change = partial(client.change_priority, Priority=options.priority)
    changed_text = f"now with the priority {options.priority}"
    return _by_id(client, options, change, {"priority": options.priority}, changed_text, "not in the queue")


def _reschedule(client: "Sqs", options: argparse.Namespace) -> int:
    time_ms = _time_ms(options.time)
    change = partial(client.reschedule, DeliverAt=time_ms)
    changed_text = f"due at {_clock(time_ms)}"
    return _by_id(client, options, change, {"deliver_at_ms": time_ms}, changed_text, "not waiting in the queue")


def _cancel(client: "Sqs", options: argparse.Namespace) -> int:
    return _by_id(client, options, client.cancel_scheduled, {}, "deleted", "not waiting in the queue")


def _by_id(
    client: "Sqs",
    options: argparse.Namespace,
    change: Callable[..., dict[str, Any]],
    shown: dict[str, Any],
    changed_text: str,
    lacking: str,
) -> int:
    """Change messages by their ids, from the arguments or stdin. Raise Failure if some are not found."""
    url = url_of(client, options.queue)
    carry.must_be_elasticq(options.url, options.action)
    ids = options.ids or [line.strip() for line in sys.stdin if line.strip()]
    found: dict[str, list[str]] = {"Changed": [], "NotFound": []}
    for first in range(0, len(ids), carry.PAGE):
        answer = change(QueueUrl=url, MessageIds=ids[first : first + carry.PAGE])
        for name, known in found.items():
            known += answer[name]
    if options.json:
        json_lines([{**shown, "changed": found["Changed"], "not_found": found["NotFound"]}])
    else:
        print(f"{count(len(found['Changed']), 'message')} {changed_text}")
    if found["NotFound"]:
        raise Failure(f"{count(len(found['NotFound']), 'message')} {lacking}: {', '.join(found['NotFound'][:10])}")
    return 0


def _scheduled(client: "Sqs", options: argparse.Namespace) -> int:
    """Show the next messages of the schedule. Read the whole queue, but keep at most ``--limit`` messages."""
    carry.must_be_elasticq(options.url, "scheduled")
    chosen: dict[str, Any] = {"QueueUrl": url_of(client, options.queue), "States": ["delayed"], "FromSequence": 0}
    messages: list[dict[str, Any]] = []
    while chosen["FromSequence"] is not None:
        page = client.peek(**chosen, Limit=carry.PAGE)
        messages += [message for message in page["Messages"] if "DeliverAt" in message]
        messages = nsmallest(options.limit, messages, key=lambda message: (message["DeliverAt"], message["Sequence"]))
        chosen["FromSequence"] = page["NextSequence"]
    if options.json:
        json_lines([carry.line_of(message) for message in messages])
        return 0
    table(
        ["DELIVERED", "ID", "BODY"],
        [[_clock(each["DeliverAt"]), each["MessageId"], _short(each["Body"])] for each in messages],
        ("DELIVERED", "ID"),
    )
    return 0


def _time_ms(text: str) -> int:
    """Return a TIME argument in milliseconds since the epoch. Raise Misuse if it is malformed."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1_000)
    except ValueError:
        raise Misuse(f"{text!r} is not a time: {TIME_WORDS}") from None


def message_attributes(texts: list[str]) -> dict[str, dict[str, str]]:
    """Return NAME=VALUE arguments as attributes of a message. Raise Misuse if one is malformed."""
    return {name: {"DataType": "String", "StringValue": value} for name, value in map(pair, texts)}


def pair(text: str) -> tuple[str, str]:
    """Return name and value of a NAME=VALUE argument. Raise Misuse if it is malformed."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Misuse(f"{text!r} is not NAME=VALUE")
    return name, value


def _purge(client: "Sqs", options: argparse.Namespace) -> int:
    url = url_of(client, options.queue)
    total = sum(counts_of(attributes_of(client, url)).values())
    _confirm(options, url, f"Delete about {count(total, 'message')} of {url}?", "a purge", "nothing was purged")
    client.purge_queue(QueueUrl=url)
    deadline_s = time.monotonic() + options.wait_s
    with bar("purging", total) as show, Interrupt() as interrupt:
        while (left := sum(counts_of(attributes_of(client, url)).values())) and not interrupt.asked:
            show(max(0, total - left))
            if time.monotonic() >= deadline_s:
                raise Failure(f"the purge was accepted, but {count(left, 'message')} left, perhaps sent since then")
            time.sleep(LOOK_S)
    if interrupt.asked:
        report("the purge was accepted, and the server continues it")
        return EXIT_INTERRUPTED
    if options.json:
        json_lines([{"purged": total}])
    else:
        print(f"purged about {count(total, 'message')}")
    return 0


def _confirm(options: argparse.Namespace, url: str, question: str, what: str, refused: str) -> None:
    """Return if ``--yes`` is given or the operator types the queue's name, else raise NotConfirmed."""
    if not options.yes:
        confirm(what, f"{question} Type the queue's name:", url.rpartition("/")[2], refused)


def _delete(client: "Sqs", options: argparse.Namespace) -> int:
    url = url_of(client, options.queue)
    total = sum(counts_of(attributes_of(client, url)).values())
    question = f"Delete the queue {url} with about {count(total, 'message')}?"
    _confirm(options, url, question, "the deletion of a queue", "nothing was deleted")
    client.delete_queue(QueueUrl=url)
    name = url.rpartition("/")[2]
    if options.json:
        json_lines([{"deleted": name, "messages": total}])
    else:
        print(f"deleted {name} with about {count(total, 'message')}")
    return 0


def _set(client: "Sqs", options: argparse.Namespace) -> int:
    changes = dict(pair(text) for text in options.attributes)
    url = url_of(client, options.queue)
    client.set_queue_attributes(QueueUrl=url, Attributes=changes)
    attributes = attributes_of(client, url)
    now = {name: attributes.get(name, "") for name in changes}
    if options.json:
        json_lines([{"name": url.rpartition("/")[2], "attributes": now}])
    else:
        for name, value in now.items():
            print(f"{name}={one_line(value)}")
    return 0


def _redrive(client: "Sqs", options: argparse.Namespace) -> int:
    arn = attributes_of(client, url_of(client, options.queue))["QueueArn"]
    if options.cancel:
        task = _newest_task(client, arn)
        if task.get("Status") != "RUNNING":
            raise Failure(f"no move runs out of {options.queue}")
        moved = client.cancel_message_move_task(TaskHandle=task["TaskHandle"])
        print(f"cancelled after {count(moved['ApproximateNumberOfMessagesMoved'], 'message')}")
        return 0
    started: dict[str, Any] = {"SourceArn": arn}
    if options.to:
        started["DestinationArn"] = attributes_of(client, url_of(client, options.to))["QueueArn"]
    if options.rate:
        started["MaxNumberOfMessagesPerSecond"] = options.rate
    client.start_message_move_task(**started)
    return 0 if options.no_wait else _watch_task(client, arn, options)


def _watch_task(client: "Sqs", arn: str, options: argparse.Namespace) -> int:
    task = _newest_task(client, arn)
    with bar("moving", task.get("ApproximateNumberOfMessagesToMove")) as show, Interrupt() as interrupt:
        while task.get("Status") in ("RUNNING", "CANCELLING") and not interrupt.asked:
            show(task.get("ApproximateNumberOfMessagesMoved", 0))
            time.sleep(LOOK_S)
            task = _newest_task(client, arn)
    moved = task.get("ApproximateNumberOfMessagesMoved", 0)
    if interrupt.asked:
        report(f"{count(moved, 'message')} moved, and the server continues: elasticq queues redrive --cancel ends it")
        return EXIT_INTERRUPTED
    if task.get("Status") != "COMPLETED":
        raise Failure(
            f"{task.get('Status', 'unknown')} after {count(moved, 'message')}: {task.get('FailureReason', '')}"
        )
    if options.json:
        json_lines([{"moved": moved}])
    else:
        print(f"moved {count(moved, 'message')}")
    return 0


def _newest_task(client: "Sqs", arn: str) -> dict[str, Any]:
    tasks = client.list_message_move_tasks(SourceArn=arn, MaxResults=1).get("Results", [])
    return dict(tasks[0]) if tasks else {}


# --- export and import --------------------------------------------------------------


def _export(client: "Sqs", options: argparse.Namespace) -> int:
    url = url_of(client, options.queue)
    attributes = attributes_of(client, url)
    total = sum(counts_of(attributes).values())
    if not options.drain:
        carry.must_be_elasticq(options.url, "export without --drain")
    return carry.export(client, url, options.file, total, _place(url, attributes), drain=options.drain)


def _import(client: "Sqs", options: argparse.Namespace) -> int:
    url = url_of(client, options.queue)
    return carry.load(client, url, options.file, options.skip, _place(url, attributes_of(client, url)))


def _place(url: str, attributes: dict[str, str]) -> str:
    """Return the queue's name with its region, because several regions may have a queue of the name."""
    region = region_of(attributes)
    return url.rpartition("/")[2] + (f" ({region})" if region else "")
