"""What lies in the directories of older versions beside this file: how it was put there, and what must be found again.

``python tests/system/upgrade/contents.py CHECKOUT`` has the version of elasticq in that folder write a directory, kills
it, and packs the directory into format-N.tar.gz here, with what ``fill`` noted and the time in written.json. Do that
with the newest version before the format of the data directory changes.
"""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

HERE = Path(__file__).parent
LEFT_OUT = frozenset(("reserve", "lock"))
HIDDEN_S, DELAY_S, RETENTION_S = 43_200, 900, 1_209_600
ROWS_S = 4.0  # after which the rows have what was sent before, so that rows and log both hold something
MANY = 400


class Caller:
    """Calls the actions of SQS, and those of SNS by ``sns``, without signing them."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, action: str, invocation: str = "", **members: Any) -> dict[str, Any]:
        headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}"}
        return dict(json.loads(self._ask(action, invocation, json.dumps(members).encode(), headers) or b"{}"))

    def sns(self, action: str, invocation: str = "", **members: str) -> ElementTree.Element:
        """The document that it answers; members of lists and maps are named by their paths, a dot being two _."""
        named = {name.replace("__", "."): value for name, value in members.items()}
        body = urlencode({"Action": action, "Version": "2010-03-31", **named}).encode()
        return ElementTree.fromstring(self._ask(action, invocation, body, {}))

    def _ask(self, action: str, invocation: str, body: bytes, headers: dict[str, str]) -> bytes:
        if invocation:
            headers["amz-sdk-invocation-id"] = invocation
        request = urllib.request.Request(self.url, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{action}: {error.read().decode()}") from error

    def queue(self, name: str) -> str:
        """Its URL, the same at whatever port: a call that is sent again is known by its body."""
        return f"http://queues/000000000000/{name}"


# --- what every version sends -------------------------------------------------------

ATTRIBUTES = {
    "text": {"DataType": "String", "StringValue": "ä"},
    "number": {"DataType": "Number", "StringValue": "17"},
    "bytes": {"DataType": "Binary", "BinaryValue": "AAEC"},
}
TRACE = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a994272793"}}
SETTINGS = {
    "VisibilityTimeout": "77",
    "MessageRetentionPeriod": str(RETENTION_S),
    "ReceiveMessageWaitTimeSeconds": "0",
    "MaximumMessageSize": "2048",
}
TAGS = {"team": "queues", "empty": ""}
ONCE = {"MessageBody": "charge 17", "MessageDeduplicationId": "invoice-17"}
AGAIN = {"MessageBody": "sent again", "MessageAttributes": ATTRIBUTES}
IN_ORDER = {"MessageBody": "c", "MessageGroupId": "three", "MessageDeduplicationId": "c-1"}
TOPIC = "arn:aws:sns:us-east-1:000000000000:news"
ORDERED = f"{TOPIC}.fifo"
FILTER = '{"kind": ["new"]}'
OF_KIND = {"MessageAttributes__entry__1__Name": "kind", "MessageAttributes__entry__1__Value__DataType": "String"}
NEWS = {"TopicArn": TOPIC, "Message": "news", "MessageAttributes__entry__1__Value__StringValue": "new", **OF_KIND}
OLD = NEWS | {"Message": "old", "MessageAttributes__entry__1__Value__StringValue": "old"}
IN_TURN = {"TopicArn": ORDERED, "Message": "a", "MessageGroupId": "g", "MessageDeduplicationId": "a-1"}
LEASE = {"ReceiveRequestAttemptId": "reader/7/0/0", "VisibilityTimeout": HIDDEN_S, "MaxNumberOfMessages": 10}


def fill(call: Caller) -> dict[str, Any]:
    """Create queues and messages of every kind; return the ids and handles that must be the same later."""
    facts: dict[str, Any] = {}
    keep = {"MessageRetentionPeriod": str(RETENTION_S)}
    call("CreateQueue", QueueName="dead", Attributes=keep)
    policy = {"deadLetterTargetArn": arn("dead"), "maxReceiveCount": 1}
    settings = SETTINGS | {"RedrivePolicy": json.dumps(policy)}
    call("CreateQueue", QueueName="orders", Attributes=settings, tags=TAGS)
    call("AddPermission", QueueUrl=call.queue("orders"), Label="all", AWSAccountIds=["111122223333"], Actions=["*"])
    call("CreateQueue", QueueName="many", Attributes=keep)
    call("CreateQueue", QueueName="once", Attributes=keep | {"ElasticqIdempotencyWindow": "3600"})
    call("CreateQueue", QueueName="leased", Attributes=keep)
    call("CreateQueue", QueueName="steps.fifo", Attributes=keep | {"FifoQueue": "true"})
    orders = call.queue("orders")
    # A dead letter: received once, given back, and met by the next receive.
    call("SendMessage", QueueUrl=orders, MessageBody="poison")
    (poison,) = call("ReceiveMessage", QueueUrl=orders)["Messages"]
    change = {"ReceiptHandle": poison["ReceiptHandle"], "VisibilityTimeout": 0}
    call("ChangeMessageVisibility", QueueUrl=orders, **change)
    assert call("ReceiveMessage", QueueUrl=orders).get("Messages", []) == []
    facts["poison"] = poison["MessageId"]
    for at in range(0, MANY, 10):
        entries = [{"Id": str(each), "MessageBody": f"message {at + each}"} for each in range(10)]
        call("SendMessageBatch", QueueUrl=call.queue("many"), Entries=entries)
    facts |= _hide_and_delete(call)
    for step in ("a", "b"):
        call("SendMessage", QueueUrl=call.queue("steps.fifo"), **IN_ORDER | {"MessageBody": step}
             | {"MessageGroupId": "two", "MessageDeduplicationId": f"{step}-1"})  # fmt: skip
    (first,) = call("ReceiveMessage", QueueUrl=call.queue("steps.fifo"), VisibilityTimeout=HIDDEN_S)["Messages"]
    facts["first"] = first["ReceiptHandle"]
    for body in ("leased 1", "leased 2"):
        call("SendMessage", QueueUrl=call.queue("leased"), MessageBody=body)
    facts["lease"] = [
        each["ReceiptHandle"] for each in call("ReceiveMessage", QueueUrl=call.queue("leased"), **LEASE)["Messages"]
    ]
    facts["once"] = call("SendMessage", QueueUrl=call.queue("once"), **ONCE)["MessageId"]
    facts["urgent"] = _send_by_priority(call)
    _take_turns(call)
    facts["topics"] = _make_topics(call)
    facts["first_consumer"] = _join(call)
    time.sleep(ROWS_S)  # older versions, which run this too, do not tell when their rows are written
    facts["again"] = call("SendMessage", "11111111-2222", QueueUrl=orders, **AGAIN)["MessageId"]
    facts["in_order"] = call("SendMessage", QueueUrl=call.queue("steps.fifo"), **IN_ORDER)["SequenceNumber"]
    call("SendMessage", QueueUrl=orders, MessageBody="traced", MessageSystemAttributes=TRACE)
    call("SendMessage", QueueUrl=orders, MessageBody="later", DelaySeconds=DELAY_S)
    change = {"MessageIds": [facts["urgent"]["last"]], "Priority": -7}
    call("ElasticqChangePriority", QueueUrl=call.queue("urgent"), **change)
    facts["topics"] |= _publish(call)
    facts["second_consumer"] = _join(call)
    return facts


def _take_turns(call: Caller) -> None:
    """A queue whose groups take turns, and in which the third one is next."""
    attributes = {"ElasticqFairness": "round_robin", "MessageRetentionPeriod": str(RETENTION_S)}
    call("CreateQueue", QueueName="turns", Attributes=attributes)
    url = call.queue("turns")
    for group in ("a", "b", "c"):
        for number in (1, 2):
            call("SendMessage", QueueUrl=url, MessageBody=f"{group} {number}", MessageGroupId=group)
    for group in ("a", "b"):
        (first,) = call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=HIDDEN_S)["Messages"]
        assert first["Body"] == f"{group} 1"


def _make_topics(call: Caller) -> dict[str, Any]:
    """Topics with a queue behind a filter, with a web server that nobody confirms, and with a FIFO queue."""
    keep = {"MessageRetentionPeriod": str(RETENTION_S)}
    call("CreateQueue", QueueName="copies", Attributes=keep)
    call("CreateQueue", QueueName="copies.fifo", Attributes=keep | {"FifoQueue": "true"})
    named = {"Attributes__entry__1__key": "DisplayName", "Attributes__entry__1__value": "News"}
    call.sns("CreateTopic", Name="news", Tags__member__1__Key="team", Tags__member__1__Value="topics", **named)
    fifo = {"Attributes__entry__1__key": "FifoTopic", "Attributes__entry__1__value": "true"}
    call.sns("CreateTopic", Name="news.fifo", **fifo)
    raw = {"Attributes__entry__1__key": "RawMessageDelivery", "Attributes__entry__1__value": "true"}
    filtered = {"Attributes__entry__2__key": "FilterPolicy", "Attributes__entry__2__value": FILTER}
    copies = call.sns("Subscribe", TopicArn=TOPIC, Protocol="sqs", Endpoint=arn("copies"), **raw, **filtered)
    call.sns("Subscribe", TopicArn=TOPIC, Protocol="http", Endpoint="http://127.0.0.1:9/")
    call.sns("Subscribe", TopicArn=ORDERED, Protocol="sqs", Endpoint=arn("copies.fifo"), **raw)
    return {"subscription": text(copies, "SubscriptionArn")}


def _publish(call: Caller) -> dict[str, Any]:
    call.sns("Publish", **OLD)
    return {
        "news": text(call.sns("Publish", "33333333-4444", **NEWS), "MessageId"),
        "in_turn": text(call.sns("Publish", **IN_TURN), "SequenceNumber"),
    }


def _join(call: Caller) -> dict[str, Any]:
    """The view of a new consumer of a group that shares two queues out; the second one waits for what the first has."""
    names = ["leased", "many"]
    call("ElasticqSetGroup", GroupName="workers", QueueNames=names, SessionTimeoutMs=3_600_000)
    return call("ElasticqJoinGroup", GroupName="workers")


def _send_by_priority(call: Caller) -> dict[str, str]:
    """Messages of a priority queue, two of which are changed: one before the rows hold it, one after it."""
    url = call.queue("urgent")
    attributes = {
        "ElasticqOrder": "priority",
        "ElasticqDefaultPriority": "5",
        "MessageRetentionPeriod": str(RETENTION_S),
    }
    call("CreateQueue", QueueName="urgent", Attributes=attributes)
    ids = {}
    for body, number in (("default", None), ("first", "-9"), ("changed", "9"), ("last", "99"), ("third", "0")):
        named = {"ElasticqPriority": {"DataType": "Number", "StringValue": number}} if number else {}
        ids[body] = call("SendMessage", QueueUrl=url, MessageBody=body, MessageAttributes=named)["MessageId"]
    call("ElasticqChangePriority", QueueUrl=url, MessageIds=[ids["changed"]], Priority=-8)
    return ids


def _hide_and_delete(call: Caller) -> dict[str, Any]:
    url = call.queue("many")
    hidden = {"QueueUrl": url, "MaxNumberOfMessages": 10, "VisibilityTimeout": HIDDEN_S}
    taken, gone = (call("ReceiveMessage", **hidden)["Messages"] for _ in range(2))
    handles = [{"Id": str(at), "ReceiptHandle": each["ReceiptHandle"]} for at, each in enumerate(gone)]
    call("DeleteMessageBatch", QueueUrl=url, Entries=handles)
    return {"taken": taken[0]["ReceiptHandle"], "gone": sorted(each["Body"] for each in gone)}


# --- what must be there -------------------------------------------------------------


def check(call: Caller, facts: dict[str, Any]) -> None:
    """Find all that ``fill`` has put there, at the time when it did."""
    names = [url.rpartition("/")[2] for url in call("ListQueues")["QueueUrls"]]
    newer = ["urgent"] if "urgent" in facts else []
    newer += ["copies", "copies.fifo", "turns"] if "topics" in facts else []
    assert names == sorted(["dead", "leased", "many", "once", "orders", "steps.fifo", *newer])
    if "urgent" in facts:
        _check_priorities(call, facts["urgent"])
    if "topics" in facts:
        _check_topics(call, facts["topics"])
        messages = [call("ReceiveMessage", QueueUrl=call.queue("turns"))["Messages"][0]["Body"] for _ in range(4)]
        assert messages == ["c 1", "a 2", "b 2", "c 2"]
    if "first_consumer" in facts:
        _check_consumers(call, facts["first_consumer"], facts["second_consumer"])
    _check_orders(call, facts)
    _check_many(call, facts)
    _check_fifo(call, facts)
    assert counts(call, "leased") == (0, 2, 0)
    leased = call("ReceiveMessage", QueueUrl=call.queue("leased"), **LEASE)["Messages"]
    assert [each["ReceiptHandle"] for each in leased] == facts["lease"]
    assert call("SendMessage", QueueUrl=call.queue("once"), **ONCE)["MessageId"] == facts["once"]
    assert counts(call, "once") == (1, 0, 0)
    (dead,) = call("ReceiveMessage", QueueUrl=call.queue("dead"), AttributeNames=["All"])["Messages"]
    assert (dead["MessageId"], dead["Attributes"]["DeadLetterQueueSourceArn"]) == (facts["poison"], arn("orders"))


def _check_orders(call: Caller, facts: dict[str, Any]) -> None:
    url = call.queue("orders")
    found = call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert {name: found[name] for name in SETTINGS} == SETTINGS
    policy = json.loads(found["RedrivePolicy"])
    assert (policy["deadLetterTargetArn"], int(policy["maxReceiveCount"])) == (arn("dead"), 1)
    assert "111122223333" in found["Policy"]
    assert call("ListQueueTags", QueueUrl=url)["Tags"] == TAGS
    assert counts(call, "orders") == (2, 0, 1)
    assert call("SendMessage", "11111111-2222", QueueUrl=url, **AGAIN)["MessageId"] == facts["again"]
    assert counts(call, "orders") == (2, 0, 1)
    wanted = {"AttributeNames": ["All"], "MessageAttributeNames": ["All"], "MaxNumberOfMessages": 10}
    messages = {each["Body"]: each for each in call("ReceiveMessage", QueueUrl=url, **wanted)["Messages"]}
    assert set(messages) == {"sent again", "traced"}
    assert messages["sent again"]["MessageAttributes"] == ATTRIBUTES
    assert messages["traced"]["Attributes"]["AWSTraceHeader"] == TRACE["AWSTraceHeader"]["StringValue"]


def _check_many(call: Caller, facts: dict[str, Any]) -> None:
    url = call.queue("many")
    assert counts(call, "many") == (MANY - 20, 10, 0)
    bodies: list[str] = []
    while more := call("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=HIDDEN_S).get(
        "Messages"
    ):
        bodies += [each["Body"] for each in more]
    assert len(bodies) == len(set(bodies)) == MANY - 20
    assert set(bodies) & set(facts["gone"]) == set()
    call("DeleteMessage", QueueUrl=url, ReceiptHandle=facts["taken"])
    assert counts(call, "many") == (0, MANY - 11, 0)


def _check_priorities(call: Caller, ids: dict[str, str]) -> None:
    messages = call("ReceiveMessage", QueueUrl=call.queue("urgent"), MaxNumberOfMessages=10)["Messages"]
    assert [each["Body"] for each in messages] == ["first", "changed", "last", "third", "default"]
    assert [each["MessageId"] for each in messages] == [ids[each["Body"]] for each in messages]


def _check_topics(call: Caller, facts: dict[str, Any]) -> None:
    shown = attributes(call.sns("GetTopicAttributes", TopicArn=TOPIC))
    counted = [shown[f"Subscriptions{each}"] for each in ("Confirmed", "Pending")]
    assert (shown["DisplayName"], counted) == ("News", ["1", "1"])
    assert text(call.sns("ListTagsForResource", ResourceArn=TOPIC), "Value") == "topics"
    shown = attributes(call.sns("GetSubscriptionAttributes", SubscriptionArn=facts["subscription"]))
    assert (shown["FilterPolicy"], shown["RawMessageDelivery"]) == (FILTER, "true")
    assert (counts(call, "copies"), counts(call, "copies.fifo")) == ((1, 0, 0), (1, 0, 0))
    assert text(call.sns("Publish", "33333333-4444", **NEWS), "MessageId") == facts["news"]
    assert text(call.sns("Publish", **IN_TURN), "SequenceNumber") == facts["in_turn"]
    assert (counts(call, "copies"), counts(call, "copies.fifo")) == ((1, 0, 0), (1, 0, 0)), "it was published already"
    call.sns("Publish", **OLD)
    call.sns("Publish", **NEWS)
    wanted = {"MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]}
    copies = call("ReceiveMessage", QueueUrl=call.queue("copies"), **wanted)
    assert [each["Body"] for each in copies["Messages"]] == ["news", "news"]
    assert all(each["MessageAttributes"]["kind"]["StringValue"] == "new" for each in copies["Messages"])


def _check_consumers(call: Caller, first: dict[str, Any], second: dict[str, Any]) -> None:
    """The second consumer gets what the first one was asked for, under a token that was never given before."""
    consumer = {"GroupName": "workers", "ConsumerId": first["ConsumerId"]}
    view = call("ElasticqHeartbeat", **consumer)
    assert sorted(each["Token"] for kind in ("Assigned", "Revoking") for each in view[kind]) == [
        each["Token"] for each in first["Assigned"]
    ]
    (revoked,) = view["Revoking"]
    call("ElasticqHeartbeat", **consumer, Released=[revoked["Token"]])
    (got,) = call("ElasticqHeartbeat", GroupName="workers", ConsumerId=second["ConsumerId"])["Assigned"]
    assert got["Resource"] == revoked["Resource"]
    assert got["Token"] > second["Version"] > revoked["Token"]


def _check_fifo(call: Caller, facts: dict[str, Any]) -> None:
    url = call.queue("steps.fifo")
    assert call("SendMessage", QueueUrl=url, **IN_ORDER)["SequenceNumber"] == facts["in_order"]
    assert counts(call, "steps.fifo") == (2, 1, 0)
    assert [each["Body"] for each in call("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)["Messages"]] == ["c"]
    call("DeleteMessage", QueueUrl=url, ReceiptHandle=facts["first"])
    assert [each["Body"] for each in call("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)["Messages"]] == ["b"]


def counts(call: Caller, queue: str) -> tuple[int, ...]:
    """(visible, in flight, delayed)."""
    found = call("GetQueueAttributes", QueueUrl=call.queue(queue), AttributeNames=["All"])["Attributes"]
    kinds = ("", "NotVisible", "Delayed")
    return tuple(int(found[f"ApproximateNumberOfMessages{kind}"]) for kind in kinds)


def text(document: ElementTree.Element, name: str) -> str:
    """That of the first element of this name."""
    found = document.findtext(f".//{{*}}{name}")
    assert found is not None, ElementTree.tostring(document)
    return found


def attributes(document: ElementTree.Element) -> dict[str, str]:
    return {text(entry, "key"): text(entry, "value") for entry in document.iterfind(".//{*}entry")}


def arn(queue: str) -> str:
    return f"arn:aws:sqs:us-east-1:000000000000:{queue}"


# --- make an archive ----------------------------------------------------------------


def main(checkout: str) -> int:
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        command = [
            sys.executable,
            "-m",
            "elasticq",
            "server",
            "--port",
            "0",
            "--admin-port",
            "0",
            "--data-dir",
            str(data),
        ]
        with subprocess.Popen(command, cwd=checkout, env={"PYTHONPATH": checkout}, stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout is not None
                listening = re.search(rb"listening on (\S+)", server.stdout.readline())
                assert listening is not None
                facts = fill(Caller(listening[1].decode()))
            finally:
                server.kill()
        number = json.loads((data / "format.json").read_text())["elasticq"]
        (data.parent / "written.json").write_text(json.dumps({"ms": time.time_ns() // 1_000_000, "facts": facts}))
        for name in LEFT_OUT:
            (data / name).unlink(missing_ok=True)
        for empty in ("snapshots", "discarded", "damaged"):
            shutil.rmtree(data / empty, ignore_errors=True)
        target = HERE / f"format-{number}.tar.gz"
        with tarfile.open(target, "w:gz") as archive:
            archive.add(data, "data")
            archive.add(data.parent / "written.json", "written.json")
        print(f"{target}: {target.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
