"""Runs the clients that people use, unmodified, against a server process and against a cluster of three.

Each client has an environment of its own under .venv-clients/ (their botocore versions exclude each other),
made when it is missing or when what it is made from has changed. What a client does is in tests/system/clients/<name>/;
a job is told all addresses, speaks to different members and ends with status 0 if everything was as it should be.
Clients that have a job named rolling are run again through one member of a cluster, while the master, always another
member, is killed by kill -9 and the next one is stopped by SIGTERM. With --restarts they run while all members restart
again and again, one after another; their addresses are kept open by supervisors. They shall see no error and nothing
twice. Clients that take minutes to build or to run are run where they are named, and with --heavy.
A client whose tools are not on this machine cannot be run: that is said, and the status is 1 as for a failure,
unless --allow-missing. The logs of what failed are kept, and their place is printed.
"""

import argparse
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from msgspec import Struct

from tests.system.cluster.cluster import HOST, Cluster, let_pass, until
from tests.system.cluster.plain import move_master_off
from tests.system.cluster.rolling import SUPERVISED, restart_each
from tests.system.durability.server import Server

ROOT = Path(__file__).resolve().parent.parent
JOBS = ROOT / "tests" / "system" / "clients"
ENVIRONMENTS = ROOT / ".venv-clients"
MAKING_S = 900
HEAVY_MAKING_S = 3_600
JOB_S = 240
STRESS_S = 3_600
FRONT = "n1"
"""The member through which clients are run while others die."""
UNDISTURBED_S = 2
AGAIN = 'touch begun; until test -e over; do "$0" "$@" || exit 1; done'
SHOWN_CHARS = 4_000

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "000000000000",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_PAGER": "",
}


class Failed(Exception):
    """A command ended with another status than 0, or not in time."""


class NotHad(Exception):
    """Something that a client needs cannot be had on this machine."""


class Client(Struct):
    """``tools``: programs that must be on the PATH; ``make``: fills its environment; ``job``: what is run there.

    rolling: the job that runs while members die and restart, if it has one. It makes the file ``begun`` in its
    directory and ends when there is one named ``over``.
    is_heavy: building or running it takes minutes of all cores.
    source: where the job is, if that is named differently; patience_s: how long a command of the job may take.
    """

    name: str
    tools: tuple[str, ...]
    make: Callable[[Path, Path], None]
    job: Callable[[Path, Path], list[list[str]]]
    rolling: Callable[[Path, Path], list[str]] | None = None
    is_heavy: bool = False
    source: str = ""
    patience_s: int = JOB_S

    @property
    def directory(self) -> Path:
        return JOBS / (self.source or self.name)


