"""The effects that a Node requests. Its shell (runtime or simulator) carries them out and clears the lists.

After each call of the node the shell does this, in this order:

1. Hand ``records`` to the storage under ``token``.
2. Give ``committed`` to the rows on disk, and ask the rows for ``fetches``.
3. Send each frame once its token is synced.
4. Send the replies. They are due: the node itself has held them by the reply rule.
5. Call ``tick`` at ``wake_at_ms``.

No member needs the log entries up to ``log_floor`` any more.
"""

from elasticq.node.outputs import Committed, Failure, Fetch, Frame, News, Wanted
from elasticq.node.reply import Reply
from elasticq.replication.records import Entry, Record


class Effects:
    """The lists that the node fills and its shell drains.

    failures: defects that the shell reports to the operator while the member continues.
    news: events of the cluster for the operator's log. The shell writes them before it handles ``committed``.
    wanted: a snapshot to be fetched. It stays until a node over the snapshot replaces this one.
    discarded: dropped entries that were acknowledged to clients (modes async and one). The shell writes them to a file.
    token: covers every record handed out so far. The shell calls ``node.synced(token)`` when they are durable.
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.frames: list[Frame] = []
        self.replies: list[Reply] = []
        self.committed: list[Committed] = []
        self.fetches: list[Fetch] = []
        self.discarded: list[Entry] = []
        self.failures: list[Failure] = []
        self.news: list[News] = []
        self.wanted: Wanted | None = None
        self.log_floor = 0
        self.token = 0
        self.wake_at_ms: int | None = None
