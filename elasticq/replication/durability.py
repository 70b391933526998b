"""The durable records of this member, known from the sync tokens of its storage.

The node passes records to the storage under a token that grows. The storage reports the token up to which it has
synced. From the reported token, ``Durability`` calculates the index of the newest durable entry.
"""

from collections import deque


class Durability:
    """The records that are being synced, and ``durable_index``, the newest entry that survives a crash of this
    member."""

    def __init__(self, durable_index: int) -> None:
        self.durable_index = durable_index
        self.token = 0  # the newest token under which records were handed out
        self.synced_token = 0
        self._syncing: deque[tuple[int, int]] = deque()  # (token, last index) that are not durable yet

    def handed_out(self, token: int, last_index: int) -> None:
        """Note that the storage has the records up to the log's ``last_index`` under ``token``."""
        self.token = token
        if last_index > self.durable_index and (not self._syncing or self._syncing[-1][1] != last_index):
            self._syncing.append((token, last_index))

    def synced(self, token: int) -> None:
        """Note that all records up to ``token`` are durable."""
        if token > self.synced_token:
            self.synced_token = token
        while self._syncing and self._syncing[0][0] <= token:
            self.durable_index = max(self.durable_index, self._syncing.popleft()[1])

    def truncated(self, index: int) -> None:
        """Note that the entries from ``index`` on are void. A later sync of them makes nothing durable."""
        self.durable_index = min(self.durable_index, index - 1)
        self._syncing = deque((token, min(last, index - 1)) for token, last in self._syncing)
