"""What a receipt handle stands for."""

from msgspec import Struct


class Receipt(Struct, gc=False):
    """The message and the hand-out of it that a valid handle names."""

    queue_id: int
    sequence: int
    delivery_number: int
