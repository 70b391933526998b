"""What a siege must not find: each rule with its findings, and the table of them."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from tests.system.siege.bystander import Slow

LINKS, FRAMES, ENDED = "links lost", "frames refused", "members ended"
FAILURES, LATE = "answers InternalFailure (500)", "answers after more than 25 s"
SLOW, BROKEN = "slow calls of the bystander", "messages of the bystander lost or twice"
DIFFERENT, NOT_STARTED, LOGGED = "members that differ", "starts, backups or joins that failed", "failures in the logs"
RULES: Final = (LINKS, FRAMES, ENDED, FAILURES, LATE, SLOW, BROKEN, DIFFERENT, NOT_STARTED, LOGGED)
LATE_S: Final = 25.0
SLOW_MS: Final = 250.0
"""How much longer than the machine's own noise a call of the bystander may take."""
SHOWN: Final = 3
EVIDENCE_CHARS: Final = 400
AROUND_S: Final = 0.1
"""Noise this near to a call counts as well: the control may have measured it a little earlier or later."""
_LOGGED: Final = (
    (re.compile(r"\brefused_frame\b"), FRAMES),
    (re.compile(r"\blink_lost:"), LINKS),
    (re.compile(r"\b(node_failed|command_failed)\b|^Traceback "), LOGGED),
)
_ELECTION: Final = re.compile(r"\belection:")
_TIME: Final = re.compile(r"^\d{4}-\S+ \S+ ")
_NUMBER: Final = re.compile(r"\b[0-9a-f]*[0-9][0-9a-f]*\b")
"""Decimal and hexadecimal numbers, by which alone findings of one kind differ."""


class Verdict:
    """Findings by rule. facts: further lines of the table, by name."""

    def __init__(self) -> None:
        self.findings: dict[str, list[str]] = {rule: [] for rule in RULES}
        self.facts: dict[str, str] = {}

    @property
    def is_clean(self) -> bool:
        return not any(self.findings.values())

    def note(self, rule: str, evidence: str) -> None:
        self.findings[rule].append(evidence)

    def read_log(self, member: str, text: str) -> int:
        """Note what a member logged; return how many elections it began."""
        lines, elections = text.splitlines(), 0
        for at, line in enumerate(lines):
            elections += _ELECTION.search(line) is not None
            for pattern, rule in _LOGGED:
                if pattern.search(line):
                    end = next((each for each in lines[at + 1 :] if not each.startswith((" ", "Traceback"))), "")
                    self.note(rule, f"{member}: {_TIME.sub('', line)} {end if rule == LOGGED else ''}")
        return elections

    def judge_bystander(self, slow: Iterable[Slow], noise: list[tuple[float, float]], slow_ms: float = SLOW_MS) -> None:
        """Note the calls that took longer than the noise explains. noise: when it began, and its seconds."""
        for call in slow:
            beyond_ms = 1_000 * (call.took_s - noise_in(call, noise))
            if beyond_ms > slow_ms:
                took_ms = 1_000 * call.took_s
                self.note(
                    SLOW, f"{call.action} at {call.member}: {took_ms:.0f} ms, {beyond_ms:.0f} ms beyond the noise"
                )

    def table(self) -> str:
        """Return one line for each rule, the first findings under it, and the facts."""
        lines = [f"{'rule':<44}{'found':>7}  verdict"]
        for rule, found in self.findings.items():
            lines.append(f"{rule:<44}{len(found):>7}  {'FAILED' if found else 'ok'}")
            kinds = Counter(_NUMBER.sub("#", each) for each in found)
            firsts = {_NUMBER.sub("#", each): each for each in reversed(found)}
            for kind, count in kinds.most_common(SHOWN):
                lines.append(f"    {count} x {firsts[kind][:EVIDENCE_CHARS]}")
        lines += [f"{name}: {fact}" for name, fact in self.facts.items()]
        return "\n".join(lines)


def noise_in(call: Slow, noise: list[tuple[float, float]]) -> float:
    """Return for how many seconds the machine kept the control waiting while the call was under way."""
    first_s, last_s = call.began_s - AROUND_S, call.began_s + call.took_s + AROUND_S
    return sum(each_s for began_s, each_s in noise if began_s <= last_s and began_s + each_s + AROUND_S / 2 >= first_s)


def noise_of(text: str) -> list[tuple[float, float]]:
    """Read what the control printed; its last line may be cut off."""
    lines = [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [(float(began_s), float(noise_s)) for began_s, noise_s in lines]
