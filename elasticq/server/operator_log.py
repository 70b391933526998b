"""The log lines of a member or a proxy about its cluster, each logged once, and what a member stores of them."""

import logging
from asyncio import AbstractEventLoop, Future
from typing import Final

from elasticq.node.membership.members import name_of
from elasticq.node.membership.peer import Peer
from elasticq.node.outputs import News
from elasticq.replication.records import Entry
from elasticq.storage.directory import DataDirectory
from elasticq.storage.rows.discarded import Discarded

USUAL_S: Final = 10.0
"""The time in which the members of a healthy cluster find each other."""

_log: Final = logging.getLogger("elasticq.server.member")


class OperatorLog:
    """The log of one process. directory: None if the process stores nothing."""

    def __init__(self, directory: DataDirectory | None, loop: AbstractEventLoop) -> None:
        self._directory = directory
        self._loop = loop
        self._discarded = None if directory is None else Discarded(directory.discarded)
        self._linked: dict[str, Peer] = {}
        self._trouble = ("", False)  # what was logged last, and whether as a warning
        self._started_s = loop.time()

    def news(self, news: list[News]) -> None:
        for one in news:
            _log.log(logging.WARNING if one.is_warning else logging.INFO, "%s: %s", one.event, one.text)

    def trouble(self, trouble: str, well: str, *, is_usual: bool = False) -> None:
        """Log why this process cannot serve for its cluster, and what to do, when the reason changes.

        trouble: the reason, empty if it can serve. Then ``well`` is logged. is_usual: each start begins like this, so
        it becomes a warning only USUAL_S after the start.
        """
        is_early = is_usual and self._loop.time() - self._started_s < USUAL_S
        state = trouble, bool(trouble) and not is_early
        if state != self._trouble:
            self._trouble = state
            _log.log(logging.WARNING if state[1] else logging.INFO, "%s", trouble or well)

    def met(self, peer: Peer, own: Peer) -> None:
        """Log a new link. A linked member that greets again, with changed data, is not logged.

        own: the data that this process announces.
        """
        if peer.id not in self._linked:
            self._linked[peer.id] = peer
            if peer.is_proxy:
                _log.info("linked: There is a link to the proxy %s (%s).", peer.name, peer.id)
            else:
                _log.info("linked: There is a link to %s (%s) at %s.", peer.name, peer.id, peer.address)
            if peer.region and _regions_of(peer) != _regions_of(own):
                # The link is not refused: during a rolling restart settings may differ, and the cluster must serve.
                _log.warning(
                    "regions_differ: %s (%s) has %s, this process %s: the same call means different queues there. "
                    "Give all members and proxies the same node.region and node.single_region.",
                    peer.name, peer.id, _regions_of(peer), _regions_of(own),
                )  # fmt: skip

    def lost(self, member_id: str) -> None:
        """Log a lost link, as a warning unless it is a proxy's: proxies come and go with their applications."""
        peer = self._linked.pop(member_id, None)
        if peer is not None and peer.is_proxy:
            _log.info("link_lost: The link to the proxy %s (%s) is gone.", peer.name, member_id)
        else:
            _log.warning("link_lost: The link to %s (%s) is gone.", name_of(member_id), member_id)

    def full(self, reason: str | None) -> None:
        if reason:
            _log.warning("disk_full: %s", reason)
        else:
            _log.info("disk_has_space_again: The disk has space again, and sends are taken.")

    def installed(self, index: int) -> None:
        _log.info("snapshot_installed: This member continues from another member's snapshot, at index %d.", index)

    # --- what is stored ---------------------------------------------------------------

    def removed(self, was_removed: bool) -> None:
        """Store whether this member was removed from its cluster, because its log and rows may not contain that."""
        if self._directory is not None:
            try:
                self._directory.remember_removed(was_removed)
            except OSError as error:
                _log.error("removal_not_kept: After a restart this member may not know that it was removed: %s", error)

    @property
    def discarded_count(self) -> int:
        """Return how many acknowledged entries were discarded since this directory exists."""
        return 0 if self._discarded is None else self._discarded.count

    def discarded(self, entries: list[Entry]) -> None:
        """Log and store entries that were acknowledged before their commit, and that a newer master replaced."""
        _log.warning("acknowledged_entries_discarded %d", len(entries))
        if self._discarded is not None:
            keeping = self._loop.run_in_executor(None, self._discarded.append, entries)
            keeping.add_done_callback(_kept)


def _regions_of(peer: Peer) -> str:
    return f'node.region = "{peer.region}", node.single_region = {str(peer.has_one_region).lower()}'


def _kept(keeping: "Future[None]") -> None:
    failure = None if keeping.cancelled() else keeping.exception()
    if failure is not None:
        _log.error("discarded_not_kept", exc_info=failure)
