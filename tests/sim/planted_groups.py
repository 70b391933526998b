"""Faults planted in consumer groups: each breaks "never two holders", tokens, or an even and calm sharing out."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from unittest.mock import patch

from elasticq.client.group_state import GroupState, View
from elasticq.engine.consumer_groups import fence, rebalance
from elasticq.engine.consumer_groups.rebalance import AssignmentPlan
from elasticq.engine.consumer_groups.targets import PlannedConsumer
from elasticq.engine.stored.consumer_group_index import Consumer, Groups
from elasticq.engine.stored.consumer_group_rows import ResourceAssigned, TokensGiven
from elasticq.engine.stored.delivery_rows import Grace
from elasticq.model.group_commands import ElasticqJoinGroup
from tests.sim.planted import retries_without_memory, rows_without


@contextmanager
def resource_assigned_before_it_is_given_back() -> Iterator[None]:
    """What is to move is free at once."""

    def hasty(self: AssignmentPlan, row: ResourceAssigned, wanted_by: int = 0, wanted_in: int = 0) -> None:
        self._free(row)

    with patch.object(AssignmentPlan, "_revoke", hasty):
        yield


@contextmanager
def resource_freed_with_its_queue() -> Iterator[None]:
    """Who holds a queue that is deleted counts for nothing, so that the next one under its name is free."""
    honest = AssignmentPlan._revoke

    def forgetful(self: AssignmentPlan, row: ResourceAssigned, wanted_by: int = 0, wanted_in: int = 0) -> None:
        if self._group.present.get((row.name, row.partition)) == row.queue_id:
            honest(self, row, wanted_by, wanted_in)
        else:
            self._free(row)

    with patch.object(AssignmentPlan, "_revoke", forgetful):
        yield


@contextmanager
def sessions_without_grace() -> Iterator[None]:
    """A session ends by the clock alone, though there was no master who could have renewed it."""
    honest, none = Groups.ended_sessions, Grace()

    def strict(self: Groups, grace: Grace, now_ms: int, limit: int) -> list[Consumer]:
        return honest(self, none, now_ms, limit)

    with patch.object(Groups, "ended_sessions", strict):
        yield


@contextmanager
def client_that_waits_to_be_told() -> Iterator[None]:
    """A consumer does not stop by itself, however long nobody answers it."""
    joined, answered = GroupState.joined, GroupState.answered

    def trusting(view: View) -> View:
        return view._replace(hold_ms=1_000 * view.hold_ms)

    with (
        patch.object(GroupState, "joined", lambda self, view, sent_ms: joined(self, trusting(view), sent_ms)),
        patch.object(GroupState, "answered", lambda self, view, sent_ms: answered(self, trusting(view), sent_ms)),
    ):
        yield


def worker_that_ended_stays_away() -> AbstractContextManager[object]:
    """A late answer goes on with what has ended in the meantime, and nobody starts it anew."""
    return patch.object(GroupState, "_was_over", lambda state, work: False)


def tokens_missing_in_the_rows() -> AbstractContextManager[None]:
    return rows_without(TokensGiven)


def retried_join_is_another() -> AbstractContextManager[None]:
    """A join that is made again makes another consumer, which nobody is."""
    return retries_without_memory(ElasticqJoinGroup)


@contextmanager
def consumer_counted_twice() -> Iterator[None]:
    """One of the consumers has a second share, which nobody takes."""
    honest = rebalance.set_targets

    def doubled(seats: Iterable[PlannedConsumer], total: int, most: int) -> None:
        known = list(seats)
        honest([*known, *(PlannedConsumer(each.number, each.weight, 0) for each in known[:1])], total, most)

    with patch.object(rebalance, "set_targets", doubled):
        yield


@contextmanager
def shares_without_memory() -> Iterator[None]:
    """Who holds what is forgotten whenever shares are set: they differ from time to time."""
    honest = rebalance.set_targets

    def restless(seats: Iterable[PlannedConsumer], total: int, most: int) -> None:
        known = list(seats)
        honest(known, total, most)
        if len(known) > 1 and known[0].target > 0 and total % 2:
            known[0].target -= 1
            known[-1].target += 1

    with patch.object(rebalance, "set_targets", restless):
        yield


@contextmanager
def fence_that_is_open() -> Iterator[None]:
    """Any token will do."""
    with patch.object(fence, "check", lambda *_: None):
        yield
