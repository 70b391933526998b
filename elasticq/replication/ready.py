"""What a replica wants done: records to keep, and messages to send."""

from msgspec import Struct, field

from elasticq.replication.messages import AnyMessage
from elasticq.replication.records import Record


class Outbox(Struct):
    """What the replica wants done, in order; a message that rests on records waits for their sync."""

    records: list[Record] = field(default_factory=list)
    messages: list[tuple[AnyMessage, bool]] = field(default_factory=list)  # (message, rests on the records so far)