def run(command: list[str], directory: Path, patience_s: int, more: dict[str, str] | None = None) -> str:
    """What it printed. Raises Failed."""
    try:
        done = subprocess.run(
            command, cwd=directory, env=os.environ | (more or {}), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=patience_s,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{command} did not end within {patience_s} s") from error
    if done.returncode:
        raise Failed(f"{command} ended with {done.returncode}\n{(done.stdout + done.stderr)[-SHOWN_CHARS:]}")
    return done.stdout


# How environments are made, and what is run in them.


def make_python(source: Path, environment: Path) -> None:
    run([str(ROOT / "scripts" / "make_venv"), str(environment / "venv")], ROOT, MAKING_S)
    pip = [str(environment / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    run([*pip, "--disable-pip-version-check", "--requirement", "requirements.txt"], source, MAKING_S)


def python_job(source: Path, environment: Path) -> list[list[str]]:
    return [[str(environment / "venv" / "bin" / "python"), str(source / "job.py")]]


def python_rolling(source: Path, environment: Path) -> list[str]:
    return [str(environment / "venv" / "bin" / "python"), str(source / "rolling.py")]


def make_javascript(source: Path, environment: Path) -> None:
    for name in ("package.json", "job.mjs", "rolling.mjs"):
        shutil.copy(source / name, environment)
    run(["npm", "install", "--no-audit", "--no-fund", "--silent"], environment, MAKING_S)


def javascript_job(source: Path, environment: Path) -> list[list[str]]:
    return [["node", str(environment / "job.mjs")]]


def javascript_rolling(source: Path, environment: Path) -> list[str]:
    return ["node", str(environment / "rolling.mjs")]


def make_go(source: Path, environment: Path) -> None:
    run(["go", "build", "-o", str(environment / "job"), "."], source, MAKING_S)


def go_job(source: Path, environment: Path) -> list[list[str]]:
    return [[str(environment / "job")]]


def make_go_tests(source: Path, environment: Path) -> None:
    run(["go", "test", "-c", "-o", str(environment / "job"), "."], source, MAKING_S)


def watermill_job(source: Path, environment: Path) -> list[list[str]]:
    return [[str(environment / "job"), "-test.short", "-test.skip", "TestStress"]]


def watermill_stress(source: Path, environment: Path) -> list[list[str]]:
    return [["env", "STRESS_TEST_COUNT=3", str(environment / "job"), "-test.run", "TestStress", "-test.timeout", "0"]]


def again(job: Callable[[Path, Path], list[list[str]]]) -> Callable[[Path, Path], list[str]]:
    """Make of a job of one command one that does it again until it is told to end."""

    def rolling(source: Path, environment: Path) -> list[str]:
        [command] = job(source, environment)
        return ["sh", "-c", AGAIN, *command]

    return rolling


def make_kombu(source: Path, environment: Path) -> None:
    """Its tests come with its sources only."""
    make_python(source, environment)
    version = next(line for line in (source / "requirements.txt").read_text().split() if line.startswith("kombu"))
    pip = [str(environment / "venv" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "download"]
    wanted = version.replace("[sqs]", "")
    run([*pip, "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(environment), wanted], source, MAKING_S)
    [archive] = environment.glob("kombu-*.tar.gz")
    shutil.unpack_archive(archive, environment)


def make_rust(source: Path, environment: Path) -> None:
    shutil.copytree(source, environment, dirs_exist_ok=True)
    run(["nice", "-n", "10", "cargo", "build", "--quiet", "--release"], environment, HEAVY_MAKING_S)


def rust_job(source: Path, environment: Path) -> list[list[str]]:
    return [[str(environment / "target" / "release" / "clients")]]


def make_java(source: Path, environment: Path) -> None:
    shutil.copytree(source, environment, dirs_exist_ok=True)
    goals = ["package", "dependency:copy-dependencies", "-DoutputDirectory=target/lib"]
    run(["mvn", "--quiet", "--batch-mode", *goals], environment, MAKING_S)


def java_job(source: Path, environment: Path) -> list[list[str]]:
    return [java_command(environment, "elasticq.Job"), java_command(environment, "elasticq.Libraries")]


def java_rolling(source: Path, environment: Path) -> list[str]:
    return [*java_command(environment, "elasticq.Libraries"), "rolling"]


def java_command(environment: Path, program: str) -> list[str]:
    places = [environment / "target" / "clients-1.jar", environment / "target" / "lib" / "*"]
    return ["java", "-cp", os.pathsep.join(map(str, places)), program]


def make_terraform(source: Path, environment: Path) -> None:
    """The provider comes from TERRAFORM_PLUGIN_DIR if that is set, else from Terraform's registry."""
    shutil.copy(source / "main.tf", environment)
    mirror = os.environ.get("TERRAFORM_PLUGIN_DIR", "")
    more = [f"-plugin-dir={mirror}"] if mirror else []
    try:
        run(["terraform", "init", "-no-color", "-input=false", *more], environment, MAKING_S)
    except Failed as failure:
        raise NotHad("Terraform's aws provider cannot be had: set TERRAFORM_PLUGIN_DIR to a mirror of it") from failure


def terraform_job(source: Path, environment: Path) -> list[list[str]]:
    """The second plan ends with status 2 if it finds any change."""
    base = ["terraform", f"-chdir={environment}"]
    plain = ["-no-color", "-input=false", "-state=WORK/state"]
    return [
        [*base, "apply", *plain, "-auto-approve"],
        [*base, "plan", *plain, "-detailed-exitcode"],
        [*base, "destroy", *plain, "-auto-approve"],
    ]


CLIENTS = [
    *(Client(name, (), make_python, python_job, python_rolling) for name in ("boto3", "celery")),
    *(Client(name, (), make_python, python_job) for name in ("aioboto3", "dramatiq", "taskiq")),
    Client("javascript", ("node", "npm"), make_javascript, javascript_job, javascript_rolling),
    Client("go", ("go",), make_go, go_job, again(go_job)),
    Client("java", ("java", "mvn"), make_java, java_job, java_rolling),
    Client("kombu", (), make_kombu, python_job, python_rolling),
    Client("rust", ("cargo",), make_rust, rust_job, again(rust_job), is_heavy=True),
    Client("watermill", ("go",), make_go_tests, watermill_job, again(watermill_job)),
    Client(
        "watermill-stress",
        ("go",),
        make_go_tests,
        watermill_stress,
        is_heavy=True,
        source="watermill",
        patience_s=STRESS_S,
    ),
    Client("terraform", ("terraform",), make_terraform, terraform_job),
]


def digest(source: Path) -> str:
    """Of everything that an environment is made from."""
    found = hashlib.sha256()
    for path in sorted(path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        found.update(str(path.relative_to(source)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def prepare(client: Client) -> None:
    """Make its environment, unless it is there and nothing has changed since."""
    source, environment = client.directory, ENVIRONMENTS / client.name
    stamp, wanted = environment / ".made", digest(source)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(environment, ignore_errors=True)
    environment.mkdir(parents=True)
    client.make(source, environment)
    stamp.write_text(wanted)


# The targets.


@contextmanager
def one_server(directory: Path) -> Iterator[list[str]]:
    server = Server(directory / "data", directory / "server.log", environment={"ELASTICQ_ADMIN__PORT": "0"})
    server.start()
    try:
        yield [f"http://{HOST}:{server.port}"]
        if server.stop() != 0 or "Traceback" in server.log.read_text():
            raise Failed(f"the server did not end well, see {server.log}")
    finally:
        server.kill()


@contextmanager
def cluster_of_three(directory: Path) -> Iterator[list[str]]:
    cluster = Cluster(directory / "cluster")
    try:
        cluster.start()
        yield cluster.endpoints()
        cluster.same_rows()
        logs = [member.log for member in cluster.members.values() if "Traceback" in member.log.read_text()]
        if logs:
            raise Failed(f"tracebacks in {logs}")
    finally:
        cluster.end()


TARGETS = {"server": one_server, "cluster": cluster_of_three}


def run_job(client: Client, endpoints: list[str], work: Path) -> str:
    """The last line that it printed. Raises Failed."""
    told = environment_of(client, endpoints, work)
    printed = ""
    for command in client.job(client.directory, ENVIRONMENTS / client.name):
        whole = [word.replace("WORK/", f"{work}/") for word in command]
        printed = run(whole, work, client.patience_s, told)
    return last_line(printed)


def environment_of(client: Client, endpoints: list[str], work: Path) -> dict[str, str]:
    """What a job is told; ``work``, its directory, is made."""
    home = work / "home"
    home.mkdir(parents=True)
    told = {"ENDPOINTS": ",".join(endpoints), "WORK": str(work), "TF_VAR_endpoint": endpoints[-1]}
    if client.name == "terraform":
        told["TF_IN_AUTOMATION"] = "1"
    return CREDENTIALS | told | {"HOME": str(home)}


def last_line(printed: str) -> str:
    return (printed.strip().splitlines() or [""])[-1]


def run_rolling(clients: list[Client], directory: Path, restarts: int) -> int:
    """How many failed; each runs while all members restart so often."""

    def restart(cluster: Cluster) -> None:
        for _ in range(restarts):
            restart_each(cluster)

    cluster = Cluster(directory / "cluster", extra=SUPERVISED)
    endpoints = cluster.endpoints()
    told = f"{restarts} restarts of each of three"
    return disturbed(clients, cluster, endpoints, directory, "rolling", told, restart)


def run_killed(clients: list[Client], directory: Path) -> int:
    """How many failed; each runs through one member while others die as masters."""
    cluster = Cluster(directory / "cluster")
    endpoints = [f"http://{HOST}:{cluster[FRONT].port}"]
    told = "a master killed by -9 and one stopped by SIGTERM"
    return disturbed(clients, cluster, endpoints, directory, "kills", told, kill_and_stop)


def kill_and_stop(cluster: Cluster) -> None:
    for end in (cluster.kill9, cluster.stop):
        master = move_master_off(cluster, FRONT)
        let_pass(UNDISTURBED_S)
        end(master)
        cluster.master(other_than=master)
        let_pass(UNDISTURBED_S)
        cluster.restart(master)
        cluster.wait_ready()


def disturbed(
    clients: list[Client],
    cluster: Cluster,
    endpoints: list[str],
    directory: Path,
    target: str,
    told: str,
    disturb: Callable[[Cluster], None],
) -> int:
    """How many failed. told: what is done to the cluster by ``disturb`` while each runs."""
    failures = 0
    try:
        cluster.start()
        for client in [client for client in clients if client.rolling]:
            try:
                line = roll(client, cluster, endpoints, directory / client.name, disturb)
                say("ok", target, client.name, f"{told}; {line}")
            except Failed as failure:
                failures += 1
                say("FAILED", target, client.name, str(failure))
                cluster.wait_ready()
    finally:
        cluster.end()
    return failures


def roll(client: Client, cluster: Cluster, endpoints: list[str], work: Path, disturb: Callable[[Cluster], None]) -> str:
    """The last line that the job printed. Raises Failed."""
    assert client.rolling
    told = environment_of(client, endpoints, work) | {"VISIBILITY_S": "30"}
    command = client.rolling(client.directory, ENVIRONMENTS / client.name)
    printed = work / "printed"
    with printed.open("w") as out:
        job = subprocess.Popen(
            command, cwd=work, env=os.environ | told, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
    try:
        until(lambda: (work / "begun").exists() or job.poll() is not None, "the job has begun")
        if job.poll() is None:
            disturb(cluster)
        (work / "over").touch()
        status = job.wait(JOB_S)
    except (AssertionError, subprocess.TimeoutExpired) as failure:
        raise Failed(f"{failure}\n{printed.read_text()[-SHOWN_CHARS:]}") from failure
    finally:
        job.kill()
        job.wait()
    if status:
        raise Failed(f"{command} ended with {status}\n{printed.read_text()[-SHOWN_CHARS:]}")
    return last_line(printed.read_text())


def say(state: str, target: str, name: str, text: str) -> None:
    print(f"{state:8} {target:8} {name:16} {text}", flush=True)


def missing_tools(client: Client) -> list[str]:
    return [tool for tool in client.tools if shutil.which(tool) is None]


def prepare_all(clients: list[Client]) -> tuple[list[Client], int, int]:
    """Those that can be run, how many cannot for want of tools, how many environments could not be made."""
    ready, missing, broken = [], 0, 0
    for client in clients:
        if tools := missing_tools(client):
            say("NOT RUN", "-", client.name, f"this machine has no {', '.join(tools)}")
            missing += 1
            continue
        try:
            prepare(client)
            ready.append(client)
        except NotHad as failure:
            say("NOT RUN", "-", client.name, str(failure))
            missing += 1
        except Failed as failure:
            say("FAILED", "-", client.name, f"its environment could not be made: {failure}")
            broken += 1
    return ready, missing, broken


def run_all(clients: list[Client], target: str, directory: Path) -> int:
    """How many failed."""
    failures = 0
    with TARGETS[target](directory) as endpoints:
        for client in clients:
            began_s = time.monotonic()
            try:
                line = run_job(client, endpoints, directory / client.name)
                say("ok", target, client.name, f"{time.monotonic() - began_s:5.1f} s  {line}")
            except Failed as failure:
                failures += 1
                say("FAILED", target, client.name, str(failure))
    return failures


def main() -> int:
    names = [client.name for client in CLIENTS]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("client", nargs="*", choices=[*names, []], help=f"which: {', '.join(names)}; none: all")
    parser.add_argument("--only", choices=[*TARGETS, "kills"], help="not the others")
    parser.add_argument("--heavy", action="store_true", help="those that take minutes to build or to run, too")
    parser.add_argument("--allow-missing", action="store_true", help="status 0 although tools are missing")
    parser.add_argument("--restarts", type=int, default=0, help="rolling restarts, beside which nothing else is run")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and so by the ends of all that was begun
    wanted = arguments.client or [client.name for client in CLIENTS if arguments.heavy or not client.is_heavy]
    chosen = [client for client in CLIENTS if client.name in wanted]
    directory = Path(tempfile.mkdtemp(prefix="elasticq-clients-"))
    ready, missing, failures = prepare_all(chosen)
    chosen_runs = ["rolling"] if arguments.restarts else [arguments.only] if arguments.only else [*TARGETS, "kills"]
    for target in chosen_runs:
        (directory / target).mkdir()
        try:
            if target == "rolling":
                failures += run_rolling(ready, directory / target, arguments.restarts)
            elif target == "kills":
                failures += run_killed(ready, directory / target)
            else:
                failures += run_all(ready, target, directory / target)
        except (Failed, AssertionError) as failure:
            failures += 1
            say("FAILED", target, "-", str(failure))
    print(f"{len(ready)} clients run, {failures} failures, {missing} not run for want of tools")
    if failures:
        print(f"logs: {directory}")
    else:
        shutil.rmtree(directory)
    return 1 if failures or (missing and not arguments.allow_missing) else 0


if __name__ == "__main__":
    sys.exit(main())
