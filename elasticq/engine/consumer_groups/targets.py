"""The calculation of how many resources each consumer of a group should have.

Each consumer gets a number in proportion to its weight, rounded down or up, and never more than the bound. If the
resources do not divide evenly, consumers that already hold one more keep it. So few resources move.
"""

from collections.abc import Iterable
from typing import Final

NO_BOUND: Final = 0


class PlannedConsumer:
    """The number of resources that one consumer has, and the number that it should have.

    number: the id of the consumer. held: how many resources it holds and need not release. target: how many it should
    have.
    """

    def __init__(self, number: int, weight: int, held: int) -> None:
        self.number = number
        self.weight = weight
        self.held = held
        self.target = 0


def set_targets(all_planned: Iterable[PlannedConsumer], total: int, most: int) -> None:
    """Set the ``target`` of each consumer, dividing ``total`` resources.

    most: the maximum for each consumer; NO_BOUND: there is none. Resources above the maxima stay unassigned. A
    consumer with weight 0 gets none.
    """
    eligible = []
    for planned in all_planned:
        planned.target = 0
        if planned.weight > 0:
            eligible.append(planned)
    eligible.sort(key=_by_weight)
    weights = sum(planned.weight for planned in eligible)
    first = 0
    if most:
        # Consumers that would exceed the maximum, heaviest first, get the maximum. The others divide the rest.
        for planned in eligible:
            if total * planned.weight < most * weights:
                break
            planned.target = most  # at most ``total``, because one weight is at most the sum of weights
            total -= most
            weights -= planned.weight
            first += 1
    _divide(eligible[first:], total, weights)


def _by_weight(planned: PlannedConsumer) -> tuple[int, int]:
    return -planned.weight, planned.number


def _divide(all_planned: list[PlannedConsumer], total: int, weights: int) -> None:
    if not weights:
        return
    left = total
    order = []
    for planned in all_planned:
        planned.target, rest = divmod(total * planned.weight, weights)
        left -= planned.target
        if rest:
            # One more goes first to consumers that hold it already, then to those with the largest remainder.
            order.append((planned.held <= planned.target, -rest, planned.number, planned))
    order.sort(key=_before)
    for place in order[:left]:
        place[3].target += 1


def _before(place: tuple[bool, int, int, PlannedConsumer]) -> tuple[bool, int, int]:
    return place[:3]
