"""What a member tells of itself when it meets another: an entry of the address book, which gives no vote."""

from msgspec import Struct

from elasticq.model.ranges import ClusterId, Count, MemberId, PeerText


class Peer(Struct, array_like=True, frozen=True, gc=False):
    """The greeting of one process.

    id: its member id; name: its ``--node-id``; incarnation: new at each start of the process;
    cluster_name: only members with the same one talk; cluster: the cluster id, empty until it belongs to one;
    nodes: how many shall form the cluster (0: it only joins); is_fresh: no log, no vote, no cluster;
    address: host:port of its peer port; http, admin: URLs of its other ports, empty if there is none;
    level: the newest feature level that it understands; is_proxy: it stores nothing, never votes and belongs to no
    cluster, and is told who is master; region: its ``node.region``, empty from versions that do not tell it;
    has_one_region: its ``node.single_region``; http_port: where it listens for SQS, which ``http`` need not name; 0
    from versions that do not tell it.
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
