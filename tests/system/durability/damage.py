"""Flips a bit of a stopped server's directory, or cuts one of its files, and judges what becomes of the messages.

What may come of it: everything is there, or exactly what was told to be lost is not. A start that refuses must name
the file and what to do; then that is done. A process that ends, loses in silence or makes messages up is a finding.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct, field

from elasticq.storage.log.records import written_bytes
from tests.system.durability.connection import Broken, Connection
from tests.system.durability.server import PATIENCE_S, ROOT, Ended, Server, pause

QUEUES = ("a", "b", "c.fifo")
ENVIRONMENT = {"ELASTICQ_ADMIN__PORT": "0", "ELASTICQ_STORAGE__RESERVE_MB": "32"}
BODY_CHARS = (5, 400, 4_000)
WITHOUT_MESSAGES = ("reserve", "lock")
ZEROS_BYTES = 4_096
TRIES_MAX = 200
RANGE = re.compile(r"(\d+)(?:-(\d+))?")
OF_QUEUE = re.compile(r"messages of queue (\S+)(?: that had been received)?, sequences ([\d, -]+)")
FROM_PAGE = re.compile(r"of a page of queue (\S+), sequences (\d+) and after")
UNNAMED = re.compile(r"Lost: (\d+) messages of queue (\S+), which nothing names")
OF_LOG = re.compile(r"ntries (\d+) to (\d+)(?: of the log)? (?:are lost|, although)|Lost: entries (\d+) to (\d+)")
OF_QUEUES = re.compile(r"Lost: (?:\d+ queues, and all messages|every queue and message that is not in the log)")
PAGE_SPAN = 256

Messages = dict[str, dict[int, str]]
"""By queue: body by sequence."""


class Base(Struct):
    """A directory as kill -9 left it. messages: what is in it; newest: those that only the log has, oldest first."""

    path: Path
    messages: Messages
    newest: list[tuple[str, int]] = field(default_factory=list)


class Outcome(Struct):
    """finding: empty, or what must not be."""

    fault: str
    name: str
    lost: int = 0
    finding: str = ""


def build(directory: Path, seed: int, *, rounds: int = 30) -> Base:
    """Messages in the rows alone, as after a restore, and some in the log alone; in flight, deleted, in groups."""
    random = Random(seed)
    server = _server(directory / "old")
    server.start()
    for queue in QUEUES:
        server.call("CreateQueue", QueueName=queue, Attributes=_attributes(queue))
    for number in range(rounds):
        for queue in QUEUES:
            _send(server, queue, [f"{number}-{at}" for at in range(10)], random)
        if number % 3 == 0:
            _receive_some(server, random)
    server.stop()
    elasticq("backup", str(server.directory), str(directory / "backup"))
    elasticq("restore", str(directory / "backup"), str(directory / "data"))
    server = _server(directory / "data")
    server.start()
    before = look(server)
    for number in range(20):
        _send(server, "a", [f"late-{number}"], random)
    messages = look(server)
    server.kill()
    newest = [("a", sequence) for sequence in sorted(messages["a"]) if sequence not in before["a"]]
    return Base(server.directory, messages, newest)


def _attributes(queue: str) -> dict[str, str]:
    return {"VisibilityTimeout": "43200"} | ({"FifoQueue": "true"} if queue.endswith(".fifo") else {})


def _send(server: Server, queue: str, names: list[str], random: Random) -> None:
    fifo = {"MessageGroupId": f"g{names[0][-1]}"} if queue.endswith(".fifo") else {}
    entries = [
        {"Id": str(at), "MessageBody": f"{queue} {name} " + "x" * random.choice(BODY_CHARS)}
        | (fifo | {"MessageDeduplicationId": name} if fifo else {})
        for at, name in enumerate(names)
    ]
    server.call("SendMessageBatch", QueueUrl=_url(queue), Entries=entries)


def _receive_some(server: Server, random: Random) -> None:
    for queue in QUEUES:
        received = server.call("ReceiveMessage", QueueUrl=_url(queue), MaxNumberOfMessages=10).get("Messages", [])
        for message in received:
            if random.random() < 0.5:
                server.call("DeleteMessage", QueueUrl=_url(queue), ReceiptHandle=message["ReceiptHandle"])


def _url(queue: str) -> str:
    return f"http://127.0.0.1/000000000000/{queue}"


def _server(directory: Path) -> Server:
    return Server(directory, directory.with_name(f"{directory.name}.log"), environment=ENVIRONMENT)


def elasticq(*arguments: str) -> str:
    """What it printed, whatever its status."""
    command = [sys.executable, "-m", "elasticq", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    return done.stdout + done.stderr


def look(server: Server) -> Messages:
    """All messages of all queues; what cannot be read is met here, and passed over by the next try."""
    found: Messages = {}
    names = insist(server, "ListQueues", {}).get("QueueUrls", [])
    for queue in sorted(url.rsplit("/", 1)[1] for url in names):
        found[queue] = {}
        at: int | None = 0
        while at is not None:
            page = insist(server, "/_elasticq/peek", {"QueueUrl": _url(queue), "FromSequence": at, "Limit": 1_000})
            found[queue] |= {message["Sequence"]: message["Body"] for message in page["Messages"]}
            at = page.get("NextSequence")
    return found


def insist(server: Server, action: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Until it is answered with anything but 503. Raises Broken."""
    body = json.dumps(parameters).encode()
    path, target = (action, "") if action.startswith("/") else ("/", f"X-Amz-Target: AmazonSQS.{action}\r\n")
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{target}"
        f"Content-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    for _ in range(TRIES_MAX):
        connection = Connection(server.port)
        try:
            answer = connection.exchange(head.encode() + body)
        finally:
            connection.close()
        if answer.status == 200:
            return dict(json.loads(answer.body or b"{}"))
        if answer.status != 503:
            raise Broken(f"{action}: {answer}")
        pause(0.02)
    raise Broken(f"{action}: still {answer}")


