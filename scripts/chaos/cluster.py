"""Random faults in clusters of real processes under load, and what clients saw; status 1 for any finding.

A seed fixes the faults and the choices of the clients, but not their interleaving. Each round starts a fresh cluster
and some faults. Then everything heals, the queues are drained, the clients' histories are checked, and the members'
rows are compared. After a finding the program keeps all histories and the members' logs, and prints their path.

With --clocks each member has clocks of its own: the boot-time clock runs fast or slow, the wall clock is hours off
and jumps. Then a majority is never killed at once: the members would go by their wall clocks, as documented.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random, SystemRandom

from msgspec import Struct, field

from tests.system.cluster.clocked import Skew
from tests.system.cluster.cluster import Cluster, let_pass
from tests.system.cluster.load import Load, Verdict
from tests.system.durability.chaos import now_us
from tests.system.durability.verdict import NAMES

FAULTS_A_ROUND = 8  # few, so a finding is close to its cause
FAULT_S = (0.5, 6.0)
VISIBILITY_S = (1, 6)
HOUR_MS = 3_600_000
WALL_AHEAD_MS = (-5 * HOUR_MS, 5 * HOUR_MS)
BOOT_AHEAD_MS = (0, 1_000 * HOUR_MS)  # machines were booted at different times
DRIFT_PPM = (-500, 500)  # quartz is off by a tenth of that
BETWEEN = (50, 200)  # acknowledged writes between two faults


class Round(Struct):
    """One cluster and what happened to it. ``gaps_ms``: by fault, the longest times without an acknowledged write."""

    seed: int
    count: int
    memory: bool
    gaps_ms: dict[str, list[float]] = field(default_factory=dict)
    verdict: Verdict | None = None
    failure: str = ""

    def is_clean(self) -> bool:
        return not self.failure and self.verdict is not None and not self.verdict.findings


class Breaker:
    """The faults by name. After each fault the cluster is healed and all members run."""

    def __init__(self, cluster: Cluster, random: Random) -> None:
        self.cluster = cluster
        self.random = random
        names = ("kill_master", "kill_follower", "kill_minority", "stop_master", "pause_master", "pause_follower")
        names += ("isolate_master", "isolate_follower", "split", "deaf", "mute", "unmet", "swallow", "slow", "flap")
        if cluster.skews:
            names += ("jump_wall",)
        elif not cluster.memory:  # a majority in memory only would lose everything
            names += ("kill_all", "kill_majority")
        self.faults: dict[str, Callable[[], None]] = {name: getattr(self, name) for name in names}

    def last(self) -> None:
        let_pass(self.random.uniform(*FAULT_S))

    def follower(self) -> str:
        return self.random.choice(self.cluster.followers())

    def kill(self, names: list[str]) -> None:
        for name in names:
            self.cluster.kill9(name)
        self.last()
        self.random.shuffle(names)
        for name in names:
            self.cluster.restart(name)

    def kill_master(self) -> None:
        self.kill([self.cluster.master()])

    def kill_follower(self) -> None:
        self.kill([self.follower()])

    def kill_minority(self) -> None:
        self.kill(self.random.sample(self.cluster.names(), (len(self.cluster.names()) - 1) // 2))

    def kill_majority(self) -> None:
        self.kill(self.random.sample(self.cluster.names(), len(self.cluster.names()) // 2 + 1))

    def kill_all(self) -> None:
        self.kill(self.cluster.names())

    def jump_wall(self) -> None:
        """Move a member's wall clock while it runs, then kill and restart it."""
        name = self.random.choice(self.cluster.names())
        self.cluster.turn(name, wall_ahead_ms=self.random.randint(*WALL_AHEAD_MS))
        self.last()
        self.kill([name])

    def stop_master(self) -> None:
        name = self.cluster.master()
        assert self.cluster.stop(name) == 0, self.cluster[name].said()
        self.last()
        self.cluster.restart(name)

    def pause(self, name: str) -> None:
        self.cluster.pause(name)
        self.last()
        self.cluster.resume(name)

    def pause_master(self) -> None:
        self.pause(self.cluster.master())

    def pause_follower(self) -> None:
        self.pause(self.follower())

    def isolate(self, name: str) -> None:
        self.cluster.isolate(name)
        self.last()
        self.cluster.heal()

    def isolate_master(self) -> None:
        self.isolate(self.cluster.master())

    def isolate_follower(self) -> None:
        self.isolate(self.follower())

    def split(self) -> None:
        names = self.cluster.names()
        self.random.shuffle(names)
        cuts = sorted(self.random.sample(range(1, len(names)), self.random.randint(1, 2)))
        self.cluster.partition(*(names[a:b] for a, b in zip([0, *cuts], [*cuts, len(names)], strict=True)))
        self.last()
        self.cluster.heal()

    def half(self, *, deaf: bool) -> None:
        name = self.random.choice([self.cluster.master(), self.follower()])
        for other in self.cluster.names():
            if other != name:
                self.cluster.silence(*((other, name) if deaf else (name, other)))
        self.last()
        self.cluster.heal()

    def deaf(self) -> None:
        self.half(deaf=True)

    def mute(self) -> None:
        self.half(deaf=False)

    def unmet(self) -> None:
        """Cut the link between two members that both reach all others."""
        self.cluster.cut(*self.random.sample(self.cluster.names(), 2))
        self.last()
        self.cluster.heal()

    def swallow(self) -> None:
        one, other = self.random.sample(self.cluster.names(), 2)
        self.cluster.silence(one, other, "swallow")
        self.last()
        self.cluster.heal()

    def slow(self) -> None:
        delay_ms = self.random.uniform(5, 100)
        for name in self.cluster.names():
            self.cluster.slow(name, delay_ms=delay_ms, jitter_ms=delay_ms)
        self.last()
        self.cluster.heal()

    def flap(self) -> None:
        name = self.random.choice(self.cluster.names())
        for _ in range(3):
            self.cluster.isolate(name)
            let_pass(self.random.uniform(0.2, 2))
            self.cluster.heal()
            let_pass(self.random.uniform(0.2, 1))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=10, help="time after which no round begins (10)")
    parser.add_argument("--seed", type=int, help="seed of the first round (random)")
    parser.add_argument("--faults", type=int, default=FAULTS_A_ROUND, help="faults in a round (8)")
    parser.add_argument("--only", metavar="FAULT,...", help="only these faults")
    parser.add_argument("--clocks", action="store_true", help="clocks that are fast, slow, hours off, or jump")


