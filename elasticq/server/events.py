"""Keeps the last lines of the log that tell what happened, for operators who look later."""

import logging
from collections import deque
from typing import Final

from elasticq.admin.source import Event

KEPT_MAX: Final = 500
LOGGERS: Final = ("elasticq.server.member", "elasticq.audit")
"""Where such lines go: what happens to the cluster and its disks, and who purged or deleted which queue."""


class EventKeeper(logging.Handler):
    """Takes lines of the form ``event: A whole sentence.``; the newest KEPT_MAX are kept."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._events: deque[Event] = deque(maxlen=KEPT_MAX)

    def listen(self) -> None:
        """Take what is logged from now on."""
        for name in LOGGERS:
            logging.getLogger(name).addHandler(self)

    def stop(self) -> None:
        """Take no more, as the process, or the test in it, may go on without this server."""
        for name in LOGGERS:
            logging.getLogger(name).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        event, colon, text = record.getMessage().partition(": ")
        if not colon or " " in event:
            event, text = "note", record.getMessage()
        self._events.append(Event(int(record.created * 1_000), record.levelname.lower(), event, text))

    def newest_first(self) -> list[Event]:
        return list(reversed(self._events))
