"""The choice of the connection to close if too many unauthenticated connections are open.

The choice is the oldest connection of the address that has the most of them. So one address cannot keep others out,
however many connections it opens, and an address with a single connection loses it last.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TypeVar

Waiting = TypeVar("Waiting")


def choose_victim(waiting: Mapping[Waiting, str], spared: Collection[str] = ()) -> Waiting:
    """Return the connection to close.

    waiting: the connections with their addresses, the oldest first, at least one. spared: addresses whose
    connections are chosen only if there are no others.
    """
    strangers = {one: address for one, address in waiting.items() if address not in spared} or waiting
    ((busiest, _),) = Counter(strangers.values()).most_common(1)
    return next(one for one, address in strangers.items() if address == busiest)