# --- one trial ------------------------------------------------------------------------------


def try_one(base: Base, directory: Path, random: Random, *, cuts: bool) -> Outcome:
    """Damage a copy of ``base`` and see."""
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(base.path, directory / "data")
    fault = (_cut if cuts else _flip)(directory / "data", random)
    server = _server(directory / "data")
    try:
        return _judge(base, server, fault)
    except Broken as broken:
        died = "" if server.process is None or server.process.poll() is None else "the process ended: "
        return Outcome(fault, "broken", finding=f"{died}{broken}; {_tail(server)}")
    finally:
        server.kill()


def _files(directory: Path) -> list[Path]:
    found = [path for path in directory.rglob("*") if path.is_file() and path.stat().st_size]
    return sorted(path for path in found if path.name not in WITHOUT_MESSAGES)


def _pick(directory: Path, random: Random) -> tuple[Path, int]:
    """Half of them any file, half of them any byte. Of the zeros behind a log only some count, as nothing is there."""
    files = _files(directory)
    sizes = [min(path.stat().st_size, written_bytes(path.read_bytes()) + ZEROS_BYTES) for path in files]
    at = random.randrange(len(files)) if random.random() < 0.5 else random.choices(range(len(files)), sizes)[0]
    return files[at], random.randrange(sizes[at])


def _flip(directory: Path, random: Random) -> str:
    file, at = _pick(directory, random)
    bit = random.randrange(8)
    with file.open("r+b") as opened:
        opened.seek(at)
        [byte] = opened.read(1)
        opened.seek(at)
        opened.write(bytes([byte ^ 1 << bit]))
    return f"{file.relative_to(directory)}: bit {bit} of byte {at} flipped"


def _cut(directory: Path, random: Random) -> str:
    file, at = _pick(directory, random)
    size_bytes = file.stat().st_size
    os.truncate(file, at)
    return f"{file.relative_to(directory)}: cut to {at} of {size_bytes} bytes"


def _judge(base: Base, server: Server, fault: str) -> Outcome:
    name, told = "served", ""
    try:
        server.start()
    except Ended as ended:
        name, told = "repaired", ended.output
        file = (
            fault.partition(":")[0].rpartition("/")[2].removesuffix("-wal").removesuffix("-shm").removesuffix(".copy")
        )
        if ended.status != 1 or "Traceback" in told or not re.search(r"repair", told):
            return Outcome(fault, "refused", finding=f"ended with {ended.status}: {told[-600:]}")
        if file not in told and "log" not in told:
            return Outcome(fault, "refused", finding=f"it does not name the file: {told[-600:]}")
        told += elasticq("repair", str(server.directory))
        server.start()
    found = look(server)
    told += server.log.read_text()
    lost, finding = _compare(base, found, told)
    finding = finding or _goes_on(server, found)
    return Outcome(fault, name, lost, finding and f"{finding}; {told[-1_500:]}")


