"""One thing that needs an operator's attention, and the order of several."""

from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

Severity = Literal["critical", "warning", "note"]
CRITICAL: Final = "critical"
WARNING: Final = "warning"
NOTE: Final = "note"
_RANKS: Final = {CRITICAL: 0, WARNING: 1, NOTE: 2}
FINDINGS_MAX: Final = 50
"""The number of findings that are shown and sent to other members: the gravest ones."""
CLUSTER_PAGE: Final = "/cluster"
EVENTS_PAGE: Final = "/events"


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A finding.

    kind: a word for programs, such as ``dead_letters``. what: a sentence that names the thing and its state.
    cause: why it is so, as far as the server can know. since_ms: wall clock or cluster time, in ms since the epoch.
    link: the path of the page that shows the cause. command: what fixes it, or shows more; empty if nothing does.
    owner, queue, group: of the queue (model/names.py) and message group, if it is about one.
    member: the name of the member, if it is about one.
    """

    kind: str
    severity: Severity
    what: str
    cause: str
    since_ms: int
    link: str = ""
    command: str = ""
    owner: str = ""
    queue: str = ""
    group: str = ""
    member: str = ""


def gravest(findings: Iterable[Finding]) -> list[Finding]:
    """Return at most FINDINGS_MAX findings, the gravest first, and among these the newest first."""
    return sorted(findings, key=_order)[:FINDINGS_MAX]


def _order(finding: Finding) -> tuple[int, int, str, str]:
    return _RANKS[finding.severity], -finding.since_ms, finding.kind, finding.queue + finding.member
