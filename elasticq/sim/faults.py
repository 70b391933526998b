"""The faults of a run as data, drawn from a seed by swarm testing.

A run only reads this list. So a failing run can be replayed, and shrunk by removing faults. A fault such as "crash the
master" names a role. Its member is chosen when the fault strikes; this is deterministic for a given list.

In swarm testing each kind of fault is on or off for a whole seed (Groce et al. 2012). So seeds differ strongly, while
runs with all kinds of faults would all be similar.
"""

from random import Random

from msgspec import Struct
from msgspec.structs import replace

from elasticq.node.settings import Mode
from elasticq.sim.phases import possible
from elasticq.sim.queues import FEATURES, GROUPS, PARTITIONS, PRIORITIES, SCHEDULES, SHARES, TOPICS

LOAD_FROM_MS = 4_000  # by this time the first master is elected and the queues exist
HEAL_MS = 46_000
DURATION_MS = 60_000


class Fault(Struct, frozen=True, omit_defaults=True):
    """One fault from ``at_ms`` to ``until_ms``.

    member: the number of the member or proxy, -1 if the fault chooses its own. peer: the member at the other end of a
    cut. amount: the milliseconds of a clock jump or an advance; 1 for a crash that reboots the machine.
    phase: the phase that the fault waits for, from ``at_ms`` on and for at most PHASE_PATIENCE_MS. Waiting does not
    change its duration.
    """

    at_ms: int
    until_ms: int
    kind: str
    member: int = -1
    peer: int = -1
    amount: int = 0
    phase: str = ""


class Bounds(Struct, frozen=True, omit_defaults=True):
    """The bounds of the members: memory for contents, entries in flight to a follower, bytes of an entry.

    is_relaxed: the members allow what the limits of SQS forbid (RELAXED instead of STRICT).
    """

    memory_bytes: int = 8_192  # so small that contents leave memory and must be fetched
    in_flight_entries: int = 64  # so small that the master does not keep its log for a member that is down
    batch_bytes: int = 1_048_576
    is_relaxed: bool = False


USUAL = Bounds()


class Scenario(Struct, frozen=True):
    """All parameters of a run. Two runs of equal scenarios are equal.

    - is_founded_by_meeting: members know their number and find each other; otherwise each gets a list of the voters.
    - volatile: the numbers of the memory-only members. spares: how many members may join later.
    - features: what clients use in addition to two standard queues, see queues.py.
    - hold_ms, broken_link_ms: as in NodeSettings.
    - nameless_share: the share of calls without an invocation id. Their clients wait longer and do not retry.
    - lost_reply_share: the share of replies that clients do not get. They repeat the call.
    - proxies: the number of proxies. Clients also call these.
    """

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
    is_founded_by_meeting: bool = False
    mode: Mode = "majority"
    volatile: tuple[int, ...] = ()
    spares: int = 0
    log_kept_bytes: int = 32 * 1_048_576
    features: tuple[str, ...] = ()
    bounds: Bounds = USUAL
    hold_ms: int = 0
    broken_link_ms: int = 700
    nameless_share: float = 0.0
    lost_reply_share: float = 0.0
    proxies: int = 0


CRASH_KINDS = ("crash", "crash_all", "restart", "crash_master", "crash_next_voter", "crash_appending_master")
NETWORK_KINDS = (
    "cut",
    "cut_one_way",
    "isolate",
    "isolate_master",
    "cut_master_from_majority",
    "isolate_appending_master",
    "flap",
    "bridge",
)
MEMBER_KINDS = ("join", "leave", "wipe", "stop", "transfer")
OTHER_KINDS = ("pause", "pause_master", "loss_burst", "slow_disk", "clock_jump", "advance")
KINDS = (*CRASH_KINDS, *NETWORK_KINDS, *OTHER_KINDS, *MEMBER_KINDS)
PROXY_KINDS = ("crash_proxy", "stop_proxy", "pause_proxy", "cut_proxy")
"""The kinds of fault of the proxy number ``member``. A cut is between it and the member ``peer``, or all members."""
KINDS_ALONE = ("crash", "crash_all", "restart", "crash_appending_master", "pause", "slow_disk", "advance")
"""The kinds of fault in a cluster of one member. It has no links and no second clock."""
EARLY_KINDS = ("crash", "restart", "cut", "isolate", "loss_burst")
"""The kinds of fault that may strike while the cluster is founded."""
DEPOSING_KINDS = ("crash_master", "isolate_master", "cut_master_from_majority", "pause_master", "crash_all")
BACKGROUND = ("loss", "duplicates", "stragglers", "wild_clock")

