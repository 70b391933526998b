"""The greeting that a member sends when it meets another one: an entry of the address book, which gives no vote."""

from msgspec import Struct

from elasticq.model.ranges import ClusterId, Count, MemberId, PeerText


class Peer(Struct, array_like=True, frozen=True, gc=False):
    """The greeting of one process.

    id: its member id.
    name: its ``--node-id``.
    incarnation: new at each start of the process.
    cluster_name: only members with the same name communicate.
    cluster: the cluster id; empty until the process belongs to a cluster.
    nodes: how many members are to form the cluster (0: this member only joins).
    is_fresh: the member has no log, no vote and no cluster.
    address: host:port of its peer port.
    http, admin: URLs of its other ports; empty without them.
    level: the newest feature level that it understands.
    is_proxy: it stores nothing, never votes and belongs to no cluster. Members report the master to it.
    region: its ``node.region``; empty from versions that do not send it.
    has_one_region: its ``node.single_region``.
    http_port, admin_port: its ports, which ``http`` and ``admin`` need not name; 0 without them.
    """

    id: MemberId
    name: PeerText
    incarnation: ClusterId
    cluster_name: PeerText
    cluster: ClusterId
    nodes: Count
    is_fresh: bool
    is_volatile: bool
    level: Count
    address: PeerText
    http: PeerText
    admin: PeerText
    is_proxy: bool = False
    region: PeerText = ""
    has_one_region: bool = False
    http_port: Count = 0
    admin_port: Count = 0
