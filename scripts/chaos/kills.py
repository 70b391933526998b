"""Kills of a durable server under load, and what its clients lost; status 1 for any finding.

After a finding the program keeps the history of all clients next to the data directory, and prints the path.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from random import SystemRandom

from tests.system.durability import chaos
from tests.system.durability.server import Server
from tests.system.durability.verdict import NAMES

KILLS_A_ROUND = 50  # after so many the queues are drained and checked, so a finding is close to its cause
IN_FLIGHT_MIN = 0.3


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=200, help="kills in all (200)")
    parser.add_argument("--seed", type=int, help="seed of the first round (random)")
    parser.add_argument("--clients", type=int, default=chaos.CLIENTS, help="clients (%(default)s)")


def main(options: argparse.Namespace) -> int:
    seed = SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    verdicts = []
    left = options.kills
    while left > 0:
        verdicts.append(one_round(seed, min(left, KILLS_A_ROUND), options.clients))
        left -= KILLS_A_ROUND
        seed += 1
    return judge(verdicts)


def one_round(seed: int, kills: int, clients: int) -> chaos.Verdict:
    directory = Path(tempfile.mkdtemp(prefix="elasticq-chaos-"))
    plan = chaos.Plan(seed=seed, kills=kills, clients=clients)
    verdict = chaos.run(Server(directory / "data", directory / "stderr"), plan)
    print(verdict.line(), flush=True)
    if verdict.findings:
        verdict.keep(directory / "history.jsonl")
        print(f"{verdict.evidence()}\nhistory and data are in {directory}", flush=True)
    else:
        shutil.rmtree(directory)
    return verdict


def judge(verdicts: list[chaos.Verdict]) -> int:
    kills = sum(verdict.kills for verdict in verdicts)
    in_flight = sum(verdict.kills_in_flight for verdict in verdicts)
    found = ", ".join(f"{name} {sum(verdict.count(name) for verdict in verdicts)}" for name in NAMES)
    print(
        f"all: {kills} kills, {in_flight} with requests in flight ({in_flight / max(1, kills):.0%}), "
        f"{sum(verdict.acknowledged for verdict in verdicts)} acknowledged operations, at least "
        f"{min((verdict.acknowledged_between_min for verdict in verdicts), default=0)} between two kills; {found}"
    )
    return int(in_flight < IN_FLIGHT_MIN * kills or any(verdict.findings for verdict in verdicts))
