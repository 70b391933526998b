"""The checks at the end of a run, when all faults have ended and all messages were received and deleted."""

from __future__ import annotations

from elasticq.checks.queue import check
from elasticq.sim.clients import Clients
from elasticq.sim.cluster import Cluster
from elasticq.sim.invariants import Invariants
from elasticq.sim.member import Member
from elasticq.sim.operator import Operator
from elasticq.sim.workload import Workload

RECOVERY_MAX_US = 5_000_000  # from the time when faults have ended and a quorum can vote to a serving master
CLIENT_TURNS_US = 3_000_000  # an attempt may hang this long before its client tries another process
BEHIND_ENTRIES_MAX = 20
NO_PROGRESS, NO_MASTER, MOVE_STUCK = "no_progress", "no_master", "move_stuck"
ORDER_NOT_DONE, LEFT_BEHIND, LEFT_OUT = "order_not_done", "left_behind", "left_out"


def judge_at_rest(
    cluster: Cluster, judge: Invariants, workload: Workload, clients: Clients, operator: Operator
) -> None:
    """Check recovery, orders, members, rows and the history of the clients. Record findings in the trace."""
    trace, now_us = cluster.trace, cluster.scheduler.now_us
    if cluster.master is None:
        trace.found(NO_MASTER, "no master at the end")
    heal_us = cluster.scenario.heal_ms * 1_000
    able_us = max(heal_us, judge.voteless_us)
    first_us = workload.first_write_after_heal_us
    if first_us is None or first_us - able_us > RECOVERY_MAX_US + CLIENT_TURNS_US:
        trace.found(NO_PROGRESS, f"healed at {able_us} us, the first write succeeded at {first_us}")
    served_us = judge.served_us
    if served_us is None or served_us - able_us > RECOVERY_MAX_US:
        trace.found(NO_PROGRESS, f"healed at {able_us} us, a master served at {served_us}")
    undone = [task for task in operator.tasks if not task.is_tried_once and not task.is_void()]
    if undone:
        orders = ", ".join(str(task.order()) for task in undone)
        trace.found(ORDER_NOT_DONE, f"{orders}: still not done at {now_us} us")
    master = cluster.master
    if master is not None and master.node is not None and master.node.state.moving:
        trace.found(MOVE_STUCK, f"{list(master.node.state.moving.values())} at the end")
    for member in cluster.members:
        if member.node is not None:
            judge.compare_rows(member)
        _check_caught_up(cluster, member)
    drain_us = workload.drain_us if clients.is_drained else None
    history = judge.without_excused(workload.history)
    for finding in check(history, jumps=judge.jumps, drain_us=drain_us):
        trace.found(finding.name, finding.evidence)


def _check_caught_up(cluster: Cluster, member: Member) -> None:
    """Check that the member has caught up, and that a memory-only member is a voter again."""
    master, node = cluster.master, member.node
    if master is None or master.node is None or node is None or not member.is_wanted:
        return
    if node.applied_index + BEHIND_ENTRIES_MAX < master.node.replica.commit_index:
        cluster.trace.found(LEFT_BEHIND, f"{member.name} has applied {node.applied_index} at the end")
    if member.is_volatile and member.id not in master.node.replica.voters:
        cluster.trace.found(LEFT_OUT, f"{member.id} is no voter at the end")
