"""Computes how many resources each consumer of a group is to have.

Each gets its share by weight, rounded down or up, and nobody more than the bound. Where the number of resources does
not divide evenly, those who already hold one more keep it, so that as little as possible moves.
"""

from collections.abc import Iterable
from typing import Final

NO_BOUND: Final = 0


class PlannedConsumer:
    """A consumer at the sharing out. held: how many resources it has and is not asked to give back."""

    __slots__ = ("held", "number", "target", "weight")

    def __init__(self, number: int, weight: int, held: int) -> None:
        self.number = number
        self.weight = weight
        self.held = held
        self.target = 0


def set_targets(seats: Iterable[PlannedConsumer], total: int, most: int) -> None:
    """Set how many of ``total`` resources each seat is to have. most: the bound for each; NO_BOUND: there is none.

    A seat of weight 0 gets nothing. What the bound leaves over goes to nobody.
    """
    eligible = []
    for seat in seats:
        seat.target = 0
        if seat.weight > 0:
            eligible.append(seat)
    eligible.sort(key=_by_weight)
    weights = sum(seat.weight for seat in eligible)
    first = 0
    if most:
        # Who would get more than the bound, the heaviest first, gets the bound; the others share the rest.
        for seat in eligible:
            if total * seat.weight < most * weights:
                break
            seat.target = most  # which is not more than ``total``, as its weight is not more than all weights
            total -= most
            weights -= seat.weight
            first += 1
    _share(eligible[first:], total, weights)


def _by_weight(seat: PlannedConsumer) -> tuple[int, int]:
    return -seat.weight, seat.number


def _share(seats: list[PlannedConsumer], total: int, weights: int) -> None:
    if not weights:
        return
    left = total
    order = []
    for seat in seats:
        seat.target, rest = divmod(total * seat.weight, weights)
        left -= seat.target
        if rest:
            # One more for those that have it already, then for those that are furthest from their share.
            order.append((seat.held <= seat.target, -rest, seat.number, seat))
    order.sort(key=_before)
    for place in order[:left]:
        place[3].target += 1


def _before(place: tuple[bool, int, int, PlannedConsumer]) -> tuple[bool, int, int]:
    return place[:3]
