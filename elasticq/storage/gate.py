"""A gate that holds frames until the records they depend on are durable. The runtime and the simulator use it.

A frame may contain a promise, such as a vote or the acknowledgement of an entry. The member must not send it before
the promise is durable. So a frame leaves only after ``synced`` was called with its token or a later one. Frames with
the same token keep their order. A later frame with a smaller token may overtake, as it may on any network.
"""

from elasticq.node.outputs import Frame


class SyncGate:
    """The frames whose token is not synced yet: at most what the node sends between two syncs."""

    def __init__(self) -> None:
        self.synced_token = 0
        self._held: list[Frame] = []

    def add(self, frames: list[Frame]) -> list[Frame]:
        """Add frames; return those that may be sent at once. A later call of ``synced`` returns the others."""
        synced = self.synced_token
        if len(frames) == 1 and frames[0].token <= synced:  # the usual case: a forwarded call
            return frames
        self._held += [frame for frame in frames if frame.token > synced]
        return [frame for frame in frames if frame.token <= synced]

    def synced(self, token: int) -> list[Frame]:
        """Return the frames that may be sent, in the order of ``add``, as the records up to ``token`` are durable."""
        assert token >= self.synced_token, "sync tokens only grow"
        self.synced_token = token
        due = [frame for frame in self._held if frame.token <= token]
        if due:
            self._held = [frame for frame in self._held if frame.token > token]
        return due

    def clear(self) -> None:
        """Drop all frames that were not sent, because the member crashed."""
        self._held.clear()

    def __len__(self) -> int:
        return len(self._held)
