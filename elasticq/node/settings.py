"""The settings that a Node is made with, and what it reports of itself; plain values, no files."""

from typing import Literal

from msgspec import Struct

from elasticq.engine.context import Sign
from elasticq.model.commands import DeclareQueue
from elasticq.model.limits import STRICT, Limits
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION

Mode = Literal["async", "one", "majority", "all"]


class NodeSettings(Struct, frozen=True, kw_only=True):
    """Settings of one member.

    member_id: unique for ever, its name, a dash and 16 hex digits; voters: the members whose
    majority commits where the log names none (empty: this one waits to be one of ``nodes``
    founders, or to join); volatile: the storage keeps nothing, so a record counts as durable
    when it is made (``--memory``).
    incarnation: of the process, new at each of its starts; empty: made from the entropy.
    address (host:port of the peer port), http, admin (URLs): where this member is found; http_port: where it listens.
    nodes: how many fresh members form a cluster together; cluster_name: only members with the same one do;
    mode: when a send to a standard queue is answered (docs/guarantees.md); all_timeout_ms: how long
    mode ``all`` waits for the last voter.
    sixty_second_rules: enforce AWS's 60 s between two purges and between delete and
    re-create of a name.
    single_region: queues and ARNs are not told apart by their regions.
    template: how a queue is made that is used before it was created; None: such a use is an error.
    sign: signs the envelopes that topics put into queues; None: they are not signed.
    limits: how much a call may hold or ask for. Of these two the master's are in force.
    memory_bytes: contents of queues that fit are kept in memory up to this; volatile members keep all,
    and refuse sends above memory_bytes_max (0: no bound).
    broken_link_ms: the silence after which a voter whose link to the master broke may help another one.
    hold_ms: how long a call waits for a master, beside a receive's own wait; 0: one that may change something waits
    for ``read_wait_ms``, and only if a master gave it back or hands over.
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
    nodes: int = 1
    cluster_name: str = "elasticq"
    mode: Mode = "majority"
    all_timeout_ms: int = 5_000
    read_wait_ms: int = 3_000
    hold_ms: int = 0
    log_kept_bytes: int = 32 * 1_048_576


class MemberStatus(Struct, frozen=True, kw_only=True):
    """One member as this one sees it.

    role: master | follower | learner | unknown; lag: entries behind the commit index, None where
    this member does not know; replaces: the id of the dead voter whose name it came under.
    """

    id: str
    name: str
    role: str
    voter: bool
    is_linked: bool
    lag: int | None
    address: str = ""
    http: str = ""
    admin: str = ""
    replaces: str = ""


class LeaseStatus(Struct, frozen=True):
    """What ``/leases`` tells of one lease; ``state`` is open, sealed, committed, given_back or expired."""

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
    """What ``/groups`` tells of one consumer group.

    idle: how many of its consumers hold nothing. held, revoking, free: how many of its resources a consumer has, is to
    give back, and nobody has. rebalancing_ms: for how long its resources have been shared out anew by now, 0 where they
    are not; rebalanced_ms: how long that took the last time.
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
    """What ``/ready`` and ``/cluster`` tell. ``reason`` is empty when ready.

    stale_ms: time since a master was heard (0 on a master); discarded: entries that were acknowledged in mode
    async or one and then dropped for a newer master's; digests: of comparisons of rows, by the log
    index of the first part (VerifyRows); leases: how many are remembered, living or not; held_calls: how many wait for
    a master; proxies: the names of those that are linked; they are no members. groups: as many as were asked for.
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
