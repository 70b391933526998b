"""Extreme calls to all entry points of a cluster; status 1 if the cluster breaks a rule.

Three members and a proxy get calls of every action and route, with values at and beyond every bound. The calls use
JSON, Query, REST and the operators' port. Meanwhile a bystander sends, receives and deletes its own messages at each
member, and a control process measures the machine's own noise. After each phase the members' rows are compared, and all
members are killed and started again. At the end a learner joins, and a backup is restored into a separate server.

    python scripts/chaos siege --minutes 60 --seed 1
    python scripts/chaos siege --replay DIR/off-0/worker*.calls

The seed fixes the choices, but not the times and the order of answers. Each worker logs its last calls, and --replay
sends them again to a fresh cluster.
"""

import argparse
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random, SystemRandom

import measure
import msgspec

from elasticq import BUILD
from elasticq.model.names import DEFAULT_ACCOUNT
from tests.system.cluster.beside import Beside
from tests.system.cluster.cluster import PATIENCE_S, Cluster, Member, ask, until
from tests.system.siege import verdict as rules
from tests.system.siege.bystander import Config, Report
from tests.system.siege.client import Connection, Keys
from tests.system.siege.entries import ENTRIES, TESTING, parting, set_up
from tests.system.siege.hook import hooked
from tests.system.siege.request import FOLLOWER, MASTER, PROXY, Request
from tests.system.siege.verdict import SLOW_MS, Verdict, noise_of
from tests.system.siege.worker import Ring, Worker, generated, replayed
from tests.system.siege.world import World

ROOT = Path(__file__).resolve().parents[2]
ACCOUNTS = {"off": (DEFAULT_ACCOUNT,), "strict": ("111111111111", "222222222222")}
SECRET, TOKEN = "secret of this siege", "token-of-this-siege"
PHASE_S = 600
LOOK_S = 1.0
METRICS_EACH = 10
JOIN_S = 120
COMPARE_S = 20
LINES_SHOWN, SHOWN_CHARS = 4, 250
TESTING_CALLS = 300
MIB = 1_048_576


class Besieged(Cluster):
    """Members that dial each other without a relay between them."""

    def _route(self) -> None:
        for member in self.members.values():
            member.routes.write_text("{}")


class Watch(threading.Thread):
    """A thread that checks each second: which member is master, whether one has ended, and how large each one is."""

    def __init__(self, cluster: Cluster, proxy: Member, verdict: Verdict) -> None:
        super().__init__(daemon=True)
        self.over, self.ended = threading.Event(), threading.Event()
        self.sizes: dict[str, list[tuple[float, int]]] = {}
        self._cluster, self._verdict = cluster, verdict
        self._all = [*cluster.members.values(), proxy]
        self._roles: dict[str, list[Member]] = {MASTER: self._all[:1], FOLLOWER: self._all[1:-1], PROXY: [proxy]}
        self._turns = itertools.count()
        self._gone: set[str] = set()

    def find_port(self, role: str, is_operators: bool) -> int:
        members = self._roles[role]
        member: Member = members[next(self._turns) % len(members)]
        return member.admin_port if is_operators else member.port

    def run(self) -> None:
        for round_number in itertools.count():
            is_over = self.over.wait(LOOK_S)
            self._look_for_master()
            for member in self._all:
                self._look_at(member, asks_metrics=round_number % METRICS_EACH == 0)
            if is_over:
                return

    def _look_for_master(self) -> None:
        name = self._cluster.master_or_none()
        if name is not None:
            members = list(self._cluster.members.values())
            self._roles[MASTER] = [self._cluster[name]]
            self._roles[FOLLOWER] = [member for member in members if member.name != name]

    def _look_at(self, member: Member, *, asks_metrics: bool) -> None:
        assert member.process
        status = member.process.poll()
        if status is not None:
            if member.name not in self._gone:
                self._verdict.note(rules.ENDED, f"{member.name} ended with {status}: {_end_of(member)}")
            self._gone.add(member.name)
            self.ended.set()
            return
        pid = member.process.pid
        try:
            files = len(list((measure.PROC / str(pid) / "fd").iterdir()))
            self.sizes.setdefault(member.name, []).append((measure.rss_bytes(pid) / MIB, files))
            if asks_metrics:
                answer = ask(member.admin_port, "GET", "/metrics", headers=self._cluster.operators)
                if answer.status >= 500:
                    self._verdict.note(rules.FAILURES, f"/metrics of {member.name}: {answer.status}")
        except OSError:
            return  # The process has just ended, or is busy. The next round or the answers to calls will show it.


