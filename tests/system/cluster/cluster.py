"""A cluster of real processes on one machine, every link between them breakable; none outlives its test.

All ports are kept by the harness for the whole test (bound, never listening: the member listens on the
same port because both say SO_REUSEADDR, and the kernel gives it to nobody else meanwhile), so that URLs
and seeds stay true over restarts and no start races another process for a port.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from elasticq.checks.queue_history import Jump
from tests.system.cluster.clocked import Clocks, Skew
from tests.system.cluster.proxy import HOST, Network
from tests.system.durability.chaos import CLOCK_BOUND_MS, now_us
from tests.system.durability.connection import Connection
from tests.system.durability.server import pause

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 60  # for what takes a fraction of it on a quiet machine
CALL_S = 15
LOOK_S = 0.02
LOG_SHOWN_BYTES = 3_000


def until(condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """The first true value of ``condition``."""
    deadline_s = time.monotonic() + patience_s
    while not (value := condition()):
        assert time.monotonic() < deadline_s, f"not within {patience_s} s: {what}"
        pause(LOOK_S)
    return value


def let_pass(seconds: float) -> None:
    """A fault's own duration."""
    end_s = time.monotonic() + seconds
    until(lambda: time.monotonic() >= end_s, "time passes", seconds + PATIENCE_S)


class Reply(NamedTuple):
    """``headers`` by lower-case name."""

    status: int
    headers: dict[str, str]
    body: Any

    @property
    def code(self) -> str:
        """The error's code, without its namespace."""
        return str(self.body.get("__type", "")).rpartition("#")[2]

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


def ask(port: int, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Reply:
    """One HTTP request on a connection of its own. Raises OSError where no answer comes."""
    connection = HTTPConnection(HOST, port, timeout=CALL_S)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        data = answer.read()
    except HTTPException as error:
        raise ConnectionError(str(error)) from error
    finally:
        connection.close()
    try:
        value = json.loads(data or b"{}")
    except ValueError:
        value = {"text": data.decode(errors="replace")}
    return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, value)


def kept_port() -> socket.socket:
    keeper = socket.socket()
    keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    keeper.bind((HOST, 0))
    return keeper