def main(options: argparse.Namespace) -> int:
    only = options.only.split(",") if options.only else []
    seed = SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    end_s = time.monotonic() + options.minutes * 60
    rounds: list[Round] = []
    while not rounds or time.monotonic() < end_s:
        rounds.append(one_round(seed, options.faults, only, options.clocks))
        seed += 1
    return judge(rounds)


def one_round(seed: int, faults: int, only: list[str], clocks: bool) -> Round:
    random = Random(seed)
    count, memory = random.choice((3, 3, 5)), random.random() < 0.25
    skews = skewed(count, Random(f"clocks of {seed}")) if clocks else ()
    done = Round(seed=seed, count=count, memory=memory)
    directory = Path(tempfile.mkdtemp(prefix="elasticq-chaos-cluster-"))
    print(f"seed {seed}: {count} members, {'memory' if memory else 'disk'}", *skews, flush=True)
    cluster = Cluster(directory, count, memory=memory, skews=skews)
    try:
        cluster.start()
        with Load(cluster, seed=seed, visibility_s=VISIBILITY_S) as load:
            break_it(done, cluster, load, random, faults, only)
            done.verdict = load.judge()
        cluster.same_rows()
    except (AssertionError, OSError, TimeoutError) as failure:
        done.failure = str(failure) or repr(failure)
    finally:
        cluster.end()
    tell(done, directory)
    return done


def skewed(count: int, random: Random) -> tuple[Skew, ...]:
    """Return random clocks for so many members."""
    spans = DRIFT_PPM, BOOT_AHEAD_MS, WALL_AHEAD_MS
    return tuple(Skew(*(random.randint(*span) for span in spans)) for _ in range(count))


def break_it(done: Round, cluster: Cluster, load: Load, random: Random, faults: int, only: list[str]) -> None:
    breaker = Breaker(cluster, random)
    for _ in range(faults):
        load.wait_for(random.randint(*BETWEEN))
        name = random.choice([fault for fault in breaker.faults if not only or fault in only])
        began_us = now_us()
        breaker.faults[name]()
        cluster.wait_ready()
        load.wait_for(10)
        gap_ms = load.gap_ms(began_us)
        done.gaps_ms.setdefault(name, []).append(gap_ms)
        print(f"  {name}: {(now_us() - began_us) / 1e6:.1f} s, gap {gap_ms:.0f} ms, term {cluster.term()}", flush=True)


def tell(done: Round, directory: Path) -> None:
    if done.verdict is not None:
        print(f"  {done.verdict.line()}", flush=True)
    if done.is_clean():
        shutil.rmtree(directory)
        return
    if done.failure:
        print(f"  failed: {done.failure}", flush=True)
    if done.verdict is not None:
        done.verdict.keep(directory / "history.jsonl")
        print(done.verdict.evidence(), flush=True)
    print(f"  histories and logs are in {directory}", flush=True)


def judge(rounds: list[Round]) -> int:
    gaps: dict[str, list[float]] = {}
    for done in rounds:
        for name, some in done.gaps_ms.items():
            gaps.setdefault(name, []).extend(some)
    for name, some in sorted(gaps.items()):
        middle, longest = sorted(some)[len(some) // 2], max(some)
        print(f"{name}: {len(some)} times, gap median {middle:.0f} ms, longest {longest:.0f} ms")
    verdicts = [done.verdict for done in rounds if done.verdict is not None]
    found = ", ".join(f"{name} {sum(verdict.count(name) for verdict in verdicts)}" for name in NAMES)
    print(
        f"all: {len(rounds)} rounds, {sum(map(len, gaps.values()))} faults, "
        f"{sum(verdict.acknowledged for verdict in verdicts)} acknowledged operations; {found}; "
        f"{sum(bool(done.failure) for done in rounds)} rounds failed"
    )
    return int(not all(done.is_clean() for done in rounds))
