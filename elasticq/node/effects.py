"""What a Node wants done; its shell (runtime or simulator) does it and clears the lists.

Order for the shell after each call of the node: hand ``records`` to the
storage under ``token``; give ``committed`` to its rows and ask them for
``fetches``; send each frame once its token is synced; release the replies (they
are due now, the node itself held them by the reply rule); call ``tick`` at
``wake_at_ms``. Entries up to ``log_floor`` are needed by nobody any more.
"""

from elasticq.node.outputs import Committed, Failure, Fetch, Frame, News, Reply, Wanted
from elasticq.replication.records import Entry, Record


class Effects:
    """What the node wants done: it fills the lists, and its shell drains them.

    failures: defects that the shell reports to the operator, while the member goes on.
    news: what happened to the cluster, for the operator's log; it comes out before what is ``committed`` by then.

    wanted: a snapshot to be fetched; it stays until the node is replaced by one over the snapshot.
    discarded: dropped entries that clients had been told are stored (modes async, one); the shell files them.

    token: covers every record handed out so far; the shell calls
    ``node.synced(token)`` when they are durable.
    """

    __slots__ = (
        "committed",
        "discarded",
        "failures",
        "fetches",
        "frames",
        "log_floor",
        "news",
        "records",
        "replies",
        "token",
        "wake_at_ms",
        "wanted",
    )

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
