"""What a queue whose groups share stores of their turns (ordering/shares.py), as mutations."""

from itertools import islice

from elasticq.engine.ordering.shares import GONE, Stored
from elasticq.engine.state import Queue
from elasticq.engine.stored import mutations as m
from elasticq.model.limits import MUTATION_ROWS_MAX


def taken(queue: Queue, sequences: list[int]) -> list[m.Mutation]:
    """Returns what goes into the entry in which these messages, which were chosen, are handed out."""
    found = queue.order.turns(sequences)
    return stored(queue, found) if found else []


def kept(queue: Queue) -> list[m.Mutation]:
    """Returns all that is stored, for a member that knows nothing; sorted, so that equal states are told alike."""
    return stored(queue, {path: queue.turns[path] for path in sorted(queue.turns)})


def forgotten(queue: Queue) -> list[m.Mutation]:
    """Returns a first step, or the only one, after which nothing is stored."""
    return stored(queue, dict.fromkeys(islice(queue.turns, MUTATION_ROWS_MAX), (0, GONE, 0)))


def stored(queue: Queue, found: dict[str, Stored]) -> list[m.Mutation]:
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
