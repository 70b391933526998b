"""Faults planted in the real code by patching one method of it: the checkers must catch each (design.md §10)."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import Any
from unittest.mock import patch

from elasticq.engine import mutations as m
from elasticq.engine.actions import send
from elasticq.engine.execute import execute
from elasticq.engine.ordering.standard import ContentsMissing
from elasticq.model.commands import Call
from elasticq.node import node as node_module
from elasticq.node.effects import Committed, Reply, Ticket
from elasticq.node.node import Node
from elasticq.node.replies import Replies
from elasticq.replication.records import Entry, Vote
from elasticq.replication.replica import Replica
from elasticq.sim.disk import Disk
from elasticq.storage.rows import Rows

Planted = Callable[[], AbstractContextManager[None]]


@contextmanager
def one_sync_removed() -> Iterator[None]:
    """Each disk reports its third sync, and then every eleventh, without having done it."""
    honest, calls = Disk.sync, dict[Disk, int]()

    def lying(self: Disk, records: int) -> None:
        calls[self] = number = calls.get(self, 0) + 1
        if number % 11 != 3:
            honest(self, records)

    with patch.object(Disk, "sync", lying):
        yield


@contextmanager
def vote_not_persisted() -> Iterator[None]:
    def without_vote(self: Replica) -> None:
        self._record(Vote(self.term, None))

    with patch.object(Replica, "_persist_vote", without_vote):
        yield


@contextmanager
def vote_for_a_stale_log() -> Iterator[None]:
    with patch.object(Replica, "_is_up_to_date", lambda self, last_term, last_index: True):
        yield


@contextmanager
def reply_before_commit() -> Iterator[None]:
    with patch.object(Replies, "may_release", lambda self, pending, now_ms: True):
        yield


@contextmanager
def dedup_hit_before_commit() -> Iterator[None]:
    """A retry is answered from the GUID history at once, wherever its entry stands."""
    honest = Node._run

    def hasty(self: Node, call: Call, ticket: Ticket, now_ms: int) -> None:
        turn = self._turn
        turn.now_ms = self._open_time(now_ms)
        if call.invocation and self.state.invocations.get(call.invocation, turn.now_ms) is not None:
            try:
                result, _ = execute(self.state, call, turn)
            except ContentsMissing:
                honest(self, call, ticket, now_ms)
                return
            self.effects.replies.append(Reply(ticket, result, self.replica.commit_index))
            return
        honest(self, call, ticket, now_ms)

    with patch.object(Node, "_run", hasty):
        yield


@contextmanager
def sequence_without_term() -> Iterator[None]:
    with patch.object(send, "next_sequence", lambda last, term: last + 1):
        yield


@contextmanager
def old_term_committed_by_counting() -> Iterator[None]:
    with patch.object(Replica, "_may_commit", lambda self, index: True):
        yield


@contextmanager
def truncate_without_conflict() -> Iterator[None]:
    """Whatever is sent again above commit cuts the log, the same or not."""

    def distrusting(self: Replica, entry: Entry) -> bool:
        return entry.index <= self.commit_index

    with patch.object(Replica, "_agrees", distrusting):
        yield


@contextmanager
def serving_before_takeover() -> Iterator[None]:
    honest = Node.became_master

    def eager(self: Node, now_ms: int) -> None:
        honest(self, now_ms)
        self.serving = True

    with patch.object(Node, "became_master", eager):
        yield


@contextmanager
def restarted_member_raises_its_term() -> Iterator[None]:
    def raising(self: Replica) -> None:
        if self.log.last_index:
            self.term, self.voted_for = self.term + 1, None
            self._persist_vote()

    with patch.object(Replica, "_restart_term", raising):
        yield


@contextmanager
def wall_clock_stamps() -> Iterator[None]:
    with patch.object(Node, "_stamp", lambda self, now_ms: now_ms + self.clock._wall_offset_ms):
        yield


@contextmanager
def rows_without(kind: type) -> Iterator[None]:
    """The rows on disk never hear of mutations of one kind."""
    honest = Rows.take

    def deaf(self: Rows, committed: Committed) -> None:
        heard = [mutation for mutation in committed.mutations if type(mutation) is not kind]
        honest(self, Committed(committed.index, committed.term, committed.time_ms, heard))

    with patch.object(Rows, "take", deaf):
        yield


def rows_without_removals() -> AbstractContextManager[None]:
    return rows_without(m.MessagesRemoved)


def rows_without_the_guid_table() -> AbstractContextManager[None]:
    return rows_without(m.InvocationRecorded)


@contextmanager
def apply_that_reads_a_clock() -> Iterator[None]:
    """``apply`` stamps a send with a clock of its own; here one that ticks whenever it is read."""
    honest, clock = node_module.apply, count()

    def reading(state: Any, mutation: m.Mutation, undo: Any = None) -> None:
        if isinstance(mutation, m.MessageStored):
            mutation.sent_ms += next(clock)
        honest(state, mutation, undo)

    with patch.object(node_module, "apply", reading):
        yield
