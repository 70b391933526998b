"""The rules for conflicts between links: which of two links of one pair stays, and which of two processes keeps a name.

The functions are pure. Both ends of a link get the same decision.
"""

from msgspec import Struct

from elasticq.node.membership.peer import Peer
from elasticq.peers.messages import Hello

SAME_AGE_S = 1.0
MEMBERS_RESERVE = 64  # connections reserved for members and their transfers, which proxies cannot use


def is_rival(one: Peer, other: Peer) -> bool:
    """Return whether two different processes claim the same name or the same member id. Only one of them may live."""
    return (one.id, one.incarnation) != (other.id, other.incarnation) and (one.name == other.name or one.id == other.id)


class Claim(Struct, frozen=True):
    """A process's claim to its name. Times are loop times of this process, in seconds.

    standing_s: the time since which the process has always had at least one link. started_s: its start.
    """

    standing_s: float
    started_s: float
    incarnation: str


def claim_of(hello: Hello, now_s: float) -> Claim:
    return Claim(now_s - hello.standing_ms / 1_000, now_s - hello.uptime_ms / 1_000, hello.peer.incarnation)


def is_elder(one: Claim, other: Claim) -> bool:
    """Return whether ``one`` keeps the name.

    The process that has been linked for longer keeps it, else the one that has run for longer, else the one with the
    lower incarnation. Differences below SAME_AGE_S do not count.

    The rule ignores which process is linked to this member. Otherwise two members could refuse one process each, and
    both processes would end. Time linked comes before age: a process that was paused and meanwhile replaced must not
    end its successor.
    """
    for ones_s, others_s in ((one.standing_s, other.standing_s), (one.started_s, other.started_s)):
        if abs(ones_s - others_s) >= SAME_AGE_S:
            return ones_s < others_s
    return one.incarnation < other.incarnation


def proxies_max(connections_max: int, unproven_max: int) -> int:
    """Return how many proxies may be linked, leaving capacity for members and for unauthenticated connections."""
    return max(1, connections_max - unproven_max - min(MEMBERS_RESERVE, connections_max // 4))


def replaces(new_dialler: str, old_dialler: str) -> bool:
    """Return whether a new link replaces an old link to the same process. Both arguments are member ids.

    If one member dialled both links, the newer one stays: a member dials again only after its old link broke.
    Otherwise the link stays that the member with the lower id dialled.
    """
    return new_dialler <= old_dialler
