"""The numbers of messages of a queue in each state."""

from msgspec import Struct


class Counts(Struct, gc=False):
    """The values of the three ApproximateNumberOfMessages attributes. They are exact here."""

    visible: int
    in_flight: int
    delayed: int
