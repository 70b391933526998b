"""The latest events of the log, kept for the admin port."""

import logging
from collections import deque
from typing import Final

from elasticq.admin.source import Event

KEPT_MAX: Final = 500
LOGGERS: Final = ("elasticq.server.member", "elasticq.audit")
"""The loggers of events: changes in the cluster and of its disks, and purges and deletions of queues."""


class EventKeeper(logging.Handler):
    """A handler that keeps the newest KEPT_MAX lines. A line is ``event: A whole sentence.`` or a note."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._events: deque[Event] = deque(maxlen=KEPT_MAX)

    def listen(self) -> None:
        """Start to keep log lines."""
        for name in LOGGERS:
            logging.getLogger(name).addHandler(self)

    def stop(self) -> None:
        """Keep no more lines, because the process, such as a test, may go on without this server."""
        for name in LOGGERS:
            logging.getLogger(name).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        event, colon, text = record.getMessage().partition(": ")
        if not colon or " " in event:
            event, text = "note", record.getMessage()
        self._events.append(Event(int(record.created * 1_000), record.levelname.lower(), event, text))

    def newest_first(self) -> list[Event]:
        return list(reversed(self._events))
