"""The command ``elasticq sim``: run seeds, replay or shrink a scenario, count which phases the faults met."""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom

import msgspec
from msgspec import Struct, field

from elasticq.checks.history import dump_lines
from elasticq.sim.faults import KINDS, PROXY_KINDS, Scenario, scenario
from elasticq.sim.many import run_all
from elasticq.sim.phases import Met, table
from elasticq.sim.shrink import shrink
from elasticq.sim.world import Outcome, run


class Totals(Struct):
    """The totals over all seeds of one command."""

    seeds: int = 0
    operations: int = 0
    elections: int = 0
    faults: int = 0
    orders: int = 0
    snapshots: int = 0
    interrupted: int = 0
    simulated_ms: int = 0
    failed: int = 0
    met: Met = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.operations += outcome.operations
        self.elections += outcome.elections
        self.faults += outcome.faults
        self.orders += outcome.orders
        self.snapshots += outcome.transfers.installed
        self.interrupted += outcome.transfers.cut
        self.simulated_ms += outcome.simulated_ms
        self.failed += bool(outcome.findings)
        self.met.update(outcome.met)

    def line(self) -> str:
        return (
            f"{self.seeds} seeds, {self.operations} operations, {self.elections} elections, {self.faults} faults, "
            f"{self.orders} orders, {self.snapshots} snapshots installed ({self.interrupted} interruptions), "
            f"{self.simulated_ms / 1_000:.0f} simulated s, {self.failed} failed"
        )


def describe(outcome: Outcome) -> str:
    """Return a line for the seed and a line for each finding."""
    lines = [
        f"seed {outcome.seed} members {outcome.members}: {outcome.operations} operations, "
        f"{outcome.elections} elections, {outcome.faults} faults, {outcome.orders} orders, "
        f"{outcome.transfers.installed} snapshots, {outcome.simulated_ms / 1_000:.0f} s, "
        f"trace {outcome.trace_hash}"
    ]
    lines += [f"  {finding.name} at {finding.at_us} us: {finding.evidence}" for finding in outcome.findings]
    return "\n".join(lines)


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="elasticq sim", description="Simulate clusters under seeded faults.")
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds (20)")
    parser.add_argument(
        "--first", type=_first, default=1, help="the first seed (1), or 'random' for a random one, which is printed"
    )
    parser.add_argument("--seed", type=int, help="run only this seed")
    parser.add_argument("--members", type=int, choices=(1, 3, 5, 7), default=3)
    parser.add_argument(
        "--mixed", action="store_true", help="vary the members' bounds: memory, batches, windows, limits"
    )
    parser.add_argument(
        "--processes", type=int, default=1, help="number of seeds that run at the same time (1); 0: one per core"
    )
    parser.add_argument("--quiet", action="store_true", help="print only failing seeds and the totals")
    parser.add_argument("--coverage", action="store_true", help="print how often each kind of fault met each phase")
    parser.add_argument(
        "--failing", type=Path, metavar="FILE", help="append each failing scenario to FILE, as a line of JSON"
    )
    parser.add_argument("--trace", action="store_true", help="print every traced event")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run the scenario in FILE")
    parser.add_argument("--shrink", action="store_true", help="shrink each failing scenario and print it")
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="write the last scenario to FILE, shrunk with --shrink"
    )
    parser.add_argument("--history", type=Path, metavar="FILE", help="write the last history to FILE as JSON lines")
    return parser.parse_args(argv)


def _first(text: str) -> int:
    return SystemRandom().randrange(10**6, 10**12) if text == "random" else int(text)


def _scenarios(arguments: argparse.Namespace) -> list[Scenario]:
    if arguments.replay is not None:
        return [msgspec.json.decode(arguments.replay.read_bytes(), type=Scenario)]
    if arguments.seed is not None:
        return [scenario(arguments.seed, arguments.members, is_mixed=arguments.mixed)]
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    return [scenario(seed, arguments.members, is_mixed=arguments.mixed) for seed in seeds]


def _outcomes(scenarios: list[Scenario], arguments: argparse.Namespace) -> Iterator[Outcome]:
    """Yield the outcomes of the scenarios. If several processes run them, the outcomes have no history."""
    if arguments.processes == 1 or len(scenarios) == 1:
        return (run(chosen, keeps_trace=arguments.trace) for chosen in scenarios)
    return run_all(scenarios, arguments.processes)


def _show(chosen: Scenario, outcome: Outcome, arguments: argparse.Namespace) -> Scenario:
    if outcome.findings or not arguments.quiet:
        print(*outcome.trace, describe(outcome), sep="\n" if outcome.trace else "", flush=True)
    if outcome.findings and arguments.shrink:
        chosen = shrink(chosen, outcome.findings[0].name, lambda line: print(f"  {line}", flush=True))
    if outcome.findings:
        print(f"  scenario: {msgspec.json.encode(chosen).decode()}")
        if arguments.failing is not None:
            with arguments.failing.open("ab") as file:
                file.write(msgspec.json.encode(chosen) + b"\n")
    if arguments.save is not None:
        arguments.save.write_bytes(msgspec.json.encode(chosen))
    if arguments.history is not None:
        arguments.history.write_bytes(dump_lines(outcome.history))
    return chosen


def main(argv: list[str] | None = None) -> int:
    """Run the command. Return the exit status: 0 if no seed failed, else 1."""
    arguments = _arguments(sys.argv[1:] if argv is None else argv)
    totals, scenarios = Totals(), _scenarios(arguments)
    for chosen, outcome in zip(scenarios, _outcomes(scenarios, arguments), strict=True):
        totals.add(outcome)
        _show(chosen, outcome, arguments)
    if arguments.coverage:
        print(table(totals.met, (*KINDS, *PROXY_KINDS)))
    times = os.times()
    cpu_s = times.user + times.children_user
    speed = f"{cpu_s:.1f} CPU s, {totals.seeds * 60 / max(cpu_s, 0.001):.0f} seeds a core-minute"
    print(f"first seed {scenarios[0].seed}, {scenarios[0].members} members: {totals.line()}; {speed}")
    return 1 if totals.failed else 0
