"""What a replica wants done after a call: records to keep, messages to send, and events that the node must hear of.

The node drains it after each call, the events first and in their order, as what they tell builds on one another: a lost
mastership is rolled back before entries of the next master are applied, and a new master's first entry, which
the node proposes when it hears that it is one, joins the records.
"""

from elasticq.replication.events import Event
from elasticq.replication.messages import AnyMessage
from elasticq.replication.records import Record


class Ready:
    """Each list is in order; a message that rests on records waits for their sync.

    messages: (message, whether it rests on the records so far).
    """

    __slots__ = ("events", "messages", "records")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.messages: list[tuple[AnyMessage, bool]] = []
        self.events: list[Event] = []
