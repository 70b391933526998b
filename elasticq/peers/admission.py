"""Decides which of two claims stands: two links of one pair, or two processes of one name. Pure; both ends agree."""

from msgspec import Struct

from elasticq.node.membership.peer import Peer
from elasticq.peers.messages import Hello

SAME_AGE_S = 1.0
MEMBERS_RESERVE = 64  # connections that proxies leave to members and their transfers


def is_rival(one: Peer, other: Peer) -> bool:
    """Tell whether two processes cannot both live: they have one name or one member id."""
    return (one.id, one.incarnation) != (other.id, other.incarnation) and (one.name == other.name or one.id == other.id)


class Claim(Struct, frozen=True):
    """A process's claim to its name, in times of this process's loop.

    standing_s: since when it has had a link to anybody without a break; started_s: since when it has run.
    """

    standing_s: float
    started_s: float
    incarnation: str


def claim_of(hello: Hello, now_s: float) -> Claim:
    return Claim(now_s - hello.standing_ms / 1_000, now_s - hello.uptime_ms / 1_000, hello.peer.incarnation)


def is_elder(one: Claim, other: Claim) -> bool:
    """Tell whether ``one`` keeps the name: it has stood longer, else run longer, else has the lower incarnation.

    Which of them is linked here does not count: two members could then refuse one each, and both would end. Standing
    comes before age, so that a process that was paused and has been replaced meanwhile does not end its successor.
    """
    for ones_s, others_s in ((one.standing_s, other.standing_s), (one.started_s, other.started_s)):
        if abs(ones_s - others_s) >= SAME_AGE_S:
            return ones_s < others_s
    return one.incarnation < other.incarnation


def proxies_max(connections_max: int, unproven_max: int) -> int:
    """Return how many proxies may be linked, so that members find room beside them and what has proved nothing yet."""
    return max(1, connections_max - unproven_max - min(MEMBERS_RESERVE, connections_max // 4))


def replaces(new_dialler: str, old_dialler: str) -> bool:
    """Tell whether a new link takes the place of another to the same process.

    Of two links by one dialler the newer one stays, else the one that the lower member id dialled. A dialler that
    thinks its link stands dials no second one, so its newer link means that the old one broke.
    """
    return new_dialler <= old_dialler
