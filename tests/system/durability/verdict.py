"""What the checker found in what clients saw; the harnesses for one server and for clusters add what they did."""

from pathlib import Path

from msgspec import Struct

from elasticq.checks.history import Event, dump_lines
from elasticq.checks.queue import DUPLICATED, EARLY, LOST, RESURRECTED, UNEXPECTED, Finding

NAMES = (LOST, DUPLICATED, RESURRECTED, EARLY, UNEXPECTED)


class Judged(Struct, kw_only=True):
    """``acknowledged``: operations."""

    seed: int
    acknowledged: int
    findings: list[Finding]
    history: list[Event]

    def count(self, name: str) -> int:
        return sum(finding.name == name for finding in self.findings)

    def found(self) -> str:
        return ", ".join(f"{name} {self.count(name)}" for name in NAMES)

    def evidence(self) -> str:
        return "\n".join(f"{finding.name}: {finding.evidence}" for finding in self.findings[:20])

    def keep(self, file: Path) -> None:
        file.write_bytes(dump_lines(self.history))