class Member:
    """One process, its directory, its ports."""

    def __init__(self, cluster: "Cluster", name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.data = cluster.directory / name
        self.log = cluster.directory / f"{name}.log"
        self.routes = cluster.directory / f"{name}.routes.json"
        self.keepers = [kept_port() for _ in range(3)]
        self.port, self.admin_port, self.peer_port = (keeper.getsockname()[1] for keeper in self.keepers)
        self.address = f"{HOST}:{self.peer_port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.is_paused = False
        at = len(cluster.members)
        skewed = cluster.skews[at : at + 1]
        self.clocks = Clocks.make(cluster.directory / f"{name}.clocks", *skewed) if skewed else None
        self.knows_time = False  # has heard a master since its start, for certain
        self.module = "elasticq"

    # The process.

    def command(self) -> list[str]:
        cluster = self.cluster
        arguments = ["--node-id", self.name, "--host", HOST, "--port", str(self.port)]
        arguments += ["--admin-port", str(self.admin_port), "--peer-port", str(self.peer_port)]
        arguments += ["--nodes", str(cluster.founders), "--discovery", "seeds", "--seeds", ",".join(cluster.seeds())]
        arguments += ["--ack-mode", cluster.mode]
        arguments += ["--memory"] if cluster.memory else ["--data-dir", str(self.data)]
        if cluster.secret_file:
            arguments += ["--cluster-secret-file", str(cluster.secret_file)]
        module = ["tests.system.cluster.clocked", str(self.clocks.file)] if self.clocks else self.module.split()
        return [sys.executable, "-m", *module, "server", *arguments, *cluster.extra]

    def start(self) -> None:
        """Returns at once; ``until_up`` waits."""
        assert self.process is None, f"{self.name} runs"
        self.knows_time = False
        self.cluster.note_start()
        environment = {"PYTHONPATH": str(ROOT), "ELASTICQ_FAULT_ROUTES": str(self.routes)}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=ROOT,
                env=os.environ | environment | self.cluster.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def until_up(self) -> None:
        """Both HTTP ports answer; it need not be ready."""
        until(self.is_up, f"{self.name} answers")

    def is_up(self) -> bool:
        assert self.process, f"{self.name} was not started"
        status = self.process.poll()
        assert status is None, f"{self.name} ended with {status}: {self.said()}"
        try:
            return all(ask(port, "GET", "/health").status == 200 for port in (self.port, self.admin_port))
        except OSError:
            return False

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-LOG_SHOWN_BYTES:] if self.log.exists() else ""

    def signal(self, number: int) -> None:
        """To its whole process group."""
        assert self.process
        os.killpg(self.process.pid, number)

    def kill9(self) -> None:
        """Returns when it is gone."""
        if self.process is not None:
            if self.process.poll() is None:
                self.signal(signal.SIGKILL)
            self.process.wait()
            self.process, self.is_paused = None, False

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        assert self.process
        self.signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> int:
        """The status of a process that ends, or was told to."""
        assert self.process
        status = self.process.wait(PATIENCE_S)
        self.process = None
        return status

    def pause(self) -> None:
        self.signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        self.signal(signal.SIGCONT)
        self.is_paused = False

    # What it says.

    def connect(self) -> Connection:
        return Connection(self.port)

    def ask(self, action: str, guid: str = "", **parameters: Any) -> Reply:
        """One SQS call, whatever comes."""
        headers = {"X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": "application/x-amz-json-1.0"}
        if guid:
            headers["amz-sdk-invocation-id"] = guid
        return ask(self.port, "POST", "/", json.dumps(parameters).encode(), headers)

    def call(self, action: str, guid: str = "", **parameters: Any) -> dict[str, Any]:
        """One SQS call that has to succeed."""
        reply = self.ask(action, guid, **parameters)
        assert reply.status == 200, f"{self.name}: {reply}"
        return dict(reply.body)

    def status(self) -> dict[str, Any]:
        """``GET /cluster``; empty where it does not answer."""
        if not self.is_running() or self.is_paused:
            return {}
        try:
            reply = ask(self.admin_port, "GET", "/cluster", headers=self.cluster.operators)
        except OSError:
            return {}
        return dict(reply.body) if reply.status == 200 else {}

    def metric(self, name: str) -> float:
        """A figure without labels of ``GET /metrics``, by its name without the prefix."""
        text = ask(self.admin_port, "GET", "/metrics", headers=self.cluster.operators).body.get("text", "")
        [line] = [line for line in text.splitlines() if line.startswith(f"elasticq_{name} ")]
        return float(line.rpartition(" ")[2])

    def is_ready(self) -> bool:
        try:
            is_ready = self.is_running() and ask(self.admin_port, "GET", "/ready").status == 200
        except OSError:
            return False
        self.knows_time |= is_ready
        return is_ready

    def can_tell_time(self) -> bool:
        """It takes the cluster's time into an election, and not that of its wall clock."""
        return self.is_running() and (self.knows_time or (not self.is_paused and self.is_ready()))

    def boto3(self, service: str = "sqs", **more: Any) -> Any:
        """An SDK client with the SDK's own settings."""
        return boto3_at(self.port, service, **more)


def boto3_at(port: int, service: str = "sqs", **more: Any) -> Any:
    """An SDK client with the SDK's own settings, for whatever listens there."""
    import boto3

    return boto3.client(
        service,
        endpoint_url=f"http://{HOST}:{port}",
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        **more,
    )


