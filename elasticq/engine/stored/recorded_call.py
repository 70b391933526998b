"""The record of one call in the history of calls."""

from msgspec import Struct


class Recorded(Struct, gc=False):
    """The effect of a call: the one message that it sent, or ``detail``."""

    recorded_ms: int
    queue_id: int
    sequence: int
    detail: bytes