class Siege:
    """One cluster from its start to its end, with or without signatures."""

    def __init__(self, options: argparse.Namespace, mode: str, verdict: Verdict, directory: Path) -> None:
        self.options, self.mode, self.verdict = options, mode, verdict
        self.directory = directory / mode
        self.accounts = ACCOUNTS[mode]
        self.keys = Keys(dict.fromkeys(self.accounts, SECRET) if mode == "strict" else {}, "")
        self.extra: tuple[str, ...] = ()
        self.directory.mkdir(parents=True)
        if mode == "strict":
            keys_file = self.directory / "keys.toml"
            keys_file.write_text("".join(
                f'[[keys]]\naccess_key_id = "K{each}"\nsecret_access_key = "{SECRET}"\naccount = "{each}"\n'
                for each in self.accounts
            ))  # fmt: skip
            keys_file.chmod(0o600)
            self.extra = ("--auth", "strict", "--keys-file", str(keys_file))
            self.keys = self.keys._replace(token=TOKEN)
        self.cluster = Besieged(self.directory / "cluster", extra=self.extra, token=self.keys.token)
        self.proxy = Beside(self.cluster, "web1", None, self.extra)
        self.statuses: Counter[int] = Counter()
        self.done: Counter[str] = Counter()
        self.slowest: list[tuple[float, str]] = []
        self.elections = self.bystander_calls = self.repeated = 0
        self.bystander_slowest_s = self.noise_s = 0.0

    def run(self, seconds: float, replay: list[Request]) -> None:
        """Load the cluster for some time, or with the calls of a replay. Then restart it, add a member, and restore."""
        phases = 1 if replay else max(1, round(seconds / PHASE_S))
        with hooked() as hook:
            try:
                if not self._try("the first start", self._start):
                    return
                self._prepare(hook.url)
                for phase in range(phases):
                    self._load(phase, seconds / phases, hook.url, replay)
                    if not self._judge_and_restart(phase, is_last=phase == phases - 1):
                        return
                self._try("a learner joins", self._grow)
                self._try("a backup is restored", self._restore)
            finally:
                self.proxy.end()
                self.cluster.end()
                self._tell(dict(hook.posts))

    # Starts.

    def _try(self, what: str, step: Callable[[], None]) -> bool:
        """Return whether a step succeeds; note it otherwise."""
        try:
            step()
        except (AssertionError, OSError, TimeoutError, subprocess.SubprocessError) as failure:
            text = f"{type(failure).__name__} {failure}".strip()
            shown = text if len(text) <= SHOWN_CHARS else f"{text[:100]} ... {text[-SHOWN_CHARS:]}"
            self.verdict.note(rules.NOT_STARTED, f"{what} ({self.mode}): {shown}")
            return False
        return True

    def _start(self) -> None:
        for member in (*self.cluster.members.values(), self.proxy):
            member.start()
        self.cluster.wait_ready()
        self.proxy.until_up()
        until(self.proxy.is_ready, f"the proxy is ready: {self.proxy.said()}")

    def _kill(self) -> None:
        for member in (*self.cluster.members.values(), self.proxy):
            member.kill9()

    def _judge_and_restart(self, phase: int, *, is_last: bool) -> bool:
        """Compare the members, kill all and start them again, in the other build if there is one.

        Return whether they started.
        """
        self._try_equal("after the load")
        self._kill()
        if is_last:
            self._try(
                "a backup is made", lambda: _elasticq("backup", self.cluster["n1"].data, self.directory / "backup")
            )
        environment = self.cluster.environment
        environment.pop("ELASTICQ_PURE", None)
        if phase % 2 == 0:
            environment["ELASTICQ_PURE"] = "1"
        if not self._try("the start after kill -9 of all", self._start):
            return False
        self._try_equal("after the restart")
        return True

    def _try_equal(self, when: str) -> None:
        """Compare the members' rows. Try again while one of them does not answer; note a difference."""
        output = ""

        def is_compared() -> bool:
            nonlocal output
            done = self.cluster.try_operate("verify", "--wait-s", str(COMPARE_S))
            output = (done.stdout + done.stderr).strip()
            return all(name in done.stdout for name in self.cluster.members) or "different" in output

        try:
            until(is_compared, "the members are compared", 3 * PATIENCE_S)
        except (AssertionError, OSError, subprocess.SubprocessError) as failure:
            output = f"{output} {failure!r}"
        if "equal" not in output:
            self.verdict.note(rules.DIFFERENT, f"{when} ({self.mode}): {output}")

    def _grow(self) -> None:
        """Let a learner without data join, and make it a voter."""
        self.cluster.promote(self.cluster.add().name)
        self._try_equal("with a fourth member")

    def _restore(self) -> None:
        """Start a separate server from the backup, send it calls of the testing pages, kill it, and start it again."""
        single = Besieged(
            self.directory / "restored", 1, extra=(*self.extra, "--cluster-name", "restored"), token=self.keys.token,
            environment={"ELASTICQ_TESTING__ENABLED": "true"},
        )  # fmt: skip
        try:
            _elasticq("restore", self.directory / "backup", single["n1"].data)
            single.start()
            orders = generated(self._world("testing calls", ""), TESTING)
            ring = Ring(self.directory / "restored" / "worker0.calls")
            worker = Worker(itertools.islice(orders, TESTING_CALLS), lambda *_: single["n1"].port, self.keys, ring)
            worker.run()
            self._note(worker)
            assert single["n1"].is_running(), f"testing calls ended the restored server: {_end_of(single['n1'])}"
            single.kill9("n1")
            single.start()
        finally:
            single.end()

    # Load.

    def _world(self, name: str, hook: str) -> World:
        return World(Random(f"{self.options.seed}/{self.mode}/{name}"), self.accounts, hook)

    def _prepare(self, hook: str) -> None:
        """Make the queues, topics and groups that the calls use."""
        connection = Connection(self.cluster["n1"].port, self.keys)
        world = self._world("set up", hook)
        for account in self.accounts:
            world.account = account
            for request in set_up(world):
                answer = connection.exchange(request)[0]
                assert answer.status == 200, (request, answer)
        connection.close()

    def _workers(self, phase: int, hook: str, replay: list[Request], watch: Watch) -> Iterator[Worker]:
        folder = self.directory.parent / f"{self.mode}-{phase}"
        folder.mkdir()
        if replay:
            ring, pause_s = Ring(folder / "worker0.calls"), self.options.pause_ms / 1_000
            yield Worker(iter(replay), watch.find_port, self.keys, ring, pause_s=pause_s)
            return
        entries = tuple(entry for entry in ENTRIES if re.match(self.options.only, entry.name))
        for number in range(self.options.workers):
            world, ring = self._world(f"{phase}/{number}", hook), Ring(folder / f"worker{number}.calls")
            pause_s = self.options.pause_ms / 1_000
            seed = f"{self.options.seed}/{self.mode}/{phase}/{number}"
            yield Worker(
                generated(world, entries), watch.find_port, self.keys, ring, seed=seed, pause_s=pause_s, world=world
            )  # fmt: skip

    def _load(self, phase: int, seconds: float, hook: str, replay: list[Request]) -> None:
        """Run the workers, the bystander and the control; note what they saw."""
        marks = {member.name: member.log.stat().st_size for member in self.cluster.members.values()}
        watch = Watch(self.cluster, self.proxy, self.verdict)
        workers = list(self._workers(phase, hook, replay, watch))
        config = self.directory / "bystander.json"
        ports = {member.name: member.port for member in self.cluster.members.values()}
        run = f"{self.options.seed}-{self.mode}-{phase}"
        config.write_bytes(msgspec.json.encode(Config(ports, self.accounts[0], self.keys.secrets, run)))
        control, bystander = _helper("control"), _helper("bystander", str(config))
        noise = _Reader(control)
        for thread in (watch, noise, *workers):
            thread.start()
        end_s = time.monotonic() + (float("inf") if replay else seconds)
        while time.monotonic() < end_s and not watch.ended.wait(0.1) and any(each.is_alive() for each in workers):
            pass
        for worker in workers:
            worker.over.set()
        for worker in workers:
            worker.join()
            self._note(worker)
        if not replay and not watch.ended.is_set():
            self._part(workers[0].ring.file.with_name("parting.calls"), watch)
        self._judge_bystander(bystander, control, noise)
        watch.over.set()
        watch.join()
        for member in self.cluster.members.values():
            with member.log.open(errors="replace") as log:
                log.seek(marks[member.name])
                self.elections += self.verdict.read_log(member.name, log.read())
        self._tell_sizes(watch)
        print(f"{self.mode}, phase {phase + 1}: {sum(self.statuses.values())} answers so far", flush=True)

    def _part(self, file: Path, watch: Watch) -> None:
        """Store documents nested as deeply as each member accepts. The next start must read them."""
        world = self._world("parting", "")
        worker = Worker(parting(world), watch.find_port, self.keys, Ring(file), world=world)
        worker.run()
        self._note(worker)

    def _judge_bystander(
        self, bystander: "subprocess.Popen[str]", control: "subprocess.Popen[str]", noise: "_Reader"
    ) -> None:
        try:
            said, errors = bystander.communicate(timeout=JOIN_S)
        except subprocess.TimeoutExpired:
            bystander.kill()
            said, errors = bystander.communicate()
        assert control.stdin
        control.stdin.close()
        noise.join()
        control.wait()
        if bystander.returncode:
            self.verdict.note(rules.BROKEN, f"the bystander ended with {bystander.returncode}: {errors[-1_000:]}")
            return
        report, noises = msgspec.json.decode(said, type=Report), noise_of(noise.text)
        for finding in report.findings:
            self.verdict.note(rules.BROKEN, finding)
        self.verdict.judge_bystander(report.slow, noises, self.options.slow_ms)
        self.bystander_calls += report.calls
        self.repeated += report.repeated
        self.bystander_slowest_s = max([self.bystander_slowest_s, *(each.took_s for each in report.slow)])
        self.noise_s = max([self.noise_s, *(each_s for _, each_s in noises)])

    # Figures.

    def _note(self, worker: Worker) -> None:
        if worker.error is not None:
            raise worker.error
        tally = worker.tally
        self.statuses += tally.statuses
        self.done += tally.done
        self.slowest = sorted([*self.slowest, *tally.slowest], reverse=True)[:5]
        for evidence in tally.failures:
            self.verdict.note(rules.FAILURES, evidence)
        for evidence in tally.late:
            self.verdict.note(rules.LATE, evidence)

    def _tell_sizes(self, watch: Watch) -> None:
        shown = []
        for name, sizes in watch.sizes.items():
            memory, files = zip(*sizes, strict=True)
            shown.append(
                f"{name} {memory[0]:.0f}/{max(memory):.0f}/{memory[-1]:.0f} MiB {files[0]}/{max(files)}/{files[-1]}"
            )
        self.verdict.facts[f"{self.mode}: memory and open files, first/most/last"] = ", ".join(shown)

    def _tell(self, posts: dict[str, int]) -> None:
        facts = self.verdict.facts
        statuses = ", ".join(f"{status} {count}" for status, count in sorted(self.statuses.items()))
        facts[f"{self.mode}: answers by status (0: the connection ended)"] = statuses
        facts[f"{self.mode}: kinds of calls answered 200"] = f"{len(self.done)}; posts to the web server {posts}"
        facts[f"{self.mode}: slowest calls"] = ", ".join(f"{name} {took_s} s" for took_s, name in self.slowest)
        facts[f"{self.mode}: elections"] = str(self.elections)
        facts[f"{self.mode}: bystander"] = (
            f"{self.bystander_calls} calls, the slowest {1_000 * self.bystander_slowest_s:.0f} ms, "
            f"{self.repeated} repeated; the machine's longest noise {1_000 * self.noise_s:.0f} ms"
        )


