"""Publishers on all members of a cluster while masters are killed, and what each queue of the topic got.

Each publisher is a thread with one request at a time. Where its member answers 5xx, breaks off or is silent it asks the
next one, with the same invocation id. At the end all queues are emptied: of each publish all of them have one copy,
or, if nobody was answered, none has.
"""

import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode
from uuid import uuid4

from msgspec import Struct, field

from tests.system.cluster.cluster import Cluster, Member, until
from tests.system.cluster.load import Brief
from tests.system.cluster.plain import Threads
from tests.system.durability.chaos import RETRIED
from tests.system.durability.connection import Broken

QUEUES = 5
PUBLISHERS = 8
PACE_S = 0.035  # between two publishes of a publisher; with eight about 200 a second
GIVE_UP_S = 30
PAUSE_S = 0.05
TOPIC_ARN = "arn:aws:sns:us-east-1:000000000000:events"


def form(action: str, guid: str = "", **members: str) -> bytes:
    """The bytes of one request of SNS."""
    body = urlencode({"Action": action, "Version": "2010-03-31", **members}).encode()
    mark = f"amz-sdk-invocation-id: {guid}\r\n" if guid else ""
    head = (
        "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        f"{mark}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Verdict(Struct):
    """partial: not in all queues alike; lost: answered, and in none; doubled: twice in a queue; unknown: unanswered."""

    published: int = 0
    unknown: int = 0
    partial: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)

    def line(self) -> str:
        return (
            f"{self.published} answered, {self.unknown} not, {len(self.partial)} partial, {len(self.lost)} lost, "
            f"{len(self.doubled)} doubled"
        )


class Publishing(Threads):
    """Publishes from ``__enter__`` on; ``judge`` stops that, empties the queues and says what came of it."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.cluster = cluster
        self.name = uuid4().hex[:8]
        self.answered: set[str] = set()
        self.unanswered: set[str] = set()
        self.failures: list[BaseException] = []
        self._threads = [threading.Thread(target=self._guarded, args=(number,)) for number in range(PUBLISHERS)]

    @staticmethod
    def prepare(cluster: Cluster) -> None:
        """Creates the topic and its queues."""
        member = cluster.running()[0]
        sns = member.boto3("sns")
        assert sns.create_topic(Name="events")["TopicArn"] == TOPIC_ARN
        for number in range(QUEUES):
            member.call("CreateQueue", QueueName=f"events{number}", Attributes={"VisibilityTimeout": "600"})
            endpoint = TOPIC_ARN.replace(":sns:", ":sqs:") + str(number)
            attributes = {"RawMessageDelivery": "true"}
            sns.subscribe(TopicArn=TOPIC_ARN, Protocol="sqs", Endpoint=endpoint, Attributes=attributes)

    def _guarded(self, number: int) -> None:
        try:
            self._publish(number)
        except BaseException as failure:
            self.failures.append(failure)
            raise

    def _publish(self, number: int) -> None:
        members = list(self.cluster.members.values())
        at, count, connection = number % len(members), 0, None
        while not self.over.wait(PACE_S):
            body = f"{self.name}-{number}-{count}"
            count += 1
            request = form("Publish", uuid4().hex, TopicArn=TOPIC_ARN, Message=body)
            give_up_s = time.monotonic() + GIVE_UP_S
            while True:
                try:
                    if connection is None:
                        connection = Brief(members[at].port)
                    answer = connection.exchange(request)
                    if answer.status == 200:
                        self.answered.add(body)
                        break
                    assert answer.status in RETRIED, answer
                except Broken:
                    pass
                if connection is not None:
                    connection.close()
                connection, at = None, (at + 1) % len(members)
                if time.monotonic() > give_up_s:
                    self.unanswered.add(body)
                    break
                self.over.wait(PAUSE_S)

    def wait_for(self, more: int) -> None:
        """Until so many more publishes were answered."""
        goal = len(self.answered) + more

        def enough() -> bool:
            if self.failures:
                raise self.failures[0]
            return len(self.answered) >= goal

        until(enough, f"{more} publishes; {self.cluster.tell()}", 60)

    def judge(self) -> Verdict:
        self.stop()
        assert not self.failures, self.failures
        member = self.cluster.running()[0]
        with ThreadPoolExecutor(QUEUES) as pool:
            held = list(pool.map(lambda number: emptied(member, f"events{number}"), range(QUEUES)))
        found = Verdict(len(self.answered), len(self.unanswered))
        for body in sorted(self.answered | self.unanswered):
            counts = [bodies[body] for bodies in held]
            if max(counts) > 1:
                found.doubled.append(f"{body}: {counts}")
            elif len(set(counts)) > 1:
                found.partial.append(f"{body}: {counts}")
            elif body in self.answered and not counts[0]:
                found.lost.append(body)
        strange = {body for bodies in held for body in bodies} - self.answered - self.unanswered
        assert not strange, "nobody published them"
        return found


def kill_master(cluster: Cluster) -> tuple[str, Verdict]:
    """Which one was killed by -9 while messages were published, and what came of these."""
    with Publishing(cluster) as publishing:
        return kill_master_under(publishing)


def kill_master_under(publishing: Publishing) -> tuple[str, Verdict]:
    publishing.wait_for(100)
    master = publishing.cluster.master()
    publishing.cluster.kill9(master)
    publishing.wait_for(200)
    return master, publishing.judge()


def emptied(member: Member, queue: str) -> Counter[str]:
    """How often each body was in the queue, which is empty afterwards."""
    found: Counter[str] = Counter()
    connection = member.connect()
    url = f"http://127.0.0.1/000000000000/{queue}"
    try:
        while True:
            answer = connection.call("ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 10}, uuid4().hex)
            assert answer.status == 200, answer
            messages = json.loads(answer.body).get("Messages", [])
            if not messages:
                return found
            found.update(message["Body"] for message in messages)
            entries = [{"Id": str(at), "ReceiptHandle": each["ReceiptHandle"]} for at, each in enumerate(messages)]
            answer = connection.call("DeleteMessageBatch", {"QueueUrl": url, "Entries": entries}, uuid4().hex)
            assert answer.status == 200, answer
    finally:
        connection.close()