def judged(prefix: str, count: int, judge: Callable[["Cluster"], bool], **more: Any) -> int:
    """A script's exit status: 1 if ``judge`` finds a fresh cluster at fault, whose directory is kept then and told."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and so by the end of the cluster
    directory = Path(tempfile.mkdtemp(prefix=prefix))
    cluster = Cluster(directory, count, **more)
    try:
        has_failed = judge(cluster.start())
    finally:
        cluster.end()
    if has_failed:
        print(f"all of it in {directory}")
    else:
        shutil.rmtree(directory)
    return int(has_failed)


class Cluster:
    """``count`` members n1, n2, ... that form one cluster when ``start`` is called.

    skews: of the founders' clocks, by their order; who has none goes by the machine's.
    extra: more flags for each member; environment: more variables; prefix: of the names;
    token: what operators must show; empty for nothing;
    network: shared with another cluster that is to be met.
    """

    def __init__(
        self,
        directory: Path,
        count: int = 3,
        *,
        memory: bool = False,
        mode: str = "majority",
        secret: bool = True,
        skews: Sequence[Skew] = (),
        extra: tuple[str, ...] = (),
        environment: dict[str, str] | None = None,
        prefix: str = "n",
        token: str = "",
        network: Network | None = None,
    ) -> None:
        self.directory = directory
        self.founders = count
        self.memory = memory
        self.mode = mode
        self.extra = extra
        self.environment = environment or {}
        self.prefix = prefix
        self.members: dict[str, Member] = {}
        self.skews = tuple(skews)
        drifts_ppm = (0, *(skew.drift_ppm for skew in skews))
        self.drift = (max(drifts_ppm) - min(drifts_ppm)) / 1_000_000
        self.walls_ahead_ms = [0, *(skew.wall_ahead_ms for skew in skews)]
        self.jumps: list[Jump] = []
        self.seeds_more: list[str] = []
        self._links: dict[tuple[str, str], int] = {}
        self._owns_network = network is None
        directory.mkdir(parents=True, exist_ok=True)
        self.network = network or Network()
        self.secret_file = directory / "secret" if secret else None
        if self.secret_file:
            self.secret_file.write_text("a secret of this test only\n")
            self.secret_file.chmod(0o600)
        self.operators = {"Authorization": f"Bearer {token}"} if token else {}
        self.token_file = directory / "token"
        if token:
            self.token_file.write_text(token)
            self.token_file.chmod(0o600)
            self.environment = self.environment | {"ELASTICQ_ADMIN__TOKEN_FILE": str(self.token_file)}
        for _ in range(count):
            self._new()

    # Life.

    def start(self) -> "Cluster":
        """All of them; returns when all are ready."""
        for member in self.members.values():
            member.start()
        self.wait_ready()
        return self

    def add(self, name: str = "", *, start: bool = True) -> Member:
        """One more process; it comes as a learner."""
        member = self._new(name)
        if start:
            member.start()
            member.until_up()
        return member

    def end(self) -> None:
        for member in self.members.values():
            member.kill9()
            for keeper in member.keepers:
                keeper.close()
        if self._owns_network:
            self.network.end()

    def restart(self, name: str) -> None:
        """Returns when it answers, ready or not."""
        self[name].kill9()
        self[name].start()
        self[name].until_up()

    def note_start(self) -> None:
        """One more goes by its wall clock until it hears a master: when they are a quorum, so may the cluster."""
        ignorant = sum(not member.can_tell_time() for member in self.members.values())
        if ignorant > min(self.founders, len(self.members)) // 2:
            spread_ms = max(self.walls_ahead_ms) - min(self.walls_ahead_ms)
            self.jumps.append(Jump(now_us(), spread_ms + CLOCK_BOUND_MS))

    def wipe(self, name: str) -> None:
        """Its disk is gone."""
        self[name].kill9()
        shutil.rmtree(self[name].data, ignore_errors=True)

    def forget(self, name: str) -> None:
        """A member that has left for good."""
        self.members.pop(name).kill9()
        self._route()

    def _new(self, name: str = "") -> Member:
        name = name or f"{self.prefix}{len(self.members) + 1}"
        assert name not in self.members
        member = self.members[name] = Member(self, name)
        for other in self.members.values():
            if other is not member:
                self._link(member, other)
                self._link(other, member)
        self._route()
        return member

    def meet(self, other: "Cluster") -> None:
        """From now on members of both can reach each other (both are on one network), and dial each other."""
        for mine in self.members.values():
            for theirs in other.members.values():
                self._link(mine, theirs)
                other._link(theirs, mine)
        self.seeds_more = other.seeds()
        other.seeds_more = self.seeds()
        self._route()
        other._route()

    def _link(self, dialler: Member, target: Member) -> None:
        self._links[dialler.name, target.address] = self.network.link(dialler.name, target.name, target.peer_port)

    def _route(self) -> None:
        """The files that say by which relay each member dials; read at each dial, so replaced as a whole."""
        for member in self.members.values():
            routes = {
                address: f"{HOST}:{port}" for (dialler, address), port in self._links.items() if dialler == member.name
            }
            fresh = member.routes.with_suffix(".new")
            fresh.write_text(json.dumps(routes))
            fresh.replace(member.routes)

    # Looking.

    def __getitem__(self, name: str) -> Member:
        return self.members[name]

    def names(self) -> list[str]:
        return list(self.members)

    def endpoints(self) -> list[str]:
        return [f"http://{HOST}:{member.port}" for member in self.members.values()]

    def running(self) -> list[Member]:
        return [member for member in self.members.values() if member.is_running() and not member.is_paused]

    def seeds(self) -> list[str]:
        return [member.address for member in self.members.values()] + self.seeds_more

    def wait_ready(self, names: Iterable[str] = (), patience_s: float = PATIENCE_S) -> None:
        """Each of ``names`` (all that run) is ready."""
        members = [self[name] for name in names] or self.running()
        for member in members:
            until(member.is_up, f"{member.name} answers: {member.said()}", patience_s)
        deadline_s = time.monotonic() + patience_s
        for member in members:
            left_s = max(LOOK_S, deadline_s - time.monotonic())
            until(member.is_ready, f"{member.name} is ready; {self.tell()}", left_s)

    def master_or_none(self, among: Iterable[str] = ()) -> str | None:
        """The member that a majority of the voters names (of those asked: ``among``, else all that run)."""
        asked = [self[name] for name in among] or self.running()
        named = [status for status in (member.status() for member in asked) if status.get("master")]
        voters = max((sum(bool(m["voter"]) for m in s["members"]) for s in named), default=self.founders)
        terms = max((status["term"] for status in named), default=0)
        newest = [status["master"] for status in named if status["term"] == terms]
        for name in set(newest):
            if 2 * newest.count(name) > voters and self[name].is_running() and not self[name].is_paused:
                return str(name)
        return None

    def master(self, among: Iterable[str] = (), other_than: str = "", patience_s: float = PATIENCE_S) -> str:
        """Waits for one."""
        among = list(among)

        def found() -> str | None:
            name = self.master_or_none(among)
            return name if name != other_than else None

        return str(until(found, f"a master among {among or 'all'} other than {other_than!r}", patience_s))

    def followers(self) -> list[str]:
        master = self.master()
        return [member.name for member in self.running() if member.name != master]

    def term(self) -> int:
        return max(int(member.status().get("term", 0)) for member in self.running())

    def voters(self, by: str = "") -> list[str]:
        """Names, as ``by`` (else the master) knows them."""
        status = self[by or self.master()].status()
        return sorted(member["name"] for member in status.get("members", ()) if member["voter"])

    def tell(self) -> str:
        """For a failure."""
        states = {}
        for member in self.running():
            status = member.status()
            states[member.name] = {key: status.get(key) for key in ("master", "term", "commit", "applied")}
        return json.dumps(states)

    # Operator's commands.

    def operate(self, *words: str, by: str = "") -> str:
        """``elasticq cluster WORDS`` by the admin port of ``by`` (else the master's); what it printed."""
        done = self.try_operate(*words, by=by)
        assert done.returncode == 0, f"{words}: {done.stdout} {done.stderr}"
        return done.stdout

    def try_operate(self, *words: str, by: str = "") -> subprocess.CompletedProcess[str]:
        where = [f"http://{HOST}:{self[by or self.master()].admin_port}"]
        where += ["--token-file", str(self.token_file)] if self.operators else []
        return subprocess.run(
            [sys.executable, "-m", "elasticq", "cluster", *words, "--admin", *where],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        )  # fmt: skip

    def same_rows(self) -> None:
        """Each running member's rows have the same digest at the same place in the log (``cluster verify``)."""
        told = self.operate("verify")
        assert all(member.name in told for member in self.running()), told

    def promote(self, name: str, patience_s: float = PATIENCE_S) -> None:
        """Make a learner a voter, as soon as it has caught up: until then the order is refused."""
        until(
            lambda: self.try_operate("add", name).returncode == 0,
            f"{name} becomes a voter: {self[name].said()}",
            patience_s,
        )
        until(lambda: name in self.voters(), f"{name} is a voter")

    # Faults.

    def kill9(self, name: str) -> None:
        self[name].kill9()

    def stop(self, name: str) -> int:
        return self[name].stop()

    def pause(self, name: str) -> None:
        self[name].pause()

    def resume(self, name: str) -> None:
        self[name].resume()

    def turn(self, name: str, **ahead_ms: int) -> None:
        """The clocks of a member that has its own jump: boot_ahead_ms, wall_ahead_ms."""
        clocks = self[name].clocks
        assert clocks, f"{name} goes by the machine's clocks"
        clocks.skew = clocks.skew._replace(**ahead_ms)
        self.walls_ahead_ms.append(clocks.skew.wall_ahead_ms)

    def partition(self, *groups: Iterable[str]) -> None:
        """Members hear only those of their own group; who is in no group hears nobody. Replaces older faults."""
        group_of = {name: at for at, group in enumerate(groups) for name in group}
        for one in self.members:
            for other in self.members:
                if one != other:
                    same = one in group_of and group_of[one] == group_of.get(other)
                    self.network.set(one, other, "pass" if same else "hold")

    def cut(self, one: str, other: str) -> None:
        """Both directions between two members."""
        self.silence(one, other)
        self.silence(other, one)

    def join(self, one: str, other: str) -> None:
        """Undo ``cut``."""
        self.network.set(one, other)
        self.network.set(other, one)

    def silence(self, sender: str, receiver: str, state: str = "hold") -> None:
        """One direction: ``receiver`` does not hear ``sender``. ``state``: hold or swallow."""
        self.network.set(sender, receiver, state)

    def isolate(self, name: str) -> None:
        for other in self.members:
            if other != name:
                self.cut(name, other)

    def slow(self, name: str, **how: float) -> None:
        """All that ``name`` sends and hears: delay_ms, jitter_ms, bytes_per_s."""
        for other in self.members:
            if other != name:
                self.network.set(name, other, **how)
                self.network.set(other, name, **how)

    def heal(self) -> None:
        """Every link is as good as new."""
        for one in self.members:
            for other in self.members:
                if one != other:
                    self.network.set(one, other)
