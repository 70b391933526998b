"""The settings of a Node and its status, as plain values without files."""

from typing import Literal

from msgspec import Struct

from elasticq.engine.context import Sign
from elasticq.model.commands import DeclareQueue
from elasticq.model.limits import STRICT, Limits
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION

Mode = Literal["async", "one", "majority", "all"]


class NodeSettings(Struct, frozen=True, kw_only=True):
    """The settings of one member.

    member_id: unique for ever: its name, a dash and 16 hex digits.
    voters: the members whose majority commits while the log names no voters. If it is empty, the member waits to found
        a cluster with ``nodes`` members, or to join one.
    volatile: the storage keeps nothing, so a record counts as durable when it is made (``--memory``).
    incarnation: of the process, new at each start; empty: made from the entropy.
    address, http, admin: where others find this member: host:port of the peer port, and URLs.
    http_port, admin_port: the ports on which this member listens; 0 without them.
    nodes: how many fresh members form a cluster together.
    cluster_name: only members with the same name form a cluster.
    mode: when a send to a standard queue is answered (docs/guarantees.md).
    all_timeout_ms: how long mode ``all`` waits for the last voter.
    sixty_second_rules: enforce AWS's 60 s between two purges, and between deleting and re-creating a queue.
    single_region: the region does not distinguish queues and ARNs.
    template: the attributes of a queue that is created at its first use; None: such a use is an error.
    sign: signs the messages that topics put into queues; None: they are not signed.
    limits: how much a call may contain or request. For ``template`` and ``limits`` the master's settings apply.
    memory_bytes: contents of queues that fit are kept in memory up to this bound. Memory-only members keep all
        contents.
    memory_bytes_max: memory-only members refuse sends above it (0: no bound).
    broken_link_ms: after this silence a voter whose link to the master broke may vote for another master.
    hold_ms: how long a call waits for a master, in addition to a receive's own wait. With 0 a call that may change
        something waits only for ``read_wait_ms``, and only if a master returned it or is handing over.
    """

    member_id: str
    voters: tuple[str, ...]
    volatile: bool = False
    region: str = DEFAULT_REGION
    single_region: bool = False
    default_account: str = DEFAULT_ACCOUNT
    sixty_second_rules: bool = False
    template: DeclareQueue | None = None
    sign: Sign | None = None
    limits: Limits = STRICT
    heartbeat_ms: int = 100
    election_min_ms: int = 700
    election_max_ms: int = 1_400
    broken_link_ms: int = 180
    batch_bytes_max: int = 1_048_576
    memory_bytes: int = 64 * 1_048_576
    memory_bytes_max: int = 0
    incarnation: str = ""
    address: str = ""
    http: str = ""
    admin: str = ""
    http_port: int = 0
    admin_port: int = 0
    nodes: int = 1
    cluster_name: str = "elasticq"
    mode: Mode = "majority"
    all_timeout_ms: int = 5_000
    read_wait_ms: int = 3_000
    hold_ms: int = 0
    log_kept_bytes: int = 32 * 1_048_576


class MemberStatus(Struct, frozen=True, kw_only=True):
    """The status of one member as this member sees it.

    role: master | follower | learner | unknown.
    lag, lag_ms: entries behind the commit index, and for how long the oldest of them has been committed or waited for
        it; None if this member does not know that, as for a member without a link.
    lost_ms: how long ago the link to it broke; None if there is a link, or there was none since the start.
    replaces: the id of the dead voter whose name this member uses.
    """

    id: str
    name: str
    role: str
    voter: bool
    is_linked: bool
    lag: int | None
    lag_ms: int | None = None
    lost_ms: int | None = None
    address: str = ""
    http: str = ""
    admin: str = ""
    replaces: str = ""


class LeaseStatus(Struct, frozen=True):
    """The status of one lease for ``/leases``. ``state`` is open, sealed, committed, given_back or expired."""

    account: str
    queue: str
    name: str
    batch: int
    partition: int
    messages: int
    opened_ms: int
    deadline_ms: int
    state: str
    ended_ms: int


class GroupStatus(Struct, frozen=True):
    """The status of one consumer group for ``/groups``.

    idle: how many of its consumers hold nothing.
    held: how many resources a consumer holds.
    revoking: how many resources a consumer must release.
    free: how many resources no consumer holds.
    rebalancing_ms: how long the current rebalance has taken so far; 0 without one.
    rebalanced_ms: how long the last rebalance took.
    """

    account: str
    group: str
    generation: int
    consumers: int
    idle: int
    held: int
    revoking: int
    free: int
    moves: int
    rebalancing_ms: int
    rebalanced_ms: int
    session_ms: int


class NodeStatus(Struct, frozen=True, kw_only=True):
    """The status of a member for ``/ready`` and ``/cluster``.

    reason: why the member is not ready; empty if it is.
    stale_ms: time since a master was heard, or since this member ceased to be it; 0 on a master.
    discarded: entries that were acknowledged in mode async or one, and then dropped for those of a newer master.
    digests: digests of comparisons of rows, by the log index of the first part (VerifyRows).
    queues: how many queues clients can see.
    leases: how many leases are remembered, active or ended.
    held_calls: how many calls wait for a master.
    proxies: the names of the linked proxies, which are not members.
    groups: as many consumer groups as were requested.
    """

    member_id: str
    role: str  # master | follower | candidate | proxy
    master: str | None
    term: int
    commit_index: int
    applied_index: int
    last_index: int
    ready: bool
    reason: str
    time_ms: int
    voters: tuple[str, ...]
    match: dict[str, int]
    queues: int
    waiters: int
    contents_bytes: int
    cluster_id: str = ""
    members: tuple[MemberStatus, ...] = ()
    stale_ms: int = 0
    discarded: int = 0
    set_aside: int = 0
    digests: dict[int, str] = {}
    leases: int = 0
    held_calls: int = 0
    proxies: tuple[str, ...] = ()
    groups: tuple[GroupStatus, ...] = ()
