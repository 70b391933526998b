"""The answer to GET /cluster: this member's view of the cluster, as plain values for JSON."""

from elasticq.node.settings import MemberStatus, NodeStatus


def document(node_name: str, status: NodeStatus) -> dict[str, object]:
    """Return the page as a JSON object. A name is a member's ``--node-id``; an id is its member id, unique for ever."""
    master = _member(status, status.master)
    return {
        "node": node_name,
        "member": status.member_id,
        "role": status.role,
        "master": _name(node_name, status),
        "master_admin": (master.admin or None) if master is not None else None,
        "term": status.term,
        "commit": status.commit_index,
        "applied": status.applied_index,
        "cluster": status.cluster_id,
        "ready": status.ready,
        "reason": status.reason,
        "stale_ms": status.stale_ms,
        "discarded": status.discarded,
        "set_aside": status.set_aside,
        "digests": {str(index): digest for index, digest in status.digests.items()},
        "proxies": list(status.proxies),
        "members": [_row(member) for member in status.members],
    }


def _member(status: NodeStatus, member_id: str | None) -> MemberStatus | None:
    return next((member for member in status.members if member.id == member_id), None)


def _name(node_name: str, status: NodeStatus) -> str | None:
    if status.master is None:
        return None
    if status.master == status.member_id:
        return node_name
    master = _member(status, status.master)
    # A member id is the name, a dash and 16 hex digits, so it contains the name of a master that is not yet known.
    return master.name if master is not None and master.name else status.master.rpartition("-")[0] or status.master


def _row(member: MemberStatus) -> dict[str, object]:
    return {
        "id": member.id,
        "name": member.name,
        "role": member.role,
        "voter": member.voter,
        "linked": member.is_linked,
        "lag": member.lag,
        "lag_ms": member.lag_ms,
        "lost_ms": member.lost_ms,
        "address": member.address,
        "http": member.http,
        "admin": member.admin,
        "replaces": member.replaces,
    }
