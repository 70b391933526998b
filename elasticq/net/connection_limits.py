"""Chooses which connection to close where too many wait that have proved nothing yet.

It is the oldest of the address that has the most, so that a single address cannot keep others out, however many
connections it opens, and one that is alone at its address goes last.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TypeVar

Waiting = TypeVar("Waiting")


def choose_victim(waiting: Mapping[Waiting, str], spared: Collection[str] = ()) -> Waiting:
    """Return the connection to close.

    waiting: the address of each, the oldest first, at least one; spared: addresses that go after all others.
    """
    strangers = {one: address for one, address in waiting.items() if address not in spared} or waiting
    ((busiest, _),) = Counter(strangers.values()).most_common(1)
    return next(one for one, address in strangers.items() if address == busiest)