_WALL_SKEW_MS = 500
_ADVANCE_MS = (200, 15_000)
_WILD_CLOCK_MS = (60_000, 6 * 3_600_000)
_SHORT_MS, _LONG_MS = (50, 1_500), (1_000, 7_000)
_LENGTHS_MS = {
    "restart": _SHORT_MS,
    "crash_next_voter": _SHORT_MS,
    "loss_burst": (500, 3_000),
    "pause": (300, 4_000),
    "pause_master": (800, 4_000),
    "crash_all": (100, 3_000),
    "flap": (2_000, 8_000),
    "wipe": _SHORT_MS,
    "stop": _SHORT_MS,
    "crash_proxy": _SHORT_MS,
    "stop_proxy": _SHORT_MS,
    "pause_proxy": (300, 4_000),
}
_AMOUNTS = {"clock_jump": (-_WALL_SKEW_MS, _WALL_SKEW_MS), "advance": _ADVANCE_MS}
_SPARES_MAX = 2
_LOG_KEPT_BYTES = (4_096, 16_384)
PHASE_PATIENCE_MS = 8_000
_PHASE_SHARE = 0.35  # share of faults that wait for a phase
_FOCUS_SHARE = 0.3  # share of scenarios that use the faults and features that led to the rarest findings
_FOCUS_KINDS = ("wipe", "transfer", "advance", "clock_jump")
_FOCUS_FEATURES = ("leases", "fifo", "dead_letters", "move_tasks")
_SHARES = {TOPICS: 0.2, PRIORITIES: 0.25, SHARES: 0.2, SCHEDULES: 0.2, GROUPS: 0.2, PARTITIONS: 0.3}
"""The shares of scenarios with these features. Each has its own stream, so it does not change the others of a seed."""
_MEMORY_BYTES = (0, 1_024, 65_536, 64 * 1_048_576)
_IN_FLIGHT_ENTRIES = (1, 8, 4_096)
_BATCH_BYTES = (1, 512, 1_048_576)
_HOLD_MS = (0, 1_000, 25_000, 25_000)
_BROKEN_LINK_MS = (180, 180, 180, 700)
_NAMELESS_SHARES = (0.0, 0.0, 0.2, 0.6)
_LOST_REPLY_SHARES = (0.0, 0.0, 0.05, 0.3)
_EARLY_FROM_MS = 100
_PROXIES = (0, 0, 0, 0, 1, 2)
_PROXY_FAULTS = (2, 5)


def scenario(
    seed: int,
    members: int,
    *,
    kinds: tuple[str, ...] = (),
    background: tuple[str, ...] | None = None,
    count: int = 0,
    duration_ms: int = DURATION_MS,
    mode: Mode | None = None,
    volatile: tuple[int, ...] | None = None,
    features: tuple[str, ...] | None = None,
    proxies: int | None = None,
    is_mixed: bool = False,
) -> Scenario:
    """Return the scenario of ``seed``. Arguments other than the defaults replace what the seed would draw.

    is_mixed: draw the members' bounds, too, instead of using the usual ones.
    """
    random = Random(f"{seed}/faults")
    focus = Random(f"{seed}/focus")
    is_focused = not kinds and focus.random() < _FOCUS_SHARE
    heal_ms = duration_ms * HEAL_MS // DURATION_MS
    chosen = kinds or _swarm(random, KINDS if members > 1 else KINDS_ALONE)
    if is_focused:
        chosen = tuple(dict.fromkeys((*chosen, *(each for each in _FOCUS_KINDS if members > 1 or each in KINDS_ALONE))))
    around = tuple(kind for kind in BACKGROUND if random.random() < 0.5) if background is None else background
    if is_focused and background is None:
        around = tuple(dict.fromkeys((*around, "wild_clock")))
    if members == 1:
        around = tuple(kind for kind in around if kind != "wild_clock")
    amount = count or random.randint(9, 16)
    faults = [_fault(random, random.choice(chosen), members, heal_ms) for _ in range(amount)]
    if not kinds and members > 1:
        faults += [_fault(random, random.choice(DEPOSING_KINDS), members, heal_ms) for _ in range(random.randint(0, 2))]
    cluster = Random(f"{seed}/cluster")
    is_met = members > 1 and cluster.random() < 0.8
    if is_met and not kinds and cluster.random() < 0.3:
        faults += [_early(cluster, members) for _ in range(cluster.randint(1, 3))]
    drawn_mode = _mode(cluster, members)
    drawn_volatile = _volatile(cluster, members)
    joins = sum(fault.kind == "join" for fault in faults)
    if features is None:
        features = _features(Random(f"{seed}/features"))
        if is_focused:
            features = tuple(each for each in FEATURES if each in features or each in _FOCUS_FEATURES)
        features += tuple(name for name, share in _SHARES.items() if Random(f"{seed}/{name}").random() < share)
        if PARTITIONS in features and not {"fifo", "all_fifo"}.intersection(features):
            features = tuple(each for each in features if each != PARTITIONS)
    if not kinds:
        faults = _waiting(focus, faults, possible(features, members))
    beside = Random(f"{seed}/proxies")
    if proxies is None:
        proxies = beside.choice(_PROXIES) if members > 1 and not kinds else 0
    if proxies:
        faults += [_of_proxy(beside, proxies, members, heal_ms) for _ in range(beside.randint(*_PROXY_FAULTS))]
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
        is_founded_by_meeting=is_met,
        mode=drawn_mode if mode is None else mode,
        volatile=drawn_volatile if volatile is None else volatile,
        spares=min(joins, _SPARES_MAX),
        log_kept_bytes=cluster.randint(*_LOG_KEPT_BYTES),
        features=features,
        bounds=_bounds(focus) if is_mixed else USUAL,
        hold_ms=Random(f"{seed}/hold").choice(_HOLD_MS) if members > 1 else 0,
        broken_link_ms=Random(f"{seed}/links").choice(_BROKEN_LINK_MS),
        nameless_share=Random(f"{seed}/nameless").choice(_NAMELESS_SHARES) if members > 1 else 0.0,
        lost_reply_share=Random(f"{seed}/replies").choice(_LOST_REPLY_SHARES),
        proxies=proxies,
    )


