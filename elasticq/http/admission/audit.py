"""The audit log: who deleted or purged a queue. These actions cannot be undone."""

from logging import getLogger
from typing import Final

from elasticq.http.admission.request_log import queue_of
from elasticq.model.commands import Command

_log = getLogger("elasticq.audit")

_DONE: Final = {"DeleteQueue": ("queue_deleted", "deleted"), "PurgeQueue": ("queue_purged", "purged")}
LOGGED: Final = frozenset(_DONE)
"""The actions that are logged after they succeeded."""


def tell(action: str, command: Command, principal: str, account: str, peername: object) -> None:
    """Log an action of ``LOGGED``. peername: that of the transport; its first part is the client's address."""
    event, done = _DONE[action]
    queue = queue_of(command, account)
    where = f" from {peername[0]}" if isinstance(peername, tuple) else ""
    _log.info("%s: The queue %s was %s by %s of account %s%s.", event, queue, done, principal, account, where)
