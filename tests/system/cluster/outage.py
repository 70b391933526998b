"""Programs through an outage of a whole cluster: patient ones see nothing of it, plain ones are told what is true.

Patient producers and a consumer use ``elasticq.client.wrap`` on a FIFO queue, a message group for each producer. Plain
ones begin a send every ``EACH_S``, each in a thread of its own, as it may be held for long. The outage has two acts.
First the two other members die, and the member in front of the programs, which is not the master, holds calls and
answers them 503. Then it dies, too. What was refused in either act stood in no log: it must never appear.
"""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, NamedTuple

from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError

from elasticq.client import wrap
from tests.system.cluster.cluster import PATIENCE_S, Cluster, let_pass, until
from tests.system.cluster.plain import Threads

FRONT = "n1"
PATIENT = 2
EACH_S = 0.1
PLAIN_AT_ONCE = 1_000
MAX_WAIT_S = 600
WALL_APART_MS = 100  # between the machine's clock and the cluster's time


class Sent(NamedTuple):
    """A plain send, in monotonic seconds; ``ended_ms`` is since the epoch; ``error`` is empty after a success."""

    body: str
    began_s: float
    ended_s: float
    ended_ms: float
    error: str


class Findings(NamedTuple):
    """``exceptions`` of patient programs, ``unclear`` errors of plain ones; all others name bodies."""

    exceptions: list[str]
    unclear: list[str]
    ghosts: list[str]
    lost: list[str]
    out_of_order: list[str]

    @property
    def are_none(self) -> bool:
        return not any(self)


