"""Tests with the clients that people use, unmodified, against a server process and against a cluster of three.

Each client has an environment of its own in .venv-clients/, because their botocore versions exclude each other. The
program makes it if it is missing or if its sources have changed. A client's job is in tests/system/clients/<name>/.
The job gets the addresses of all members, calls several of them, and ends with status 0 if every result is right.

Clients with a job named rolling run again through one member of a cluster. Meanwhile the master, always another member,
is killed by kill -9, and the next master is stopped by SIGTERM. With --restarts they run while all members restart
again and again, one after another, and supervisors keep the members' ports open. The clients must see no error and no
message twice.

Clients that take minutes to build or to run are run only if they are named, or with --heavy. If a client's tools are
missing on this machine, the program prints that, and the status is 1 unless --allow-missing. It keeps the logs of a
failed run and prints their place.
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
"""The member that clients call while other members die."""
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
    """The error of a command that ended with another status than 0, or not in time."""


class NotHad(Exception):
    """The error of a client that needs something that this machine cannot get."""


class Client(Struct):
    """A client and how to run it.

    tools: programs that must be on the PATH.
    make: fills the client's environment.
    job: returns the commands that run there, one after the other.
    rolling: returns the command that runs while members die and restart, if there is one. It makes the file ``begun``
    in its directory, and ends when the file ``over`` exists.
    is_heavy: building or running it takes minutes of all cores.
    source: the name of the job's folder, if it differs from the client's.
    patience_s: how long a command of the job may take.
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
    """Run a command and return its output. Raise Failed if it does not end with status 0 in time."""
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


# Environments, and the commands that run in them.


