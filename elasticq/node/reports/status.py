"""The status of a member: whether it is ready, its log indexes, and the leases that it knows."""

from itertools import islice

from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.consumer_group_index import Group
from elasticq.node.executor import Executor
from elasticq.node.forwarder import Forwarder
from elasticq.node.journal import Journal
from elasticq.node.leadership import Leadership
from elasticq.node.parts import Parts
from elasticq.node.settings import GroupStatus, LeaseStatus, NodeStatus
from elasticq.replication.replica import MASTER


class StatusReport:
    """The status of one member, read from the parts of its node. It changes none of them."""

    def __init__(
        self, parts: Parts, journal: Journal, leadership: Leadership, executor: Executor, forwarder: Forwarder
    ) -> None:
        self._state = parts.state
        self._replica = parts.replica
        self._members = parts.members
        self._clock = parts.clock
        self._journal = journal
        self._digests = parts.digests
        self._leadership = leadership
        self._executor = executor
        self._forwarder = forwarder
        self._set_aside = parts.set_aside

    def status(self, now_ms: int, groups_max: int) -> NodeStatus:
        """Return the status that ``/ready`` and ``/cluster`` show for this member."""
        replica = self._replica
        is_ready, time_ms = self._is_ready(), self._clock.time_ms(now_ms)
        return NodeStatus(
            member_id=replica.member_id,
            role=replica.role,
            master=replica.master,
            term=replica.term,
            commit_index=replica.commit_index,
            applied_index=self._journal.applied_index,
            last_index=replica.log.last_index,
            ready=is_ready,
            reason="" if is_ready else self._unready_reason(),
            time_ms=time_ms,
            voters=replica.voters,
            match={other: progress.match_index for other, progress in replica.followers.items()},
            queues=len(self._state.names) - len(self._state.inner),
            waiters=self._executor.waiters.count,
            contents_bytes=self._state.contents_bytes,
            cluster_id=replica.cluster,
            members=self._members.statuses(now_ms, time_ms),
            stale_ms=self._leadership.stale_ms(now_ms),
            discarded=self._journal.discarded,
            set_aside=self._set_aside,
            digests=dict(self._digests.by_number),
            leases=len(self._state.leases),
            held_calls=self._forwarder.held_calls,
            proxies=self._members.proxies(),
            groups=self._groups(now_ms, groups_max),
        )

    def _is_ready(self) -> bool:
        """Return whether this member executes calls, or passes them on to a master that it follows."""
        replica = self._replica
        if self._members.waiting_for():
            return False
        is_following = replica.role != MASTER and replica.master is not None and replica.wanted is None
        return self._leadership.serving or (is_following and replica.is_whole)

    def _unready_reason(self) -> str:
        if not self._replica.is_whole:
            return "its rows on the disk are damaged: they are being replaced"
        return "catching up: a snapshot is being taken" if self._replica.wanted else self._forwarder.unready_reason()

    def leases(self, now_ms: int, limit: int) -> list[LeaseStatus]:
        """Return up to ``limit`` leases known here: first the active ones, then those that ended last."""
        state, time_ms = self._state, self._clock.time_ms(now_ms)
        found = []
        for key, lease in islice(state.leases.newest(), limit):
            queue_id, name, batch, partition = key
            queue = state.queues.get(queue_id) or state.deleted_queues.get(queue_id)
            is_told = bool(lease.ended_ms) or lease.lives(state.grace, time_ms)
            found.append(
                LeaseStatus(
                    account=queue.account if queue is not None else "",
                    queue=queue.name if queue is not None else "",
                    name=name,
                    batch=batch,
                    partition=partition,
                    messages=lease.messages,
                    opened_ms=lease.opened_ms,
                    deadline_ms=state.grace.until_ms(lease.deadline_ms),
                    state=lease.state if is_told else m.LEASE_EXPIRED,
                    ended_ms=lease.ended_ms,
                )
            )
        return found

    def _groups(self, now_ms: int, limit: int) -> tuple[GroupStatus, ...]:
        """Return up to ``limit`` consumer groups that this member knows, the oldest first."""
        time_ms = self._clock.time_ms(now_ms)
        return tuple(_group_status(each, time_ms) for each in islice(self._state.groups.by_number.values(), limit))


def _group_status(group: Group, time_ms: int) -> GroupStatus:
    row, status = group.row, group.status
    revoking = sum(len(each.revoking) for each in group.consumers.values())
    held = len(group.by_resource) - revoking
    return GroupStatus(
        account=row.account,
        group=row.name,
        generation=status.generation,
        consumers=len(group.consumers),
        idle=sum(not each.held for each in group.consumers.values()),
        held=held,
        revoking=revoking,
        free=max(len(group.present) - len(group.by_resource), 0),
        moves=status.moves,
        rebalancing_ms=max(time_ms - status.started_ms, 0) if status.started_ms else 0,
        rebalanced_ms=status.rebalanced_ms,
        session_ms=row.session_ms,
    )
