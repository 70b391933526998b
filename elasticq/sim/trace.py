"""The trace of a run: a hash of all events, equal for equal runs, and the findings of the checks."""

from hashlib import blake2b

from elasticq.checks.queue_history import Finding
from elasticq.sim.scheduler import Scheduler

FINDINGS_MAX = 10


class Trace:
    """The trace of a run.

    lines: a line for each event, except frames, if ``keeps_lines``. findings: the first FINDINGS_MAX broken rules.
    """

    def __init__(self, scheduler: Scheduler, *, keeps_lines: bool = False) -> None:
        self.scheduler = scheduler
        self.lines: list[str] = []
        self.findings: list[Finding] = []
        self._keeps_lines = keeps_lines
        self._hash = blake2b(digest_size=16)

    @property
    def hash(self) -> str:
        """Return the hash of all events so far."""
        return self._hash.hexdigest()

    def note(self, kind: str, who: str, what: object) -> None:
        """Record an event at the current time."""
        line = f"{self.scheduler.now_us} {kind} {who} {what}"
        self._hash.update(line.encode())
        if self._keeps_lines:
            self.lines.append(line)

    def frame(self, sender: str, to: str, size_bytes: int) -> None:
        """Record the arrival of a frame at the current time."""
        self._hash.update(b"%d %s %s %d" % (self.scheduler.now_us, sender.encode(), to.encode(), size_bytes))

    def found(self, name: str, evidence: str) -> None:
        """Record a broken rule and stop the run, because later findings would prove nothing."""
        self.note("found", name, evidence)
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(Finding(name, evidence, self.scheduler.now_us))
        self.scheduler.stop()
