"""What goes wrong, as data: a seed makes a list of faults by swarm testing, and a run only reads it.

So a failing run can be replayed, and shrunk by leaving faults out. Faults that
aim ("crash the master") name a role here and find their member when they strike,
which is deterministic for a given list.

Swarm testing: each kind is on or off for the whole of a seed, so that seeds
differ in character (Groce et al. 2012); a mix of everything always looks alike.
"""

from random import Random

from msgspec import Struct

LOAD_FROM_MS = 4_000  # the first master is elected and the queues exist
HEAL_MS = 46_000
DURATION_MS = 60_000


class Fault(Struct, frozen=True, omit_defaults=True):
    """One fault from ``at_ms`` to ``until_ms`` on the member number ``member`` (-1: finds its own).

    peer: the other end of a cut; amount: of a clock jump in ms, or 1 where a crash is a reboot.
    """

    at_ms: int
    until_ms: int
    kind: str
    member: int = -1
    peer: int = -1
    amount: int = 0


class Scenario(Struct, frozen=True):
    """All that decides a run."""

    seed: int
    members: int
    duration_ms: int
    heal_ms: int
    swarm: tuple[str, ...]
    faults: tuple[Fault, ...]
    wall_skew_ms: tuple[int, ...]
    loss_share: float = 0.0
    duplicate_share: float = 0.0
    straggler_share: float = 0.0


CRASH_KINDS = ("crash", "crash_all", "restart", "crash_master", "crash_next_voter", "crash_appending_master")
NETWORK_KINDS = (
    "cut",
    "cut_one_way",
    "isolate",
    "isolate_master",
    "cut_master_from_majority",
    "isolate_appending_master",
)
OTHER_KINDS = ("pause", "pause_master", "loss_burst", "slow_disk", "clock_jump")
KINDS = (*CRASH_KINDS, *NETWORK_KINDS, *OTHER_KINDS)
KINDS_ALONE = ("crash", "crash_all", "restart", "crash_appending_master", "pause", "slow_disk")
"""For a cluster of one: nobody to be cut from, and no clock but its own."""
DEPOSING_KINDS = ("crash_master", "isolate_master", "cut_master_from_majority", "pause_master", "crash_all")
BACKGROUND = ("loss", "duplicates", "stragglers", "wild_clock")

_WALL_SKEW_MS = 500
_WILD_CLOCK_MS = (60_000, 6 * 3_600_000)
_SHORT_MS, _LONG_MS = (50, 1_500), (1_000, 7_000)
_LENGTHS_MS = {
    "restart": _SHORT_MS,
    "crash_next_voter": _SHORT_MS,
    "loss_burst": (500, 3_000),
    "pause": (300, 4_000),
    "pause_master": (800, 4_000),
    "crash_all": (100, 3_000),
}


def scenario(
    seed: int,
    members: int,
    *,
    kinds: tuple[str, ...] = (),
    background: tuple[str, ...] | None = None,
    count: int = 0,
    duration_ms: int = DURATION_MS,
) -> Scenario:
    """The scenario of ``seed``; ``kinds``, ``background`` and ``count`` replace what the swarm would draw."""
    random = Random(f"{seed}/faults")
    heal_ms = duration_ms * HEAL_MS // DURATION_MS
    chosen = kinds or _swarm(random, KINDS if members > 1 else KINDS_ALONE)
    around = tuple(kind for kind in BACKGROUND if random.random() < 0.5) if background is None else background
    if members == 1:
        around = tuple(kind for kind in around if kind != "wild_clock")
    amount = count or random.randint(9, 16)
    faults = [_fault(random, random.choice(chosen), members, heal_ms) for _ in range(amount)]
    if not kinds and members > 1:
        faults += [_fault(random, random.choice(DEPOSING_KINDS), members, heal_ms) for _ in range(random.randint(0, 2))]
    return Scenario(
        seed=seed,
        members=members,
        duration_ms=duration_ms,
        heal_ms=heal_ms,
        swarm=chosen + around,
        faults=tuple(sorted(faults, key=lambda fault: fault.at_ms)),
        wall_skew_ms=_skews(random, members, "wild_clock" in around),
        loss_share=random.choice((0.005, 0.02, 0.05)) if "loss" in around else 0.0,
        duplicate_share=random.choice((0.01, 0.1)) if "duplicates" in around else 0.0,
        straggler_share=random.choice((0.005, 0.03)) if "stragglers" in around else 0.0,
    )


def _swarm(random: Random, kinds: tuple[str, ...]) -> tuple[str, ...]:
    chosen = tuple(kind for kind in kinds if random.random() < 0.4)
    return chosen or (random.choice(kinds),)


def _skews(random: Random, members: int, has_wild_clock: bool) -> tuple[int, ...]:
    """Wall clocks within half a second, and perhaps one that is hours ahead: a minority, or nobody could tell."""
    skews = [random.randint(-_WALL_SKEW_MS, _WALL_SKEW_MS) for _ in range(members)]
    if has_wild_clock:
        skews[random.randrange(members)] = random.randint(*_WILD_CLOCK_MS)
    return tuple(skews)


def _fault(random: Random, kind: str, members: int, heal_ms: int) -> Fault:
    at_ms = random.randint(LOAD_FROM_MS, heal_ms - 1_000)
    until_ms = min(heal_ms, at_ms + random.randint(*_LENGTHS_MS.get(kind, _LONG_MS)))
    member = random.randrange(members)
    peer = (member + random.randint(1, members - 1)) % members if members > 1 else -1
    amount = random.randint(-_WALL_SKEW_MS, _WALL_SKEW_MS) if kind == "clock_jump" else random.randint(0, 1)
    return Fault(at_ms, until_ms, kind, member, peer, amount)
