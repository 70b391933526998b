"""Moves what the replica wants done into the effects of the member: records under a token, frames behind it."""

from elasticq.node.effects import Effects, Frame
from elasticq.replication.messages import encode
from elasticq.replication.replica import Replica


class Outlet:
    """The only reader of the replica's outbox, and the only writer of ``effects.token``."""

    __slots__ = ("_effects", "_is_volatile", "_replica")

    def __init__(self, replica: Replica, effects: Effects, *, is_volatile: bool) -> None:
        self._replica = replica
        self._effects = effects
        self._is_volatile = is_volatile

    def drain(self, now_ms: int) -> None:
        """Empty the outbox. With volatile storage its records are durable at once, which may fill it again."""
        outbox, effects = self._replica.outbox, self._effects
        while outbox.records or outbox.messages:
            if outbox.records:
                self._drain_records()
            for message, rests_on_records in outbox.messages:
                token = effects.token if rests_on_records and not self._is_volatile else 0
                effects.frames.append(Frame(message.to, encode(message), token))
            outbox.messages.clear()
            if self._is_volatile:
                self._replica.synced(effects.token, now_ms)

    def _drain_records(self) -> None:
        outbox, effects = self._replica.outbox, self._effects
        effects.token += 1
        effects.records += outbox.records
        outbox.records.clear()
        self._replica.handed_out(effects.token)
