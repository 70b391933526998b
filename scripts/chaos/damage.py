"""Flips bits and cuts files of a stopped server's directory, and says what was lost; status 1 for any finding.

Each trial starts a server on a damaged copy, repairs it where it refuses, reads everything, goes on and starts again.
"""

import argparse
import tempfile
from pathlib import Path
from random import Random, SystemRandom

from tests.system.durability import damage


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--flips", type=int, default=500)
    parser.add_argument("--cuts", type=int, default=200)
    parser.add_argument("--seed", type=int, help="without it a random one")


def main(options: argparse.Namespace) -> int:
    seed = SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    random = Random(seed)
    found = 0
    with tempfile.TemporaryDirectory(prefix="elasticq-damage-") as name:
        base = damage.build(Path(name), seed)
        for what, trials in (("flips", options.flips), ("cuts", options.cuts)):
            outcomes = [damage.try_one(base, Path(name) / "trial", random, cuts=what == "cuts") for _ in range(trials)]
            findings = [outcome for outcome in outcomes if outcome.finding]
            lossy = sum(1 for outcome in outcomes if outcome.lost and not outcome.finding)
            whole = len(outcomes) - lossy - len(findings)
            print(
                f"seed {seed}: {trials} {what}: {whole} all there, {lossy} lost what was told, {len(findings)} findings"
            )
            print(damage.summary(outcomes), flush=True)
            found += len(findings)
    return int(found > 0)