def make_python(source: Path, environment: Path) -> None:
    run([str(ROOT / "scripts" / "make_venv"), str(environment / "venv")], ROOT, MAKING_S)
    pip = [str(environment / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    run([*pip, "--disable-pip-version-check", "--requirement", "requirements.txt"], source, MAKING_S)


def python_job(source: Path, environment: Path) -> list[list[str]]:
    return [[str(environment / "venv" / "bin" / "python"), str(source / "job.py")]]


def python_rolling(source: Path, environment: Path) -> list[str]:
    return [str(environment / "venv" / "bin" / "python"), str(source / "rolling.py")]


def make_javascript(source: Path, environment: Path) -> None:
    shutil.copytree(source, environment, dirs_exist_ok=True)
    run(["npm", "install", "--no-audit", "--no-fund", "--silent"], environment, MAKING_S)


def javascript_job(source: Path, environment: Path) -> list[list[str]]:
    return [["node", str(environment / "job.mjs")]]


def javascript_rolling(source: Path, environment: Path) -> list[str]:
    return ["node", str(environment / "rolling.mjs")]


def validator_job(source: Path, environment: Path) -> list[list[str]]:
    """Return the command that starts a server with TLS and the job. It does not use the target's server."""
    return [[sys.executable, str(source / "job.py"), str(environment / "job.mjs")]]


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
    """Return a rolling job that repeats the one command of a job until the file ``over`` exists."""

    def rolling(source: Path, environment: Path) -> list[str]:
        [command] = job(source, environment)
        return ["sh", "-c", AGAIN, *command]

    return rolling


def make_kombu(source: Path, environment: Path) -> None:
    """Make kombu's environment with its sources, because only they include its tests."""
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


def camel_job(source: Path, environment: Path) -> list[list[str]]:
    return [java_command(environment, "elasticq.Camel")]


def camel_rolling(source: Path, environment: Path) -> list[str]:
    return [*java_command(environment, "elasticq.Camel"), "rolling"]


def java_rolling(source: Path, environment: Path) -> list[str]:
    return [*java_command(environment, "elasticq.Libraries"), "rolling"]


def java_command(environment: Path, program: str) -> list[str]:
    places = [environment / "target" / "clients-1.jar", environment / "target" / "lib" / "*"]
    return ["java", "-cp", os.pathsep.join(map(str, places)), program]


def make_terraform(source: Path, environment: Path) -> None:
    """Make Terraform's environment. Raise NotHad if its aws provider cannot be loaded.

    The provider comes from TERRAFORM_PLUGIN_DIR if that is set, else from Terraform's registry.
    """
    shutil.copy(source / "main.tf", environment)
    mirror = os.environ.get("TERRAFORM_PLUGIN_DIR", "")
    more = [f"-plugin-dir={mirror}"] if mirror else []
    try:
        run(["terraform", "init", "-no-color", "-input=false", *more], environment, MAKING_S)
    except Failed as failure:
        raise NotHad(
            "Terraform's aws provider cannot be loaded: set TERRAFORM_PLUGIN_DIR to a mirror of it"
        ) from failure


def terraform_job(source: Path, environment: Path) -> list[list[str]]:
    """Return the commands: apply, plan, destroy. The plan ends with status 2 if it finds any change."""
    base = ["terraform", f"-chdir={environment}"]
    plain = ["-no-color", "-input=false", "-state=WORK/state"]
    return [
        [*base, "apply", *plain, "-auto-approve"],
        [*base, "plan", *plain, "-detailed-exitcode"],
        [*base, "destroy", *plain, "-auto-approve"],
    ]


CLIENTS = [
    *(Client(name, (), make_python, python_job, python_rolling) for name in ("boto3", "celery", "django_q", "pyqs")),
    *(Client(name, (), make_python, python_job) for name in ("aioboto3", "dramatiq", "taskiq")),
    *(
        Client(name, ("node", "npm"), make_javascript, javascript_job, javascript_rolling)
        for name in ("javascript", "nestjs")
    ),
    Client("camel", ("java", "mvn"), make_java, camel_job, camel_rolling),
    Client("dapr", ("go",), make_go_tests, go_job, again(go_job)),
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
    Client("sns_validator", ("node", "npm", "openssl"), make_javascript, validator_job),
    Client("terraform", ("terraform",), make_terraform, terraform_job),
]


def digest(source: Path) -> str:
    """Return the digest of all files from which an environment is made."""
    found = hashlib.sha256()
    for path in sorted(path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        found.update(str(path.relative_to(source)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def prepare(client: Client) -> None:
    """Make the client's environment, unless it exists and its sources have not changed."""
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
    """Run a client's job and return the last line that it printed. Raise Failed if a command fails."""
    environment = environment_of(client, endpoints, work)
    printed = ""
    for command in client.job(client.directory, ENVIRONMENTS / client.name):
        whole = [word.replace("WORK/", f"{work}/") for word in command]
        printed = run(whole, work, client.patience_s, environment)
    return last_line(printed)


def environment_of(client: Client, endpoints: list[str], work: Path) -> dict[str, str]:
    """Make the directory of a job, ``work``; return the job's environment variables."""
    home = work / "home"
    home.mkdir(parents=True)
    variables = {"ENDPOINTS": ",".join(endpoints), "WORK": str(work), "TF_VAR_endpoint": endpoints[-1]}
    if client.name == "terraform":
        variables["TF_IN_AUTOMATION"] = "1"
    return CREDENTIALS | variables | {"HOME": str(home)}


def last_line(printed: str) -> str:
    return (printed.strip().splitlines() or [""])[-1]


def run_rolling(clients: list[Client], directory: Path, restarts: int) -> int:
    """Run each client while all members restart ``restarts`` times; return how many clients failed."""

    def restart(cluster: Cluster) -> None:
        for _ in range(restarts):
            restart_each(cluster)

    cluster = Cluster(directory / "cluster", extra=SUPERVISED)
    endpoints = cluster.endpoints()
    description = f"{restarts} restarts of each of three"
    return disturbed(clients, cluster, endpoints, directory, "rolling", description, restart)


def run_killed(clients: list[Client], directory: Path) -> int:
    """Run each client through one member while two masters die; return how many clients failed."""
    cluster = Cluster(directory / "cluster")
    endpoints = [f"http://{HOST}:{cluster[FRONT].port}"]
    description = "a master killed by -9 and one stopped by SIGTERM"
    return disturbed(clients, cluster, endpoints, directory, "kills", description, kill_and_stop)


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
    description: str,
    disturb: Callable[[Cluster], None],
) -> int:
    """Run each client's rolling job while ``disturb`` acts on the cluster; return how many clients failed.

    description: what to print about what ``disturb`` does.
    """
    failures = 0
    try:
        cluster.start()
        for client in [client for client in clients if client.rolling]:
            try:
                line = roll(client, cluster, endpoints, directory / client.name, disturb)
                say("ok", target, client.name, f"{description}; {line}")
            except Failed as failure:
                failures += 1
                say("FAILED", target, client.name, str(failure))
                cluster.wait_ready()
    finally:
        cluster.end()
    return failures


def roll(client: Client, cluster: Cluster, endpoints: list[str], work: Path, disturb: Callable[[Cluster], None]) -> str:
    """Run a rolling job and return the last line that it printed. Raise Failed if it fails or does not end."""
    assert client.rolling
    environment = environment_of(client, endpoints, work) | {"VISIBILITY_S": "30"}
    command = client.rolling(client.directory, ENVIRONMENTS / client.name)
    printed = work / "printed"
    with printed.open("w") as out:
        job = subprocess.Popen(
            command, cwd=work, env=os.environ | environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
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
    """Make all environments.

    Return the clients that can run, the number without tools, and the number whose environment could not be made.
    """
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
    """Run the jobs of all clients against one target; return how many failed."""
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
    parser.add_argument("client", nargs="*", choices=[*names, []], help=f"clients to run: {', '.join(names)} (all)")
    parser.add_argument("--only", choices=[*TARGETS, "kills"], help="run only against this target")
    parser.add_argument("--heavy", action="store_true", help="also run clients that take minutes to build or to run")
    parser.add_argument("--allow-missing", action="store_true", help="status 0 if tools are missing")
    parser.add_argument("--restarts", type=int, default=0, help="run only rolling jobs, during so many restarts")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the exit runs every cleanup
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
    print(f"{len(ready)} clients run, {failures} failures, {missing} not run because tools are missing")
    if failures:
        print(f"logs: {directory}")
    else:
        shutil.rmtree(directory)
    return 1 if failures or (missing and not arguments.allow_missing) else 0


if __name__ == "__main__":
    sys.exit(main())
