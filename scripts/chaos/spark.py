"""Kills of processes of real Spark jobs that read a queue, and what was lost or doubled; status 1 for any finding.

Each round starts a fresh job. The job reads from a durable server, or from a cluster of three, while messages are sent
and a menu of kills happens in random order. Then the queue is drained, and the sink is compared with what was sent.
There are four jobs:

- local: the file sink on local[2]
- executors: the same on two executor JVMs (local-cluster)
- cluster: as local, reading from a cluster of elasticq whose master is killed too
- actions: foreachBatch with two actions on each batch

A kill is inside a read if a killed process was in ``read()`` of the source: it had begun its part of a batch and had
not handed all of it to Spark. That is certain, because the program stops the processes (SIGSTOP) before it checks.
Reads are slowed down by 100 ms after each receive of 10 messages, so that kills hit them. Kills of the source process
or of a master while some worker reads are counted separately, as kills next to a read.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

from elasticq.client import Sqs
from tests.spark.kills import Job, Reads, Sender, Verdict, judge, until
from tests.system.cluster.cluster import Cluster, let_pass
from tests.system.durability.server import Server

BETWEEN_S = (0.05, 0.8)
WITHOUT_MASTER_S = (0.2, 3.0)
INSIDE_MIN = 0.25
EXECUTORS = "local-cluster[2,1,1024]"
READS: dict[str, Any] = {"pace_s": 0.1, "options": {"maxMessagesPerTrigger": 400}}  # a second each: 10 pages of 10
SHAPES: dict[str, dict[str, Any]] = {
    "local": READS,
    "executors": READS | {"master": EXECUTORS},
    "cluster": READS,
    "actions": READS | {"sink": "actions"},
}
# Kills after which a job must start again take the longest, so there are fewer of them.
MENUS: dict[str, dict[str, int]] = {
    "local": {"reader": 60, "worker": 6, "source": 10, "driver": 2, "committing": 2},
    "executors": {"reader": 28, "worker": 3, "executor": 6, "source": 2, "driver": 1},
    "cluster": {"reader": 28, "worker": 2, "master": 6, "source": 2, "driver": 1, "committing": 1},
    "actions": {"reader": 33, "worker": 2, "source": 3, "driver": 1, "committing": 1},
}


@dataclass
class Round:
    shape: str
    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    inside: Counter[str] = field(default_factory=Counter)
    during: Counter[str] = field(default_factory=Counter)
    reads: Reads = field(default_factory=Reads)
    verdict: Verdict | None = None
    failure: str = ""
    seconds: float = 0.0

    def is_clean(self) -> bool:
        return not self.failure and self.verdict is not None and self.verdict.is_clean()


class Killer:
    """The kills of one job, by name."""

    def __init__(self, done: Round, job: Job, cluster: Cluster | None, random: Random) -> None:
        self.done, self.job, self.cluster, self.random = done, job, cluster, random
        self.kinds: dict[str, Callable[[], bool]] = {
            "reader": lambda: job.kill_reader(random),
            "worker": lambda: job.kill_worker(random),
            "source": lambda: job.kill_source(random),
            "executor": lambda: job.kill_executor(random),
            "driver": job.kill_driver,
            "committing": job.kill_between_sink_and_log,
            "master": self.kill_master,
        }

    def run(self, menu: dict[str, int], end_s: float) -> None:
        kinds = [kind for kind, times in menu.items() for _ in range(times)]
        self.random.shuffle(kinds)
        for kind in kinds:
            if time.monotonic() > end_s:
                return
            let_pass(self.random.uniform(*BETWEEN_S))
            if kind in ("driver", "executor", "source", "master"):
                until(self.job.reading, lambda: f"a worker reads: {self.job.said()}")
            is_during = bool(self.job.reading())
            is_inside = self.kinds[kind]()
            self.done.kills[kind] += 1
            self.done.inside[kind] += is_inside
            self.done.during[kind] += is_during and not is_inside and kind in ("source", "master")

    def kill_master(self) -> bool:
        assert self.cluster is not None
        name = self.cluster.master()
        self.cluster.kill9(name)
        let_pass(self.random.uniform(*WITHOUT_MASTER_S))
        self.cluster.restart(name)
        self.cluster.wait_ready()
        return False


@contextmanager
def single(directory: Path) -> Iterator[tuple[str, str, None]]:
    """Run a durable server; yield its endpoint, the queue's URL, and None for the cluster."""
    server = Server(directory / "data", directory / "stderr", environment={"ELASTICQ_ADMIN__PORT": "0"})
    server.start()
    try:
        endpoint = f"http://127.0.0.1:{server.port}"
        with Sqs(endpoint, "us-east-1") as sqs:
            url = sqs.create_queue(QueueName="killed")["QueueUrl"]
        yield endpoint, url, None
    finally:
        server.kill()


