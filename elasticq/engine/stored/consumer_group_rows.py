"""The rows of consumer groups, each of which is a mutation: groups, consumers, assignments, the counter of tokens.

Nothing is assigned anew that somebody still holds: an assignment is a row until its consumer has given it back, or is
gone. A resource is a queue by its name in the group's account, with a partition; the row names its incarnation, too.
"""

from typing import Final

from msgspec import Struct

from elasticq.engine.stored.tables import Table
from elasticq.model.ranges import Count, Number, RowTimeMs

WHOLE: Final = -1
"""In the place of a partition: the queue itself."""


class ConsumerGroupSet(Struct, array_like=True, tag=130, frozen=True, gc=False):
    """What a group shares out, and how, from now on.

    account: its owner (model/names.py). One of queue_names, prefix and partitions_of is not empty, or all are.
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
    """The group goes; its consumers and assignments go by mutations of their own."""

    number: Number


class GroupRebalanced(Struct, array_like=True, tag=132, frozen=True, gc=False):
    """Where the sharing out of a group stands.

    changed: the generation in which the consumers changed last: wishes of older ones are void. started_ms: when the
    rebalance began that is not done; 0: none is. due_ms: before this nothing is shared out anew. rebalanced_ms: how
    long the last one took. moves: resources that were taken from a consumer for another one, ever.
    """

    number: Number
    generation: Count
    changed: Count
    moves: Count
    started_ms: RowTimeMs
    due_ms: RowTimeMs
    rebalanced_ms: Count


class ConsumerSet(Struct, array_like=True, tag=133, frozen=True, gc=False):
    """A consumer, whole, as it is from now on. version: of what it holds, as in ``ConsumerChanged``."""

    number: Number
    group: Number
    name: str
    weight: Count
    joined_ms: RowTimeMs
    deadline_ms: RowTimeMs
    version: Number
    address: str = ""


class ConsumerRenewed(Struct, array_like=True, tag=134, frozen=True, gc=False):
    """A consumer's session lasts until ``deadline_ms`` at least."""

    number: Number
    deadline_ms: RowTimeMs


class ConsumerRemoved(Struct, array_like=True, tag=135, frozen=True, gc=False):
    """A consumer is gone; what it held goes by mutations of its own."""

    number: Number


class ResourceAssigned(Struct, array_like=True, tag=136, frozen=True, gc=False):
    """An assignment, whole, as it is from now on; ``token`` is its key, and grows over all groups.

    is_revoked: its consumer is to give it back. wanted_by: who gets it then, if the generation ``wanted_in`` still
    holds; of one that is not revoked: ``wanted_by`` is its consumer where it was asked for, which keeps it there.
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
    """An assignment is over: given back, or its consumer is gone."""

    token: Number
    queue_id: Number


class TokensGiven(Struct, array_like=True, tag=138, frozen=True, gc=False):
    """All tokens and versions up to ``last`` were given, so that none is ever given twice."""

    last: Number


class ConsumerChanged(Struct, array_like=True, tag=139, frozen=True, gc=False):
    """What a consumer holds changed; ``version`` is larger than all before it, and counts with the tokens."""

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

TOKENS: Final = Table("tokens", ("name",), TokensGiven, since=1, is_plain=True)
LAST_TOKEN: Final = "last"
"""The key of the one row of TOKENS."""
CONSUMER_GROUPS: Final = Table("consumer_groups", ("number",), ConsumerGroupSet, since=1, is_plain=True)
REBALANCES: Final = Table("rebalances", ("number",), GroupRebalanced, since=1, is_plain=True)
CONSUMERS: Final = Table("consumers", ("number",), ConsumerSet, since=1, is_plain=True, is_held=True)
ASSIGNMENTS: Final = Table("assignments", ("token",), ResourceAssigned, since=1)
"""Its rows stand in State.groups, as there may be many."""
GROUP_TABLES: Final = (TOKENS, CONSUMER_GROUPS, REBALANCES, CONSUMERS, ASSIGNMENTS)
