"""Holds frames back until the records they rest on are durable (used by runtime and simulator).

A frame may promise what only the disk can keep: a vote, or an acknowledged
entry. So a frame leaves only after ``synced`` reached its token. Frames of one
token keep their order; a later frame with a smaller token may overtake, which
the replication protocol allows on any network.
"""

from elasticq.node.outputs import Frame


class SyncGate:
    """Holds frames until their token is synced. It holds at most what the node sends between two syncs."""

    __slots__ = ("_held", "synced_token")

    def __init__(self) -> None:
        self.synced_token = 0
        self._held: list[Frame] = []

    def add(self, frames: list[Frame]) -> list[Frame]:
        """Take frames; return those that may be sent at once. The others are returned by a later ``synced``."""
        synced = self.synced_token
        if len(frames) == 1 and frames[0].token <= synced:  # a call that is passed on
            return frames
        self._held += [frame for frame in frames if frame.token > synced]
        return [frame for frame in frames if frame.token <= synced]

    def synced(self, token: int) -> list[Frame]:
        """Return the frames that are due, in the order they were added: the records up to ``token`` are durable."""
        assert token >= self.synced_token, "sync tokens only grow"
        self.synced_token = token
        due = [frame for frame in self._held if frame.token <= token]
        if due:
            self._held = [frame for frame in self._held if frame.token > token]
        return due

    def clear(self) -> None:
        """Drop all frames, because the member crashed: what was not sent is never sent."""
        self._held.clear()

    def __len__(self) -> int:
        return len(self._held)
