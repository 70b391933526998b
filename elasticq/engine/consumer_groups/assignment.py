"""The calculation of how many resources each consumer of a group should have.

Each consumer gets a number in proportion to its weight, rounded down or up, and never more than the bound. If the
resources do not divide evenly, consumers that already hold one more keep it. So few resources move.
"""

from collections.abc import Iterable
from typing import Final

NO_BOUND: Final = 0


class PlannedConsumer:
    """A consumer in an assignment plan.

    held: how many resources it holds and need not release. target: how many it should have.
    """

    __slots__ = ("held", "number", "target", "weight")

    def __init__(self, number: int, weight: int, held: int) -> None:
        self.number = number
        self.weight = weight
        self.held = held
        self.target = 0


def set_targets(seats: Iterable[PlannedConsumer], total: int, most: int) -> None:
    """Set the ``target`` of each consumer, dividing ``total`` resources.

    most: the maximum for each consumer; NO_BOUND: there is none. Resources above the maxima stay unassigned. A
    consumer with weight 0 gets none.
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
        # Consumers that would exceed the maximum, heaviest first, get the maximum. The others divide the rest.
        for seat in eligible:
            if total * seat.weight < most * weights:
                break
            seat.target = most  # at most ``total``, because one weight is at most the sum of weights
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
            # One more goes first to consumers that hold it already, then to those with the largest remainder.
            order.append((seat.held <= seat.target, -rest, seat.number, seat))
    order.sort(key=_before)
    for place in order[:left]:
        place[3].target += 1


def _before(place: tuple[bool, int, int, PlannedConsumer]) -> tuple[bool, int, int]:
    return place[:3]