@contextmanager
def three(directory: Path) -> Iterator[tuple[str, str, Cluster]]:
    cluster = Cluster(directory / "cluster")
    try:
        cluster.start()
        url = cluster["n1"].call("CreateQueue", QueueName="killed")["QueueUrl"]
        yield f"http://127.0.0.1:{cluster['n1'].port}", url, cluster
        cluster.same_rows()
    finally:
        cluster.end()


def one_round(shape: str, seed: int, end_s: float) -> Round:
    done = Round(shape, seed)
    random = Random(seed)
    directory = Path(tempfile.mkdtemp(prefix="elasticq-chaos-spark-"))
    began_s = time.monotonic()
    try:
        with (
            (three if shape == "cluster" else single)(directory) as (endpoint, url, cluster),
            Job(directory / "job", url, **SHAPES[shape]) as job,
        ):
            with Sender(endpoint, url) as sender:
                until(job.reading, lambda: f"a worker reads: {job.said()}")
                Killer(done, job, cluster, random).run(MENUS[shape], end_s)
            done.verdict = judge(job, endpoint, sender.sent)
            done.reads = job.reads()
    except (AssertionError, OSError, TimeoutError) as failure:
        done.failure = str(failure) or repr(failure)
    done.seconds = time.monotonic() - began_s
    tell(done, directory)
    return done


def tell(done: Round, directory: Path) -> None:
    kinds = ", ".join(f"{kind} {times}" for kind, times in sorted(done.kills.items()))
    print(
        f"{done.shape}, seed {done.seed}: {done.kills.total()} kills in {done.seconds:.0f} s ({kinds}),"
        f" {done.inside.total()} inside a read; {done.reads.begun} reads, {done.reads.again} of them again;"
        f" {done.verdict.line() if done.verdict else 'no verdict'}",
        flush=True,
    )
    if done.is_clean():
        shutil.rmtree(directory, ignore_errors=True)
        return
    if done.failure:
        print(f"  failed: {done.failure}")
    if done.verdict is not None:
        print(f"  lost {done.verdict.lost[:20]}, duplicated {dict(list(done.verdict.doubled.items())[:20])}")
    print(f"  all files of the round are in {directory}", flush=True)


def judge_all(rounds: list[Round], seconds: float) -> int:
    kills: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    during: Counter[str] = Counter()
    for done in rounds:
        kills += done.kills
        inside += done.inside
        during += done.during
    for kind, times in kills.most_common():
        print(f"{kind}: {times} kills, {inside[kind]} inside a read, {during[kind]} next to one")
    verdicts = [done.verdict for done in rounds if done.verdict is not None]
    print(
        f"all: {len(rounds)} rounds, {kills.total()} kills, {inside.total()} inside a read,"
        f" {during.total()} more next to one, {sum(done.reads.again for done in rounds)} reads run again;"
        f" {sum(verdict.sent for verdict in verdicts)} messages sent,"
        f" {sum(len(verdict.lost) for verdict in verdicts)} lost,"
        f" {sum(len(verdict.doubled) for verdict in verdicts)} duplicated,"
        f" {sum(sum(verdict.left) for verdict in verdicts)} left in the queue;"
        f" {sum(bool(done.failure) for done in rounds)} rounds failed; {seconds:.0f} s"
    )
    is_enough = inside.total() >= INSIDE_MIN * kills.total()
    return int(not is_enough or not all(done.is_clean() for done in rounds))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=200, help="kills after which no round begins (200)")
    parser.add_argument(
        "--minutes",
        type=float,
        default=60,
        help="time after which nothing is killed, even if --kills is not reached (60)",
    )
    parser.add_argument("--seed", type=int, help="seed of the first round (random)")
    parser.add_argument("--only", choices=list(SHAPES), action="append", help="only this job; may be repeated")


def main(options: argparse.Namespace) -> int:
    seed = SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the exit runs every cleanup
    began_s = time.monotonic()
    end_s = began_s + options.minutes * 60
    shapes = options.only or list(SHAPES)
    rounds: list[Round] = []
    while sum(done.kills.total() for done in rounds) < options.kills and time.monotonic() < end_s:
        rounds.append(one_round(shapes[len(rounds) % len(shapes)], seed + len(rounds), end_s))
    return judge_all(rounds, time.monotonic() - began_s)