def _waiting(random: Random, faults: list[Fault], phases: tuple[str, ...]) -> list[Fault]:
    """Return the faults, and let a random share of them wait for a phase."""
    return [
        replace(fault, phase=random.choice(phases))
        if fault.at_ms >= LOAD_FROM_MS and random.random() < _PHASE_SHARE
        else fault
        for fault in faults
    ]


def _bounds(random: Random) -> Bounds:
    return Bounds(
        memory_bytes=random.choice(_MEMORY_BYTES),
        in_flight_entries=random.choice(_IN_FLIGHT_ENTRIES),
        batch_bytes=random.choice(_BATCH_BYTES),
        is_relaxed=random.random() < 0.5,
    )


def _features(random: Random) -> tuple[str, ...]:
    return tuple(feature for feature in FEATURES if random.random() < 0.4)


def _mode(random: Random, members: int) -> Mode:
    if members == 1 or random.random() < 0.6:
        return "majority"
    chosen: Mode = random.choice(("async", "one", "all"))
    return chosen


def _volatile(random: Random, members: int) -> tuple[int, ...]:
    """Return the numbers of the memory-only members: at most one, because it loses its data in each crash."""
    return (random.randrange(members),) if members > 1 and random.random() < 0.2 else ()


def _early(random: Random, members: int) -> Fault:
    at_ms = random.randint(_EARLY_FROM_MS, LOAD_FROM_MS - 1_000)
    member = random.randrange(members)
    peer = (member + random.randint(1, members - 1)) % members
    return Fault(at_ms, random.randint(at_ms + 50, LOAD_FROM_MS), random.choice(EARLY_KINDS), member, peer, 0)


def _of_proxy(random: Random, proxies: int, members: int, heal_ms: int) -> Fault:
    """Return a fault of a proxy. Half of the cuts separate it from all members."""
    fault = _fault(random, random.choice(PROXY_KINDS), proxies, heal_ms)
    return replace(fault, peer=random.randrange(members) if random.random() < 0.5 else -1)


def _swarm(random: Random, kinds: tuple[str, ...]) -> tuple[str, ...]:
    chosen = tuple(kind for kind in kinds if random.random() < 0.4)
    return chosen or (random.choice(kinds),)


def _skews(random: Random, members: int, has_wild_clock: bool) -> tuple[int, ...]:
    """Return by how many milliseconds each wall clock is wrong: up to half a second, and at most one by hours.

    Two clocks wrong by hours could be the majority.
    """
    skews = [random.randint(-_WALL_SKEW_MS, _WALL_SKEW_MS) for _ in range(members)]
    if has_wild_clock:
        skews[random.randrange(members)] = random.randint(*_WILD_CLOCK_MS)
    return tuple(skews)


def _fault(random: Random, kind: str, members: int, heal_ms: int) -> Fault:
    at_ms = random.randint(LOAD_FROM_MS, heal_ms - 1_000)
    until_ms = min(heal_ms, at_ms + random.randint(*_LENGTHS_MS.get(kind, _LONG_MS)))
    member = random.randrange(members)
    peer = (member + random.randint(1, members - 1)) % members if members > 1 else -1
    amount = random.randint(*_AMOUNTS.get(kind, (0, 1)))
    return Fault(at_ms, until_ms, kind, member, peer, amount)
