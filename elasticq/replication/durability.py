"""Which of the records that this member handed out are durable, by the sync tokens of its storage.

The node gives records to the storage under a token that grows; the storage says up
to which token it has synced. The index of the newest durable entry follows from that.
"""

from collections import deque


class Durability:
    """``durable_index`` is the newest entry that survives a crash of this member."""

    __slots__ = ("_syncing", "durable_index", "synced_token", "token")

    def __init__(self, durable_index: int) -> None:
        self.durable_index = durable_index
        self.token = 0  # the newest one that covers records handed out
        self.synced_token = 0
        self._syncing: deque[tuple[int, int]] = deque()  # (token, last index) not durable yet

    def handed_out(self, token: int, last_index: int) -> None:
        """The records up to the log's ``last_index`` are with the storage under ``token``."""
        self.token = token
        if last_index > self.durable_index and (not self._syncing or self._syncing[-1][1] != last_index):
            self._syncing.append((token, last_index))

    def synced(self, token: int) -> None:
        """All records up to ``token`` are durable."""
        if token > self.synced_token:
            self.synced_token = token
        while self._syncing and self._syncing[0][0] <= token:
            self.durable_index = max(self.durable_index, self._syncing.popleft()[1])

    def truncated(self, index: int) -> None:
        """The entries from ``index`` on are void: a sync of them that ends later makes nothing durable."""
        self.durable_index = min(self.durable_index, index - 1)
        self._syncing = deque((token, min(last, index - 1)) for token, last in self._syncing)
