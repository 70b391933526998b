"""elasticq top in a real pseudo-terminal, against a real server."""

import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from elasticq.cli import main
from elasticq.cli.top import Seen, duration, frame
from elasticq.client import Sqs
from tests.cli.terminal import Terminal, plain
from tests.server.process import Server

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
HOME = "\x1b[H"


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, str]]:
    """A server with queues of different depths and ages: its SQS URL and its admin URL."""
    with Server() as server:
        with Sqs(server.url, "us-east-1") as sqs:
            for name, depth in (("oldest", 1), ("deepest", 5), ("empty", 0)):
                url = sqs.create_queue(QueueName=name)["QueueUrl"]
                for _ in range(depth):
                    sqs.send_message(QueueUrl=url, MessageBody="x")
        yield server.url, server.admin()


def frames(output: str) -> list[list[str]]:
    """The frames that were drawn whole, each as its lines."""
    return [plain(each).splitlines() for each in output.split(HOME)[1:-1]]


def names(lines: list[str]) -> list[str]:
    """The queues of a frame, in its order."""
    head = next(number for number, line in enumerate(lines) if line.startswith("QUEUE"))
    return [line.split()[0] for line in lines[head + 1 :] if line.split()[0] in ("oldest", "deepest", "empty")]


def latest(output: str) -> list[str]:
    """The newest frame, whole or not."""
    return plain(output.split(HOME)[-1]).splitlines()


def is_sorted_by(sort: str, *expected: str) -> Any:
    def is_seen(output: str) -> bool:
        lines = latest(output)
        return any(f"by {sort}" in line for line in lines) and "sort:" in lines[-1] and names(lines) == list(expected)

    return is_seen


def test_top_sorts_follows_changes_resizes_and_quits(server: tuple[str, str]) -> None:
    url, admin = server
    with Terminal("top", "--admin", admin, "--interval", "0.2", columns=100, rows=30) as terminal:
        terminal.read_until(is_sorted_by("depth", "deepest", "oldest", "empty"))
        assert ENTER in terminal.output
        terminal.press("a")
        terminal.read_until(is_sorted_by("age", "oldest", "deepest", "empty"))
        terminal.press("x")  # no key of this program
        terminal.press("d")
        with Sqs(url, "us-east-1") as sqs:
            target = sqs.get_queue_url(QueueName="empty")["QueueUrl"]
            for _ in range(9):
                sqs.send_message(QueueUrl=target, MessageBody="x")
        terminal.read_until(is_sorted_by("depth", "empty", "deepest", "oldest"))
        terminal.resize(40, 12)
        terminal.read_until(lambda output: bool(re.match("[23] more queues", latest(output)[-1])))
        lines = latest(terminal.output)
        assert max(map(len, lines)) <= 40
        assert len(lines) < 12
        terminal.press("q")
        status, output = terminal.rest()
    assert status == 0
    assert output.endswith(LEAVE)
    assert all(len(line) <= 100 for each in frames(output) for line in each)


def test_ctrl_c_and_sigterm_leave_the_terminal_as_it_was(server: tuple[str, str]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        with Terminal("top", "--admin", server[1]) as terminal:
            terminal.read_until(lambda output: "q quit" in output)
            terminal.signal(number)
            status, output = terminal.rest()
        assert status == 0
        assert output.endswith(LEAVE)


def test_a_member_that_ends_is_named_and_the_last_state_stays() -> None:
    with Server() as server, Terminal("top", "--admin", server.admin(), "--interval", "0.1") as terminal:
        terminal.read_until(lambda output: "q quit" in output)
        server.process.kill()
        terminal.read_until(lambda output: "OLD: http://127.0.0.1" in output and "q quit" in latest(output)[-1])
        terminal.press("q")
        assert terminal.rest()[0] == 0


def test_once_prints_a_frame_without_escapes(server: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--once", "--admin", server[1], "--sort", "age"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.splitlines()[0] == "node1: master node1  term 1  quorum 1"
    assert names(out.splitlines())[0] == "oldest"


def test_once_says_what_does_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--once", "--admin", "http://127.0.0.1:1"]) == 1
    assert "does not answer" in capsys.readouterr().err


def queue(name: str, **changes: Any) -> dict[str, Any]:
    counts = dict.fromkeys(("visible", "in_flight", "delayed"), 0)
    rates = dict.fromkeys(("sent_per_s", "received_per_s", "deleted_per_s"), 0.0)
    return {"name": name, "account": "", "region": "", "oldest_age_ms": None, **counts, **rates, **changes}


def overview(**changes: Any) -> dict[str, Any]:
    silent = dict.fromkeys(("version", "uptime_ms", "disk_free_bytes", "lag", "sent_per_s", "received_per_s"))
    member = {"name": "m" * 80, "role": "master", "voter": True, "answers": False, **silent}
    why = {"cause": "c" * 300, "command": "fix it"}
    finding = {"severity": "critical", "what": "m\x1b[2J is down", "since_ms": 0, **why}
    rates = dict.fromkeys(("sent_per_s", "received_per_s", "deleted_per_s"), 1.0)
    state = {"asked": "n1", "master": None, "term": 1, "quorum": 2, "time_ms": 61_000, **rates}
    totals = {"visible": 1, "in_flight": 2, "delayed": 3}
    return {**state, "totals": totals, "members": [member] * 5, "findings": [finding] * 9, **changes}


def test_a_frame_names_what_needs_attention() -> None:
    lines = frame(Seen(overview(), []), "depth")
    assert lines[:4] == [
        "n1: master (none)  term 1  quorum 2",
        "CRITICAL for 1m 1s: m\\x1b[2J is down",
        f"  {'c' * 300}",
        "  fix it",
    ]
    assert sum("NO ANSWER" in line for line in lines) == 5
    lines = frame(Seen(overview(), []), "depth", 80, 40)
    assert sum(line.startswith("CRITICAL") for line in lines) == 5
    assert "and 4 more findings: --once shows all" in lines
    assert "nothing needs attention" in frame(Seen(overview(findings=[]), []), "depth")


def test_a_frame_fits_any_terminal() -> None:
    seen = Seen(overview(), [queue("q" * 80)] * 1_000)
    assert len(frame(seen, "depth")) > 1_000
    for width in (20, 40, 80, 200):
        for height in (2, 5, 24, 60):
            lines = frame(seen, "depth", width, height, "n1 does not answer")
            assert len(lines) < height
            assert max(len(plain(line)) for line in lines) <= width


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0s"), (999, "0s"), (59_000, "59s"), (61_000, "1m 1s"), (3_600_000, "1h 0m"), (183_600_000, "2d 3h")],
)
def test_durations_have_two_units(ms: int, text: str) -> None:
    assert duration(ms) == text
