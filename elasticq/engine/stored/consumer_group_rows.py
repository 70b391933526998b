"""The rows of consumer groups, which are mutations: groups, consumers, assignments and the counter of tokens.

A resource is not assigned again while a consumer holds it. An assignment stays a row until its consumer releases it or
is removed. A resource is the name of a queue in the group's account, with a partition. The row also has the queue's id,
because a new queue may get the same name.
"""

from typing import Final

from msgspec import Struct

from elasticq.engine.stored.tables import Table
from elasticq.model.ranges import Count, Number, RowTimeMs

WHOLE: Final = -1
"""The partition that means: the whole queue."""


class ConsumerGroupSet(Struct, array_like=True, tag=130, frozen=True, gc=False):
    """The full settings of a group: what it assigns, and how.

    ``account`` is its owner (model/names.py). At most one of queue_names, prefix and partitions_of is not empty.
    """

    number: Number
    account: str
    name: str
    session_ms: Count
    delay_ms: Count
    max_per_consumer: Count
    queue_names: list[str]
    prefix: str = ""
    partitions_of: str = ""


class ConsumerGroupDeleted(Struct, array_like=True, tag=131, frozen=True, gc=False):
    """The deletion of a group. Its consumers and assignments are deleted by mutations of their own."""

    number: Number


class GroupRebalanced(Struct, array_like=True, tag=132, frozen=True, gc=False):
    """The state of the rebalance of a group.

    - changed: The generation of the last change of consumers. A ``wanted_by`` of an older generation is void.
    - moves: The number of resources that were ever revoked from a consumer for another one.
    - started_ms: When the unfinished rebalance began; 0 if none is unfinished.
    - due_ms: Nothing is assigned before this time.
    - rebalanced_ms: How long the last rebalance took.
    """

    number: Number
    generation: Count
    changed: Count
    moves: Count
    started_ms: RowTimeMs
    due_ms: RowTimeMs
    rebalanced_ms: Count


class ConsumerSet(Struct, array_like=True, tag=133, frozen=True, gc=False):
    """The full row of a consumer. ``version`` identifies the set of its assignments, as in ``ConsumerChanged``."""

    number: Number
    group: Number
    name: str
    weight: Count
    joined_ms: RowTimeMs
    deadline_ms: RowTimeMs
    version: Number
    address: str = ""


class ConsumerRenewed(Struct, array_like=True, tag=134, frozen=True, gc=False):
    """The extension of a consumer's session until ``deadline_ms`` at least."""

    number: Number
    deadline_ms: RowTimeMs


class ConsumerRemoved(Struct, array_like=True, tag=135, frozen=True, gc=False):
    """The removal of a consumer. Its assignments are deleted by mutations of their own."""

    number: Number


class ResourceAssigned(Struct, array_like=True, tag=136, frozen=True, gc=False):
    """The full row of an assignment. ``token`` is its key; tokens grow across all groups.

    - is_revoked: Whether its consumer must release it.
    - wanted_by: If revoked, the consumer that gets the resource next, unless ``wanted_in`` is an old generation. If not
      revoked, the consumer itself if it requested the resource, which it then keeps; else 0.
    - wanted_in: The generation of the request.
    """

    token: Number
    group: Number
    queue_id: Number
    name: str
    partition: Count
    consumer: Number
    since_ms: RowTimeMs
    is_revoked: bool = False
    wanted_by: Number = 0
    wanted_in: Count = 0


class ResourceFreed(Struct, array_like=True, tag=137, frozen=True, gc=False):
    """The end of an assignment: its consumer released it or was removed."""

    token: Number
    queue_id: Number


class TokensGiven(Struct, array_like=True, tag=138, frozen=True, gc=False):
    """The counter of tokens and versions. All up to ``last`` are used and never used again."""

    last: Number


class ConsumerChanged(Struct, array_like=True, tag=139, frozen=True, gc=False):
    """A change of a consumer's assignments. ``version`` comes from the counter of tokens, so it always grows."""

    number: Number
    version: Number


GroupMutation = (
    ConsumerGroupSet
    | ConsumerGroupDeleted
    | GroupRebalanced
    | ConsumerSet
    | ConsumerRenewed
    | ConsumerRemoved
    | ResourceAssigned
    | ResourceFreed
    | TokensGiven
    | ConsumerChanged
)

TOKENS: Final = Table("tokens", ("name",), TokensGiven, is_plain=True)
LAST_TOKEN: Final = "last"
"""The key of the one row of TOKENS."""
CONSUMER_GROUPS: Final = Table("consumer_groups", ("number",), ConsumerGroupSet, is_plain=True)
REBALANCES: Final = Table("rebalances", ("number",), GroupRebalanced, is_plain=True)
CONSUMERS: Final = Table("consumers", ("number",), ConsumerSet, is_plain=True, is_held=True)
ASSIGNMENTS: Final = Table("assignments", ("token",), ResourceAssigned)
"""Its rows are in State.groups, because there may be many."""
GROUP_TABLES: Final = (TOKENS, CONSUMER_GROUPS, REBALANCES, CONSUMERS, ASSIGNMENTS)
