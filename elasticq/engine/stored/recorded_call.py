"""What the history of calls knows of one call."""

from msgspec import Struct


class Recorded(Struct, gc=False):
    """What a call did: the one message it sent, or ``detail``."""

    recorded_ms: int
    queue_id: int
    sequence: int
    detail: bytes
