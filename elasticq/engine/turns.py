"""Mutations that persist the turns of a fair-share queue (ordering/shares.py)."""

from itertools import islice

from elasticq.engine.ordering.shares import GONE, Stored
from elasticq.engine.state import Queue
from elasticq.engine.stored import mutations as m
from elasticq.model.limits import MUTATION_ROWS_MAX


def taken(queue: Queue, sequences: list[int]) -> list[m.Mutation]:
    """Return the mutations to put into the entry that hands out these chosen messages."""
    found = queue.order.turns(sequences)
    return stored(queue, found) if found else []


def kept(queue: Queue) -> list[m.Mutation]:
    """Return the mutations that store all turns of the queue, for a dump, sorted by path."""
    return stored(queue, {path: queue.turns[path] for path in sorted(queue.turns)})


def forgotten(queue: Queue) -> list[m.Mutation]:
    """Return a mutation that removes up to MUTATION_ROWS_MAX stored turns of the queue; none if it has no turns."""
    return stored(queue, dict.fromkeys(islice(queue.turns, MUTATION_ROWS_MAX), (0, GONE, 0)))


def stored(queue: Queue, found: dict[str, Stored]) -> list[m.Mutation]:
    """Return the mutations that store these turns, by path."""
    turns = list(found.items())
    return [
        m.TurnsSet(
            queue.id,
            [path for path, _ in part],
            [_packed(start) for _, (start, _, _) in part],
            [weight for _, (_, weight, _) in part],
            [_packed(clock) for _, (_, _, clock) in part],
        )
        for part in m.chunks(turns)
    ]


def _packed(moment: int) -> bytes:
    return moment.to_bytes((moment.bit_length() + 7) // 8, "big")
