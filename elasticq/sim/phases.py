"""The phases of a cluster, and a table of how often each kind of fault met each phase.

Some faults wait for a phase (``Fault.phase``). Otherwise they would seldom meet the short phases, such as an election
or a takeover that is not committed yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

ELECTION = "election"  # there is no master
TAKEOVER = "takeover"  # the TookOver mutation of the newest master is not committed
SNAPSHOT = "snapshot"  # a member fetches or installs one
LEASE_OPEN, LEASE_SEALED = "lease_open", "lease_sealed"  # there is an unexpired lease in that state
MOVING = "moving"  # a move task is running
HAND_OVER = "hand_over"  # a master waits for its transfer target
TWO_AT_ONCE = "two_at_once"  # another fault has not ended
PHASES = (ELECTION, TAKEOVER, SNAPSHOT, LEASE_OPEN, LEASE_SEALED, MOVING, HAND_OVER, TWO_AT_ONCE)
ALONE = (LEASE_OPEN, LEASE_SEALED, MOVING, TWO_AT_ONCE)  # the phases that last long enough in a cluster of one member

Met = Counter[tuple[str, str]]
"""How often each kind of fault met each phase, by (kind, phase)."""


def possible(features: Iterable[str], members: int) -> tuple[str, ...]:
    """Return the phases that a scenario with these features and members can have."""
    has = set(features)
    lacking = set() if "leases" in has else {LEASE_OPEN, LEASE_SEALED}
    if not {"dead_letters", "move_tasks"} <= has:
        lacking.add(MOVING)
    return tuple(phase for phase in (PHASES if members > 1 else ALONE) if phase not in lacking)


def table(met: Met, kinds: Iterable[str]) -> str:
    """Return a text table with a line for each kind of fault and a column for each phase."""
    width = max(map(len, kinds))
    lines = [" " * width + "".join(f"{phase:>14}" for phase in PHASES)]
    lines += [f"{kind:<{width}}" + "".join(f"{met[kind, phase]:>14}" for phase in PHASES) for kind in kinds]
    return "\n".join(lines)
