"""The faults of proxies. Each function returns whether the fault had an effect.

``until`` schedules an action for the end of a fault.
"""

from __future__ import annotations

from collections.abc import Callable

from elasticq.sim.cluster import Cluster
from elasticq.sim.faults import Fault
from elasticq.sim.proxy import STOP_US

Until = Callable[[Fault, Callable[[], None]], None]


def crash_proxy(cluster: Cluster, fault: Fault, until: Until) -> bool:
    proxy = cluster.proxies[fault.member]
    is_up = proxy.node is not None
    proxy.crash()
    until(fault, proxy.start)
    return is_up


def stop_proxy(cluster: Cluster, fault: Fault, until: Until) -> bool:
    """Stop a proxy gracefully, and start it again after its process has surely ended."""
    proxy = cluster.proxies[fault.member]
    is_up = proxy.node is not None and not proxy.is_paused
    proxy.stop()
    until(fault, lambda: cluster.scheduler.schedule(STOP_US, proxy.start))
    return is_up


def cuts_of_proxy(cluster: Cluster, fault: Fault) -> list[tuple[str, str]]:
    """Return the links, in both directions, between a proxy and the member of the fault, or all members."""
    proxy, members = cluster.proxies[fault.member], cluster.members
    others = members if fault.peer < 0 else [members[fault.peer]]
    return [pair for each in others for pair in ((proxy.id, each.id), (each.id, proxy.id))]
