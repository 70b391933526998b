"""The phases in which a cluster can be when a fault strikes, and how often each kind of fault has met each.

Some faults wait for a phase (``Fault.phase``), as they would meet the short ones by chance only: an election, or
a takeover that is not committed yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

ELECTION = "election"  # nobody is master
TAKEOVER = "takeover"  # the newest master's Takeover is not committed
SNAPSHOT = "snapshot"  # somebody takes one
LEASE_OPEN, LEASE_SEALED = "lease_open", "lease_sealed"  # there is one that lives
MOVING = "moving"  # a move task is on its way
HAND_OVER = "hand_over"  # a master waits for its transfer target
TWO_AT_ONCE = "two_at_once"  # another fault has not ended
PHASES = (ELECTION, TAKEOVER, SNAPSHOT, LEASE_OPEN, LEASE_SEALED, MOVING, HAND_OVER, TWO_AT_ONCE)
ALONE = (LEASE_OPEN, LEASE_SEALED, MOVING, TWO_AT_ONCE)  # those that a cluster of one has for long enough

Met = Counter[tuple[str, str]]
"""Maps (kind of fault, phase) to how often they met."""


def possible(features: Iterable[str], members: int) -> tuple[str, ...]:
    """Return the phases that a scenario with these features and members can have."""
    has = set(features)
    lacking = set() if "leases" in has else {LEASE_OPEN, LEASE_SEALED}
    if not {"dead_letters", "move_tasks"} <= has:
        lacking.add(MOVING)
    return tuple(phase for phase in (PHASES if members > 1 else ALONE) if phase not in lacking)


def table(met: Met, kinds: Iterable[str]) -> str:
    """Return a table with a line for each kind and a column for each phase."""
    width = max(map(len, kinds))
    lines = [" " * width + "".join(f"{phase:>14}" for phase in PHASES)]
    lines += [f"{kind:<{width}}" + "".join(f"{met[kind, phase]:>14}" for phase in PHASES) for kind in kinds]
    return "\n".join(lines)
