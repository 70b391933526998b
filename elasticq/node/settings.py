"""What a Node is told at its birth; plain values, no files."""

from msgspec import Struct

from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION


class NodeSettings(Struct, frozen=True, kw_only=True):
    """Settings of one member.

    member_id: unique for ever; voters: the members whose majority commits (this one
    included); volatile: the storage keeps nothing, so a record counts as durable when
    it is made (``--memory``).
    sixty_second_rules: enforce AWS's 60 s between two purges and between delete and
    re-create of a name.
    memory_bytes: contents of queues that fit are kept in memory up to this; volatile members keep all.
    """

    member_id: str
    voters: tuple[str, ...]
    volatile: bool = False
    region: str = DEFAULT_REGION
    default_account: str = DEFAULT_ACCOUNT
    sixty_second_rules: bool = False
    heartbeat_ms: int = 100
    election_min_ms: int = 700
    election_max_ms: int = 1_400
    batch_bytes_max: int = 1_048_576
    memory_bytes: int = 64 * 1_048_576


class NodeStatus(Struct, frozen=True, kw_only=True):
    """What ``/ready`` and ``/cluster`` tell. ``reason`` is empty when ready."""

    member_id: str
    role: str  # master | follower | candidate
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
