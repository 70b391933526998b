"""The output of a replica after a call: records to keep, messages to send, and events for the node.

The node drains it after each call. It handles the events first and in order, because each builds on the one before. It
rolls back a lost mastership before it applies entries of the next master. A new master's first entry, which the node
proposes on the event, joins the records.
"""

from elasticq.replication.events import Event
from elasticq.replication.messages import AnyMessage
from elasticq.replication.records import Record


class Ready:
    """The lists of one replica, each in order.

    messages: (message, whether it depends on the records so far). A message that does waits for their sync.
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.messages: list[tuple[AnyMessage, bool]] = []
        self.events: list[Event] = []
