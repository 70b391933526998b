"""What consumers noted, as the history that the checker of groups judges."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from elasticq.checks.group_history import Act, Event, Held


class Notes(NamedTuple):
    """Of one consumer. ended_us: when it was killed, or None."""

    log: Path
    ended_us: int | None = None


class History(NamedTuple):
    """events: for the checker; acts: how many of which kind and outcome; held: (resource, told_us, from_us) of each."""

    events: list[Event]
    acts: Counter[tuple[str, str]]
    held: list[tuple[str, int, int]]

    def acts_with(self, outcome: str) -> int:
        """Return how many acts had this outcome."""
        return sum(number for (_, each), number in self.acts.items() if each == outcome)


def read(notes: Iterable[Notes]) -> History:
    """Return what all of them noted. A line that a kill cut is left out."""
    history = History([], Counter(), [])
    for each in notes:
        _read(each, history)
    return history


def _lines(log: Path) -> Iterable[dict[str, Any]]:
    for line in log.read_bytes().split(b"\n"):
        try:
            yield json.loads(line)
        except ValueError:
            continue


def _read(notes: Notes, history: History) -> None:
    lines = list(_lines(notes.log)) if notes.log.exists() else []
    hold_until_us: dict[str, int] = {}
    for line in lines:
        if line.get("consumer"):
            consumer = line["consumer"]
            hold_until_us[consumer] = max(hold_until_us.get(consumer, 0), line["hold_until_us"])
    begun: dict[int, Held] = {}
    for line in lines:
        if "held" in line:
            consumer, resource, token = line["held"]
            # None of what it holds is held for longer than it may act without an answer, whatever it notes later.
            until_us = min(notes.ended_us or hold_until_us[consumer], hold_until_us[consumer])
            begun[token] = Held(consumer, resource, token, line["from_us"], max(until_us, line["from_us"]))
            history.events.append(begun[token])
            history.held.append((resource, line["told_us"], line["from_us"]))
        elif "stopped" in line and line["stopped"] in begun:
            held = begun[line["stopped"]]
            assert held.until_us is not None
            held.until_us = max(held.from_us, min(held.until_us, line["at_us"]))
        elif "act" in line:
            consumer, resource, token = line["act"]
            times = line["invoke_us"], line["complete_us"]
            history.events.append(Act(consumer, resource, token, *times, line["outcome"]))
            history.acts[line["kind"], line["outcome"]] += 1
