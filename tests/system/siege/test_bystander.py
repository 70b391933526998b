"""The bystander's own judgement of what it saw, and the control's measure of the machine."""

import subprocess
import sys

import pytest

from elasticq.checks.history import Delete, HandedOut, Receive, Send, SentMessage
from tests.system.cluster.cluster import ROOT, until
from tests.system.siege.bystander import QUEUE, VISIBILITY_S, Config, Cycle, report

SECOND_US = 1_000_000


def common(at_s: float) -> dict[str, object]:
    at_us = int(at_s * SECOND_US)
    return {"client": "n1", "queue": QUEUE, "invoke_us": at_us, "complete_us": at_us + 1_000, "outcome": "ok"}


def sent(at_s: float) -> Send:
    return Send(**common(at_s), guid=f"{at_s}", messages=[SentMessage(body="a", message_ids=["1"])])  # type: ignore[arg-type]


def received(at_s: float) -> Receive:
    messages = [HandedOut("1", f"handle{at_s}", "a")]
    return Receive(**common(at_s), visibility_ms=VISIBILITY_S * 1_000, messages=messages)  # type: ignore[arg-type]


def deleted(at_s: float, of_s: float) -> Delete:
    return Delete(**common(at_s), message_id="1", receipt_handle=f"handle{of_s}")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("history", "found"),
    [
        ([sent(1), received(2), deleted(3, of_s=2)], []),
        ([sent(1), received(2), received(60), deleted(61, of_s=60)], []),
        ([sent(1)], ["lost"]),
        ([sent(1), received(2), received(3), deleted(4, of_s=3)], ["early"]),
        ([sent(1), received(2), deleted(3, of_s=2), received(60)], ["resurrected"]),
    ],
)
def test_what_is_lost_or_comes_twice_is_found(history: list[Send | Receive | Delete], found: list[str]) -> None:
    cycle = Cycle(Config({"n1": 1}, "", {}, "run"), "n1")
    cycle.history += history
    findings = report([cycle], drain_us=100 * SECOND_US).findings
    assert sorted({finding.partition(":")[0] for finding in findings}) == found


def test_the_control_ends_with_its_standard_input_and_prints_pairs_of_numbers() -> None:
    command = [sys.executable, "-m", "tests.system.siege.control"]
    control = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    said, _ = control.communicate(timeout=60)
    until(lambda: control.poll() is not None, "the control ends")
    assert control.returncode == 0
    assert all(len(line.split()) == 2 for line in said.splitlines())
