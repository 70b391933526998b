"""Which of two claims stands: two links of one pair, two processes of one name. Pure; both ends judge alike."""

from msgspec import Struct

from elasticq.node.peer import Peer
from elasticq.peers.messages import Hello

SAME_AGE_S = 1.0


def is_rival(one: Peer, other: Peer) -> bool:
    """Two processes that cannot both live: of one name, or of one member id."""
    return (one.id, one.boot) != (other.id, other.boot) and (one.name == other.name or one.id == other.id)


class Claim(Struct, frozen=True):
    """Times are of this process's loop. standing_s: linked to anybody without a break since; started_s: runs since."""

    standing_s: float
    started_s: float
    boot: str


def claim_of(hello: Hello, now_s: float) -> Claim:
    return Claim(now_s - hello.standing_ms / 1_000, now_s - hello.uptime_ms / 1_000, hello.peer.boot)


def is_elder(one: Claim, other: Claim) -> bool:
    """Whether ``one`` keeps the name: who stands longer, else who runs longer, else the lower boot.

    Not who is linked here: two members could then refuse one each, and both would end. Standing comes
    before age, so that a process that was paused and has been replaced meanwhile does not end its heir.
    """
    for ones_s, others_s in ((one.standing_s, other.standing_s), (one.started_s, other.started_s)):
        if abs(ones_s - others_s) >= SAME_AGE_S:
            return ones_s < others_s
    return one.boot < other.boot


def replaces(new_dialler: str, old_dialler: str) -> bool:
    """Of two links to one process: of one dialler the newer one stays, else the one that the lower member id dialled.

    A dialler that thinks its link stands dials no second one, so its newer link means that the old one broke.
    """
    return new_dialler <= old_dialler
