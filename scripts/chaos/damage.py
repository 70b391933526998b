"""Flipped bits and cut files in a stopped server's directory, and what was lost; status 1 for any finding.

Each trial starts a server on a damaged copy. If the server refuses, the trial repairs the copy. Then it reads all
messages, sends more, and starts the server again.
"""

import argparse
import tempfile
from pathlib import Path
from random import Random, SystemRandom

from tests.system.durability import damage


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--flips", type=int, default=500, help="trials with a flipped bit (500)")
    parser.add_argument("--cuts", type=int, default=200, help="trials with a cut file (200)")
    parser.add_argument("--seed", type=int, help="seed of the damage (random)")


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
                f"seed {seed}: {trials} {what}: {whole} lost nothing, {lossy} lost only what the server reported, "
                f"{len(findings)} findings"
            )
            print(damage.summary(outcomes), flush=True)
            found += len(findings)
    return int(found > 0)