def _end_of(member: Member) -> str:
    """Return the last lines that a member wrote."""
    return " / ".join(line.strip() for line in member.said().splitlines()[-LINES_SHOWN:])


class _Reader(threading.Thread):
    """A thread that reads what a process writes until its end."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        super().__init__(daemon=True)
        self.text = ""
        self._process = process

    def run(self) -> None:
        assert self._process.stdout
        self.text = self._process.stdout.read()


def _helper(name: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.system.siege.{name}", *arguments], cwd=ROOT,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _elasticq(*words: str | Path) -> None:
    """Run a command of elasticq. Raise AssertionError with its output if it fails."""
    command = [sys.executable, "-m", "elasticq", *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, f"{words}: {done.returncode} {done.stdout[-500:]} {done.stderr[-1_500:]}"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=10, help="time under load, in all (10)")
    parser.add_argument("--seed", type=int, help="seed of the calls (random)")
    parser.add_argument(
        "--auth", choices=("off", "strict"), help="only this kind of cluster (both, one after the other)"
    )
    parser.add_argument(
        "--compiled",
        choices=("auto", "no"),
        default="auto",
        help="no: never use compiled modules; auto: at every second start, if there are any (auto)",
    )
    parser.add_argument("--workers", type=int, default=4, help="threads that send calls (4)")
    parser.add_argument("--pause-ms", type=float, default=15, help="mean pause of a worker between two calls (15)")
    parser.add_argument(
        "--slow-ms", type=float, default=SLOW_MS, help="bound of a bystander's call, in addition to the noise (250)"
    )
    parser.add_argument(
        "--only", default="", metavar="REGEX", help="only entry points whose names match, such as rest:"
    )
    parser.add_argument(
        "--replay", type=Path, nargs="+", metavar="FILE", default=[], help="send the logged calls of these files"
    )


def main(options: argparse.Namespace) -> int:
    options.seed = SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the exit ends the clusters
    if options.compiled == "no":
        os.environ["ELASTICQ_PURE"] = "1"
    replay = list(replayed(options.replay))
    modes = [options.auth] if options.auth else list(ACCOUNTS)
    if replay:
        modes = [mode for mode, accounts in ACCOUNTS.items() if replay[0].account in accounts]
    directory = Path(tempfile.mkdtemp(prefix="elasticq-siege-"))
    print(f"seed {options.seed}, {BUILD}: {', '.join(modes)}, in {directory}", flush=True)
    verdict = Verdict()
    for mode in modes:
        Siege(options, mode, verdict, directory).run(options.minutes * 60 / len(modes), replay)
    print(verdict.table(), flush=True)
    if verdict.is_clean:
        shutil.rmtree(directory)
        return 0
    lines = [f"{rule}: {evidence}" for rule, found in verdict.findings.items() for evidence in found]
    (directory / "findings.txt").write_text("\n".join(lines), errors="backslashreplace")
    print(f"findings and logs are in {directory}")
    return 1