def _compare(base: Base, found: Messages, told: str) -> tuple[int, str]:
    """How many are lost, and what is wrong about that."""
    excused, lost = _told_lost(base, told), 0
    unnamed = {queue: int(number) for number, queue in UNNAMED.findall(told)}
    renamed = {queue: f"recovered-{number}" for number, queue in enumerate(QUEUES, 1)}
    for queue, messages in base.messages.items():
        there = found.get(queue)
        if there is None:
            recovered = [name for name in found if name.startswith(renamed[queue]) and name in told]
            if not recovered and not OF_QUEUES.search(told):
                return lost, f"queue {queue} is gone"
            if not recovered:
                lost += len(messages)
                continue
            there = found[recovered[0]]
        missing = messages.keys() - there.keys()
        lost += len(missing)
        silent = {sequence for sequence in missing if (queue, sequence) not in excused}
        if len(silent) > unnamed.get(queue, 0):
            return lost, f"{len(silent)} messages of {queue} are lost in silence: {sorted(silent)[:5]}"
        made_up = {at for at in there.keys() - messages.keys() if "Visible again" not in told}
        changed = {at for at in there.keys() & messages.keys() if there[at] != messages[at]}
        if made_up or changed:
            return lost, f"messages of {queue} are not what was sent: {sorted(made_up | changed)[:5]}"
    return lost, ""


def _told_lost(base: Base, told: str) -> set[tuple[str, int]]:
    excused: set[tuple[str, int]] = set()
    for queue, sequences in OF_QUEUE.findall(told):
        for first, last in RANGE.findall(sequences):
            excused.update((queue, sequence) for sequence in range(int(first), int(last or first) + 1))
    for queue, first in FROM_PAGE.findall(told):
        excused.update((queue, sequence) for sequence in range(int(first), int(first) + PAGE_SPAN))
    entries = sum(int(last) - int(first) + 1 for first, last in _log_losses(told))
    return excused | set(base.newest[max(0, len(base.newest) - entries) :])


def _log_losses(told: str) -> list[tuple[str, str]]:
    return list({(one or three, two or four) for one, two, three, four in OF_LOG.findall(told)})


def _goes_on(server: Server, found: Messages) -> str:
    """It takes, gives, deletes and starts again, with what was there and what is new."""
    insist(server, "CreateQueue", {"QueueName": "new"})
    insist(server, "SendMessage", {"QueueUrl": _url("new"), "MessageBody": "new"})
    for queue in found:
        parameters = {"QueueUrl": _url(queue), "MaxNumberOfMessages": 10}
        for message in insist(server, "ReceiveMessage", parameters).get("Messages", []):
            parameters = {"QueueUrl": _url(queue), "ReceiptHandle": message["ReceiptHandle"]}
            insist(server, "DeleteMessage", parameters)
            body = found[queue].pop(message.get("Sequence", -1), None)
            if body is None:
                at = next(sequence for sequence, known in found[queue].items() if known == message["Body"])
                del found[queue][at]
    began_s = time.monotonic()
    stopped = server.stop()
    if stopped != 0:
        return f"it ended with {stopped} after {time.monotonic() - began_s:.0f} s"
    server.start()
    after = look(server)
    if after.pop("new") == {} or after != found:
        differ = {queue: len(found[queue].items() ^ after.get(queue, {}).items()) for queue in found}
        return f"after a restart other messages are there: {differ}"
    return ""


def _tail(server: Server) -> str:
    return server.log.read_text()[-1_500:] if server.log.exists() else ""


def summary(outcomes: list[Outcome]) -> str:
    """A line for what came of each file, and one for each finding."""
    count = Counter(
        (outcome.fault.partition(":")[0], outcome.name, "some lost, told" if outcome.lost else "all there")
        for outcome in outcomes
        if not outcome.finding
    )
    lines = [f"{number:5} {file}: {name}, {what}" for (file, name, what), number in sorted(count.items())]
    return "\n".join([*lines, *(f"FINDING {each.fault}: {each.finding}" for each in outcomes if each.finding)])
