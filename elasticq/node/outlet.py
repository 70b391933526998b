"""The transfer of the replica's output into the effects: records under a token, and frames that wait for that token."""

from elasticq.node.effects import Effects
from elasticq.node.outputs import Frame
from elasticq.replication.messages import encode
from elasticq.replication.replica import Replica


class Outlet:
    """The only reader of the replica's records and messages, and the only writer of ``effects.token``."""

    def __init__(self, replica: Replica, effects: Effects, *, is_volatile: bool) -> None:
        self._replica = replica
        self._effects = effects
        self._is_volatile = is_volatile

    def drain(self, now_ms: int) -> None:
        """Move records and messages out of the replica's ``ready``. Its events stay for the node to handle.

        With memory-only storage the records are durable at once. That may create more messages and events.
        """
        ready, effects = self._replica.ready, self._effects
        if ready.records:
            effects.token += 1
            effects.records += ready.records
            ready.records.clear()
            self._replica.durability.handed_out(effects.token, self._replica.log.last_index)
        for message, rests_on_records in ready.messages:
            token = effects.token if rests_on_records and not self._is_volatile else 0
            effects.frames.append(Frame(message.to, encode(message), token))
        ready.messages.clear()
        if self._is_volatile:
            self._replica.synced(effects.token, now_ms)
