"""A cluster of local members. It prints their endpoints, and ends all of them when it ends.

Member k serves SQS on port 9324 + 10 (k - 1). Its admin port and peer port are the next two. It stores its messages
in <directory>/n<k>. The program prints each log line of a member after the member's name.
"""

import argparse
import json
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import FrameType

FIRST_PORT, STEP = 9_324, 10
READY_S = 30
HOST = "127.0.0.1"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=3, metavar="N", help="number of members (3)")
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path("data/cluster"),
        metavar="DIR",
        help="folder of their data (data/cluster)",
    )
    parser.add_argument(
        "--first-port", type=int, default=FIRST_PORT, metavar="PORT", help="SQS port of member 1 (9324)"
    )
    options, more = parser.parse_known_args()
    signal.signal(signal.SIGTERM, _interrupt)
    ports = [options.first_port + STEP * number for number in range(options.members)]
    members = [_start(number, port, ports, options.directory, more) for number, port in enumerate(ports, 1)]
    for number, member in enumerate(members, 1):
        threading.Thread(target=_follow, args=(f"n{number}", member)).start()
    try:
        if not _wait_ready(members, ports):
            return 1
        _tell(ports, None if "--memory" in more else options.directory.resolve())
        for member in members:
            member.wait()
    except KeyboardInterrupt:
        print("stopping", file=sys.stderr)
    finally:
        for member in members:
            member.terminate()
        for member in members:
            member.wait()
    return 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _start(number: int, port: int, ports: list[int], directory: Path, more: list[str]) -> subprocess.Popen[bytes]:
    seeds = ",".join(f"{HOST}:{other + 2}" for other in ports)
    command = [sys.executable, "-m", "elasticq", "server", "--node-id", f"n{number}", "--nodes", str(len(ports))]
    command += ["--port", str(port), "--admin-port", str(port + 1), "--peer-port", str(port + 2), "--seeds", seeds]
    if "--memory" not in more:
        command += ["--data-dir", str(directory / f"n{number}")]
    return subprocess.Popen(
        [*command, *more], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def _follow(name: str, member: subprocess.Popen[bytes]) -> None:
    """Print what a member logs, and its status when it ends."""
    assert member.stderr is not None
    for line in member.stderr:
        print(f"{name}  {line.decode(errors='replace').rstrip()}", file=sys.stderr, flush=True)
    print(f"{name}  ended with status {member.wait()}", file=sys.stderr, flush=True)


def _wait_ready(members: list[subprocess.Popen[bytes]], ports: list[int]) -> bool:
    until_s = time.monotonic() + READY_S
    while not all(_is_ready(port) for port in ports):
        dead = [number for number, member in enumerate(members, 1) if member.poll() is not None]
        if dead or time.monotonic() > until_s:
            print(f"members {dead} ended" if dead else f"no cluster after {READY_S} s", file=sys.stderr)
            return False
        time.sleep(0.05)  # between two checks of other processes
    return True


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port + 1}/ready", timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _master(admin_port: int) -> str | None:
    """Return the master's name, or None if the admin port refuses the question (--auth strict)."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{admin_port}/cluster", timeout=5) as answer:
            return str(json.load(answer)["master"])
    except urllib.error.HTTPError:
        return None


def _tell(ports: list[int], directory: Path | None) -> None:
    master = _master(ports[0] + 1)
    for number, port in enumerate(ports, 1):
        role = "" if master is None else "master" if master == f"n{number}" else "follower"
        print(f"n{number}  SQS http://{HOST}:{port}  admin http://{HOST}:{port + 1}  {role}")
    print(f"export AWS_ENDPOINT_URL_SQS=http://{HOST}:{ports[0]}")
    print(f"AWS CLI v1 does not read that variable: aws --endpoint-url http://{HOST}:{ports[0]} sqs list-queues")
    place = "in memory only" if directory is None else f"in {directory}/n1 and so on"
    print(f"messages are stored {place}")
    print(f"status: elasticq cluster status --admin http://{HOST}:{ports[0] + 1}    end: Ctrl-C", flush=True)


if __name__ == "__main__":
    sys.exit(main())