class Programs(Threads):
    """``refused`` counts the errors of plain sends."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.cluster = cluster
        self.exceptions: list[str] = []
        self.unclear: list[str] = []
        self.refused: Counter[str] = Counter()
        self.patient_sent: list[str] = []
        self.patient_got: list[str] = []
        self.plain: list[Sent] = []
        front = cluster[FRONT]
        self.plain_url = str(front.call("CreateQueue", QueueName="plain")["QueueUrl"])
        ordered = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
        self.fifo_url = str(front.call("CreateQueue", QueueName="patient.fifo", Attributes=ordered)["QueueUrl"])
        self._pool = ThreadPoolExecutor(PLAIN_AT_ONCE)
        self._threads = [threading.Thread(target=self._produce, args=(at,)) for at in range(PATIENT)]
        self._threads += [threading.Thread(target=work) for work in (self._consume, self._send_plainly)]

    def stop(self) -> None:
        super().stop()
        self._pool.shutdown()

    # --- what users write ---

    def _wrapped(self) -> Any:
        return wrap(self.cluster[FRONT].boto3(), endpoints=self.cluster.endpoints(), max_wait_s=MAX_WAIT_S)

    def _produce(self, number: int) -> None:
        sqs, count = self._wrapped(), 0
        while not self.over.wait(EACH_S):
            count += 1
            body = f"{number}-{count}"
            try:
                sqs.send_message(QueueUrl=self.fifo_url, MessageBody=body, MessageGroupId=str(number))
            except Exception as error:  # what a program would die of
                self.exceptions.append(f"send of {body}: {error!r}")
            else:
                self.patient_sent.append(body)

    def _consume(self) -> None:
        sqs = self._wrapped()
        while not self.over.is_set():
            try:
                self._work_off(sqs)
            except Exception as error:  # what a program would die of
                self.exceptions.append(f"consumer: {error!r}")

    def _work_off(self, sqs: Any) -> int:
        answer = sqs.receive_message(QueueUrl=self.fifo_url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        messages = answer.get("Messages", [])
        for message in messages:
            self.patient_got.append(message["Body"])
            sqs.delete_message(QueueUrl=self.fifo_url, ReceiptHandle=message["ReceiptHandle"])
        return len(messages)

    def _send_plainly(self) -> None:
        sqs, count = self.cluster[FRONT].boto3(), 0
        while not self.over.wait(EACH_S):
            count += 1
            self._pool.submit(self._send_once, sqs, f"plain-{count}")

    def _send_once(self, sqs: Any, body: str) -> None:
        began_s, error = time.monotonic(), ""
        try:
            sqs.send_message(QueueUrl=self.plain_url, MessageBody=body)
        except ClientError as failure:
            told = failure.response["Error"]
            error = f"{told['Code']}: {told['Message']}"
            if told["Code"] != "ServiceUnavailable":
                self.unclear.append(error)
        except (EndpointConnectionError, ConnectionClosedError) as failure:
            error = type(failure).__name__
        except Exception as failure:  # what is no clear error
            error = repr(failure)
            self.unclear.append(error)
        if error:
            self.refused[error] += 1
        self.plain.append(Sent(body, began_s, time.monotonic(), time.time() * 1_000, error))

    # --- what is seen ---

    def refused_between(self, began_s: float, ended_s: float) -> list[Sent]:
        return [sent for sent in list(self.plain) if sent.error and sent.began_s >= began_s and sent.ended_s <= ended_s]

    def wait_for_more(self, count: int) -> None:
        """So many more sends of either kind have succeeded."""
        patient, plain = len(self.patient_sent), self._plain_sent()
        until(
            lambda: len(self.patient_sent) >= patient + count and self._plain_sent() >= plain + count,
            f"{count} more sends; {self.refused} {self.exceptions}",
        )

    def _plain_sent(self) -> int:
        return sum(not sent.error for sent in list(self.plain))

    def judge(self, dark_s: tuple[float, float]) -> Findings:
        """Stop, and receive all that is left. ``dark_s``: from when until when no log could be written."""
        self.stop()
        sqs = self._wrapped()
        until(lambda: not self._work_off(sqs), "the FIFO queue is empty")
        got_ms = self._receive_plain()
        lost = [sent.body for sent in self.plain if not sent.error and sent.body not in got_ms]
        lost += sorted(set(self.patient_sent) - set(self.patient_got))
        found = ghosts_among(self.plain, got_ms, dark_s)
        return Findings(self.exceptions, self.unclear, found, lost, out_of_order(self.patient_got))

    def _receive_plain(self) -> dict[str, float]:
        """When each message that is there was taken into the queue, by its body."""
        got: dict[str, float] = {}
        with closing(self.cluster[FRONT].boto3()) as sqs:
            while messages := sqs.receive_message(
                QueueUrl=self.plain_url,
                MaxNumberOfMessages=10,
                VisibilityTimeout=10 * PATIENCE_S,
                MessageSystemAttributeNames=["SentTimestamp"],
            ).get("Messages"):
                got |= {each["Body"]: float(each["Attributes"]["SentTimestamp"]) for each in messages}
        return got


def ghosts_among(plain: list[Sent], got_ms: dict[str, float], dark_s: tuple[float, float]) -> list[str]:
    """What came although it was refused: in the dark, or before it was taken into the queue."""
    from_s, until_s = dark_s
    return [
        sent.body
        for sent in plain
        if sent.error
        and sent.body in got_ms
        and ((sent.began_s >= from_s and sent.ended_s <= until_s) or got_ms[sent.body] > sent.ended_ms + WALL_APART_MS)
    ]


def out_of_order(bodies: list[str]) -> list[str]:
    """Of bodies "group-number" those that came after a higher number of their group, or twice."""
    newest: Counter[str] = Counter()
    found = []
    for body in bodies:
        group, _, number = body.partition("-")
        if int(number) <= newest[group]:
            found.append(body)
        newest[group] = max(newest[group], int(number))
    return found


def switch_off(cluster: Cluster, programs: Programs, off_s: float) -> tuple[float, float]:
    """Both acts, the second ``off_s`` long, and all is well again; from when until when no log could be written."""
    if cluster.master() == FRONT:
        cluster.operate("transfer")
    cluster.master(other_than=FRONT)
    programs.wait_for_more(20)
    others = [name for name in cluster.names() if name != FRONT]
    for name in others:
        cluster.kill9(name)
    from_s = time.monotonic()
    until(lambda: programs.refused_between(from_s, time.monotonic()), "a send is refused", 3 * PATIENCE_S)
    cluster.kill9(FRONT)
    let_pass(off_s)
    until_s = time.monotonic()
    for name in (FRONT, *others):
        cluster.restart(name)
    cluster.wait_ready()
    programs.wait_for_more(20)
    return from_s, until_s
