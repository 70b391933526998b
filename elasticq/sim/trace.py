"""Records what happens in a run, as a hash that two equal runs share, and what its judges find."""

from hashlib import blake2b

from elasticq.checks.queue_history import Finding
from elasticq.sim.scheduler import Scheduler

FINDINGS_MAX = 10


class Trace:
    """The record of a run.

    lines: every event in words, if ``keeps_lines``; findings: the first rules that were found broken.
    """

    def __init__(self, scheduler: Scheduler, *, keeps_lines: bool = False) -> None:
        self.scheduler = scheduler
        self.lines: list[str] = []
        self.findings: list[Finding] = []
        self._keeps_lines = keeps_lines
        self._hash = blake2b(digest_size=16)

    @property
    def hash(self) -> str:
        """The hash of everything so far."""
        return self._hash.hexdigest()

    def note(self, kind: str, who: str, what: object) -> None:
        """Record that something happens now."""
        line = f"{self.scheduler.now_us} {kind} {who} {what}"
        self._hash.update(line.encode())
        if self._keeps_lines:
            self.lines.append(line)

    def frame(self, sender: str, to: str, size_bytes: int) -> None:
        """Record that a frame arrives now."""
        self._hash.update(b"%d %s %s %d" % (self.scheduler.now_us, sender.encode(), to.encode(), size_bytes))

    def found(self, name: str, evidence: str) -> None:
        """Record that a rule is broken, and stop the run: what follows a broken rule proves nothing."""
        self.note("found", name, evidence)
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(Finding(name, evidence, self.scheduler.now_us))
        self.scheduler.stop()
