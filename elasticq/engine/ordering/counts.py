"""How many messages of a queue are in which state."""

from msgspec import Struct


class Counts(Struct, gc=False):
    """The values of the three ApproximateNumberOfMessages attributes, which are exact here."""

    visible: int
    in_flight: int
    delayed: int
