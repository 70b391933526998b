"""The verdict of a siege: each planted fault fails it, and noise of the machine does not."""

import pytest

from tests.system.siege import verdict as rules
from tests.system.siege.bystander import Slow
from tests.system.siege.verdict import RULES, Verdict, noise_of

TIME = "2026-11-23 18:39:06,967"
QUIET_LOG = f"{TIME} INFO elasticq.server.member linked: There is a link to n2.\n{TIME} INFO x applied a note\n"


def test_nothing_found_is_clean() -> None:
    verdict = Verdict()
    assert verdict.read_log("n1", QUIET_LOG) == 0
    verdict.judge_bystander([], [])
    assert verdict.is_clean
    assert "FAILED" not in verdict.table()


@pytest.mark.parametrize("rule", RULES)
def test_one_finding_of_any_rule_fails(rule: str) -> None:
    verdict = Verdict()
    verdict.note(rule, "n1: something \ud800")
    assert not verdict.is_clean
    [line] = [line for line in verdict.table().splitlines() if line.startswith(rule)]
    assert line.split()[-2:] == ["1", "FAILED"]


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        (f"{TIME} WARNING elasticq.server.member link_lost: The link to n2 (n2-1f) is gone.\n", rules.LINKS),
        (f"{TIME} INFO elasticq.server.member link_lost: The link to the proxy web1 (w-1) is gone.\n", rules.LINKS),
        (f"{TIME} WARNING elasticq.peers peer_connection_closed reason=refused_frame address=1: x\n", rules.FRAMES),
        (f"{TIME} CRITICAL elasticq.server.cluster_process node_failed\n", rules.LOGGED),
        (f"{TIME} ERROR elasticq.runtime.runtime command_failed Subscribe RecursionError\n", rules.LOGGED),
        ("Traceback (most recent call last):\n  File x\nKeyError: 'a'\n", rules.LOGGED),
    ],
)
def test_a_planted_line_of_a_log_is_found(lines: str, rule: str) -> None:
    verdict = Verdict()
    verdict.read_log("n1", QUIET_LOG + lines + QUIET_LOG)
    assert [found for found in RULES if verdict.findings[found]] == [rule]


def test_elections_are_counted_and_a_traceback_names_its_error() -> None:
    verdict = Verdict()
    log = f"{TIME} INFO x election: This member stands.\nTraceback (most recent call last):\n  File x\nKeyError: 'a'\n"
    assert verdict.read_log("n1", log) == 1
    assert "KeyError" in verdict.findings[rules.LOGGED][0]


@pytest.mark.parametrize(
    ("took_s", "noise", "is_clean"),
    [
        (0.24, [], True),
        (0.26, [], False),
        (0.40, [(10.1, 0.2)], True),
        (0.40, [(10.1, 0.1)], False),
        (0.60, [(10.0, 0.2), (10.3, 0.2)], True),
        (0.40, [(5.0, 0.2), (11.0, 0.2)], False),
        (0.40, [(9.8, 0.2)], True),
    ],
)
def test_what_the_machine_was_late_is_taken_off(
    took_s: float, noise: list[tuple[float, float]], is_clean: bool
) -> None:
    verdict = Verdict()
    verdict.judge_bystander([Slow("n1", "SendMessage", 10.0, took_s)], noise)
    assert verdict.is_clean is is_clean


def test_noise_is_read_up_to_its_last_whole_line() -> None:
    assert noise_of("1.5 0.25\n2.5 0.5\n3.") == [(1.5, 0.25), (2.5, 0.5)]


def test_the_table_groups_findings_that_differ_in_numbers() -> None:
    verdict = Verdict()
    for number in range(9):
        verdict.note(rules.LINKS, f"n2: the link to n1-{number}ab{number} is gone")
    assert "9 x n2: the link to n1-0ab0 is gone" in verdict.table()
