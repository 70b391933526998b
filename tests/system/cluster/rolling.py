"""Graceful restarts of members whose SQS port a supervisor keeps open, one after another, the clients' own included."""

import os
import signal
from pathlib import Path

from tests.system.cluster.cluster import Cluster, Member, until

SUPERVISED = ("--supervise",)
"""``Cluster(extra=...)``"""


def serving_pid(member: Member) -> int:
    """Of the one child of its supervisor; 0 while there is none."""
    assert member.process
    pid = member.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else 0


def restart_gracefully(cluster: Cluster, name: str) -> None:
    """Returns when all members are ready again."""
    member = cluster[name]
    assert member.process
    before = serving_pid(member)
    os.kill(member.process.pid, signal.SIGHUP)
    until(lambda: serving_pid(member) not in (0, before), f"{name} is started again: {member.said()}")
    cluster.wait_ready()


def restart_each(cluster: Cluster) -> None:
    for name in cluster.names():
        restart_gracefully(cluster, name)
