"""In which phases the cluster is when a fault strikes, and how often each kind of fault has met each.

Some faults wait for a phase (``Fault.phase``): the short ones, an election or a takeover that is not
committed yet, would else be met by chance only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elasticq.sim.world import World

ELECTION = "election"  # nobody is master
TAKEOVER = "takeover"  # the newest master's Takeover is not committed
SNAPSHOT = "snapshot"  # somebody takes one
LEASE_OPEN, LEASE_SEALED = "lease_open", "lease_sealed"  # there is one that lives
MOVING = "moving"  # a move task is on its way
HAND_OVER = "hand_over"  # a master waits for its heir
TWO_AT_ONCE = "two_at_once"  # another fault has not ended
PHASES = (ELECTION, TAKEOVER, SNAPSHOT, LEASE_OPEN, LEASE_SEALED, MOVING, HAND_OVER, TWO_AT_ONCE)
ALONE = (LEASE_OPEN, LEASE_SEALED, MOVING, TWO_AT_ONCE)  # those that a cluster of one has for long enough

Met = Counter[tuple[str, str]]
"""(kind of fault, phase) -> how often."""


def phases_of(world: World) -> set[str]:
    """All that are on now, but ``TWO_AT_ONCE``, which only the injector knows."""
    found = set()
    master = world.master
    if master is None or master.node is None:
        found.add(ELECTION)
    else:
        node = master.node
        if not node.serving:
            found.add(TAKEOVER)
        if node.leadership.hands_over_until_ms:
            found.add(HAND_OVER)
        if node.state.moving:
            found.add(MOVING)
        for lease in node.state.leases.living.values():
            found.add(LEASE_SEALED if lease.is_sealed else LEASE_OPEN)
    if any(member.transfer is not None for member in world.members):
        found.add(SNAPSHOT)
    return found


def possible(features: Iterable[str], members: int) -> tuple[str, ...]:
    """The phases that a scenario with these features and members can have."""
    has = set(features)
    lacking = set() if "leases" in has else {LEASE_OPEN, LEASE_SEALED}
    if not {"dead_letters", "move_tasks"} <= has:
        lacking.add(MOVING)
    return tuple(phase for phase in (PHASES if members > 1 else ALONE) if phase not in lacking)


def table(met: Met, kinds: Iterable[str]) -> str:
    """A line for each kind, a column for each phase."""
    width = max(map(len, kinds))
    lines = [" " * width + "".join(f"{phase:>14}" for phase in PHASES)]
    lines += [f"{kind:<{width}}" + "".join(f"{met[kind, phase]:>14}" for phase in PHASES) for kind in kinds]
    return "\n".join(lines)
