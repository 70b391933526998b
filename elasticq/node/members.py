"""Who belongs to the cluster and how members come and go: founding, joining, replacing, the operator's orders.

What members say when they meet fills an address book; quorum counts the voters
in the log. ``nodes`` fresh members that have all met found a cluster: the one
with the lowest id writes the first entry, the same for all, and each is a voter
from the moment it has it. Whoever meets a cluster before joins it as a learner.
"""

from msgspec import Struct

from elasticq.engine import mutations as m
from elasticq.engine.judge import Unfit
from elasticq.engine.judge import judge as judge_mutations
from elasticq.model.ranges import PEERS_MAX
from elasticq.node.effects import Ticket
from elasticq.node.orders import (
    AddVoter,
    Order,
    OrderDone,
    OrderOutcome,
    OrderRefused,
    RemoveVoter,
    ReplaceVoter,
)
from elasticq.node.peer import Peer
from elasticq.node.settings import MemberStatus, NodeSettings
from elasticq.replication.lottery import Lottery
from elasticq.replication.messages import Found, FrameError
from elasticq.replication.records import Entry, Voter
from elasticq.replication.replica import MASTER, Replica

FEATURE_LEVEL = 1
FOUNDING_TERM = 1  # nobody is master in it
CAUGHT_UP_ENTRIES = 1_000  # a learner no further behind than this may become a voter


class _Promise(Struct):
    """An order that is answered once ``index`` is committed in ``term``."""

    ticket: Ticket
    term: int
    index: int
    text: str


class Members:
    """Bookkeeping around ``replica``; ``answered`` are orders whose answers may leave."""

    def __init__(self, settings: NodeSettings, replica: Replica, lottery: Lottery) -> None:
        self._settings = settings
        self._replica = replica
        self._lottery = lottery
        self.boot = settings.boot or lottery.token(b"boot", 8).hex()
        self.peers: dict[str, Peer] = {}
        self.linked: set[str] = set()
        self.was_removed = False
        self.answered: list[tuple[Ticket, OrderOutcome]] = []
        self._promises: list[_Promise] = []
        self._replacing: dict[str, tuple[str, Ticket | None]] = {}  # new id -> (old id, who asked)

    # --- what this member says and hears ------------------------------------------

    @property
    def is_fresh(self) -> bool:
        return self._is_nowhere and self._replica.term == 0

    @property
    def _is_nowhere(self) -> bool:
        """No log and no cluster; it may have a term, of one that it was about to join when it went down."""
        replica = self._replica
        return replica.log.last_index == 0 and not replica.voters and not replica.cluster

    def introduce(self) -> Peer:
        settings = self._settings
        return Peer(
            id=settings.member_id,
            name=name_of(settings.member_id),
            boot=self.boot,
            cluster_name=settings.cluster_name,
            cluster=self._replica.cluster,
            nodes=settings.nodes,
            is_fresh=self.is_fresh,
            is_volatile=settings.volatile,
            level=FEATURE_LEVEL,
            address=settings.address,
            http=settings.http,
            admin=settings.admin,
        )

    def met(self, peer: Peer, now_ms: int) -> None:
        """A greeting came, the first or a renewed one."""
        if peer.cluster_name != self._settings.cluster_name or peer.id == self._settings.member_id:
            return
        self.peers[peer.id] = peer
        self.linked.add(peer.id)
        self._forget_strangers()
        replica = self._replica
        if peer.cluster:
            self._meet_cluster(peer)
        elif self.is_fresh:
            self._found_if_complete(now_ms)
        if peer.is_fresh:
            self._pass_on_founding(peer.id)
        replica.acquaintances.discard(peer.id)
        if replica.cluster and peer.cluster == replica.cluster:
            replica.acquaintances.add(peer.id)

    def _forget_strangers(self) -> None:
        """Members that are neither linked nor voters, where too many have come and gone."""
        if len(self.peers) > PEERS_MAX:
            kept = self.linked.union(self._replica.voters)
            self.peers = {each: peer for each, peer in self.peers.items() if each in kept}

    @property
    def linked_peers(self) -> list[Peer]:
        return [self.peers[each] for each in self.linked]

    def lost(self, member_id: str, now_ms: int) -> None:
        """It may have been the one too many."""
        self.linked.discard(member_id)
        if self._is_nowhere:
            clusters = self._clusters_met()
            if len(clusters) == 1:
                self._replica.cluster = clusters.pop()
                self._know_acquaintances()
            elif not clusters and self.is_fresh:
                self._found_if_complete(now_ms)

    def _know_acquaintances(self) -> None:
        cluster = self._replica.cluster
        self._replica.acquaintances |= {each for each in self.linked if self.peers[each].cluster == cluster}

    def _meet_cluster(self, peer: Peer) -> None:
        """A member without a cluster joins the one that it meets, unless there are two."""
        if self._is_nowhere and len(self._clusters_met()) == 1:
            self._replica.cluster = peer.cluster

    def _clusters_met(self) -> set[str]:
        return {self.peers[each].cluster for each in self.linked if self.peers[each].cluster}

    # --- founding -------------------------------------------------------------------

    def _founders(self) -> list[Peer]:
        fresh = [self.peers[each] for each in self.linked if self.peers[each].is_fresh]
        return sorted((*fresh, self.introduce()), key=lambda peer: peer.id)

    def _found_if_complete(self, now_ms: int) -> None:
        """All of ``nodes`` must have met and agree; the one with the lowest id founds.

        The first entry has no time: cluster time never falls below an entry's, and one wall clock may be wrong.
        """
        founders = self._founders()
        if self.trouble or len(founders) != self._settings.nodes or founders[0].id != self._settings.member_id:
            return
        voters = tuple(Voter(peer.id, peer.address) for peer in founders)
        payload = m.encode([founding(self._lottery)])
        self._replica.found(Entry(1, FOUNDING_TERM, 0, payload, voters), now_ms)
        self.founded()
        for peer in founders[1:]:
            self._pass_on_founding(peer.id)

    def accepts(self, found: Found) -> bool:
        """A fresh member signs what names it and as many as it was told of. FrameError for what founds nothing."""
        voters = found.entry.voters or ()
        if [type(mutation) for mutation in read_payload(found.entry)] != [m.ClusterFounded]:
            raise FrameError("its entry founds no cluster")
        return (
            self.is_fresh
            and found.entry.index == 1
            and found.entry.term == FOUNDING_TERM
            and len(voters) == self._settings.nodes
            and any(voter.id == self._settings.member_id for voter in voters)
        )

    def founded(self) -> None:
        """The first entry is here: its cluster id is this member's, committed or not, as all founders have the same."""
        entry = self._founding_entry()
        if entry is not None:
            first = m.decode(entry.payload)[0]
            assert isinstance(first, m.ClusterFounded)
            self._replica.cluster = first.cluster_id

    def _founding_entry(self) -> Entry | None:
        log = self._replica.log
        if log.base_index == 0 and log.last_index > 0:
            entry = log.entry(1)
            return entry if entry.term == FOUNDING_TERM and entry.voters is not None else None
        return None

    def _pass_on_founding(self, to: str) -> None:
        entry = self._founding_entry()
        if entry is not None and entry.voters is not None and any(voter.id == to for voter in entry.voters):
            self._replica.send_founding(to, entry)

    # --- what is wrong ----------------------------------------------------------------

    @property
    def trouble(self) -> str:
        """Why this member cannot become part of a cluster, and what to do; empty if nothing is known."""
        replica = self._replica
        if self.was_removed:
            return "this member was removed from the cluster; stop it, or empty its data directory to let it join anew"
        others = self._clusters_met() - {replica.cluster}
        if others and replica.cluster:
            return (
                f"another cluster ({', '.join(sorted(others))}) goes by the same name: "
                "give one of them another --cluster-name, or empty the data directories of its members"
            )
        if len(others) > 1:
            return f"there are {len(others)} clusters of this name: give them different names (--cluster-name)"
        if self.is_fresh and not others:
            return self._founding_trouble()
        return ""

    def _founding_trouble(self) -> str:
        nodes = self._settings.nodes
        founders = self._founders()
        contradicting = sorted({peer.nodes for peer in founders} - {nodes})
        if contradicting:
            return f"--nodes contradicts: {nodes} here, {contradicting[0]} elsewhere: start all with the same number"
        if len(founders) > nodes:
            names = ", ".join(peer.name for peer in founders)
            return f"{len(founders)} fresh members ({names}) for --nodes {nodes}: stop the ones that shall join later"
        return ""

    def waiting_for(self) -> str:
        """Why a member without a cluster is not ready."""
        if self.trouble:
            return self.trouble
        replica = self._replica
        if self.is_fresh:
            return f"waiting to found the cluster: {len(self._founders())} of {self._settings.nodes} members have met"
        if not replica.membership.is_voter:
            old = self.predecessor(self._settings.member_id)
            if old and not self._settings.volatile:
                name = name_of(old)
                return f"a learner under the name of {old}: 'elasticq cluster replace {name}' puts it in its place"
        return ""

    # --- names ------------------------------------------------------------------------

    def predecessor(self, member_id: str) -> str:
        """The voter that had the name of this non-voter."""
        replica = self._replica
        if member_id in replica.voters:
            return ""
        name = name_of(member_id)
        return next((voter for voter in replica.voters if name_of(voter) == name), "")

    def _find(self, name: str, among: tuple[str, ...]) -> str:
        if name in among:
            return name
        found = [each for each in among if name_of(each) == name]
        return found[0] if len(found) == 1 else ""

    # --- orders (master) --------------------------------------------------------------

    @property
    def _candidates(self) -> list[str]:
        """Learners that are there. Others are known for a while: voters that were taken out, learners that died."""
        return [each for each in self._replica.tracker.learners if each in self.linked]

    def order(self, order: Order, ticket: Ticket) -> tuple[Voter, ...] | None:
        """The voters to be proposed; None: it is answered, or will be without that."""
        if self._replica.role != MASTER:
            self._refuse(ticket, "this member is not the master: ask the master")
            return None
        match order:
            case AddVoter():
                return self._add(order.member, ticket)
            case RemoveVoter():
                return self._remove(order.member, ticket)
            case ReplaceVoter():
                return self._replace(order.member, ticket)
        return None

    def _refuse(self, ticket: Ticket, reason: str) -> None:
        self.answered.append((ticket, OrderRefused(reason)))

    def promise(self, ticket: Ticket, text: str) -> None:
        """Answered when the log's newest entry is committed."""
        replica = self._replica
        self._promises.append(_Promise(ticket, replica.term, replica.log.last_index + 1, text))

    def other_voter(self, name: str) -> str:
        """The id of the other voter called ``name``; empty if there is none."""
        return self._find(name, self._replica.others)

    def _may_change(self, ticket: Ticket) -> bool:
        if self._replica.may_change() and not self._replacing:
            return True
        self._refuse(ticket, "another change of the voters is under way: try again when it is committed")
        return False

    def _add(self, name: str, ticket: Ticket) -> tuple[Voter, ...] | None:
        learner = self._find(name, tuple(self._candidates))
        if not learner:
            self._refuse(ticket, f"{name} is no learner: start it with this cluster's seeds first")
        elif old := self.predecessor(learner):
            self._refuse(ticket, f"{learner} has come under the name of the voter {old}: give the order 'replace'")
        elif not self.has_caught_up(learner):
            self._refuse(ticket, f"{name} has not caught up yet: try again")
        elif self._may_change(ticket):
            self.promise(ticket, f"{learner} is a voter")
            return self._with(learner)
        return None

    def _remove(self, name: str, ticket: Ticket) -> tuple[Voter, ...] | None:
        voter = self._find(name, self._replica.voters)
        if not voter:
            self._refuse(ticket, f"{name} is no voter")
        elif len(self._replica.voters) == 1:
            self._refuse(ticket, f"{name} is the last voter")
        elif self._may_change(ticket):
            self.promise(ticket, f"{voter} is no voter any more")
            return self._without(voter)
        return None

    def _replace(self, name: str, ticket: Ticket) -> tuple[Voter, ...] | None:
        old = self._find(name, self._replica.voters)
        new = next((each for each in self._candidates if old and self.predecessor(each) == old), "")
        if not old and self._find(name, tuple(self._candidates)):
            return self._add(name, ticket)  # the old one was taken out before the mastership moved
        if not new:
            self._refuse(ticket, f"no member has come under the name of {name}")
        elif old in self.linked:
            self._refuse(ticket, f"{old} is alive")
        elif not self.has_caught_up(new):
            self._refuse(ticket, f"{new} has not caught up yet: try again")
        elif self._may_change(ticket):
            self._replacing[new] = (old, ticket)
        return None

    def has_caught_up(self, learner: str) -> bool:
        replica = self._replica
        progress = replica.followers[learner]
        is_near = progress.match_index + CAUGHT_UP_ENTRIES >= replica.log.last_index
        return is_near and not progress.probing and not progress.offered_index and progress.match_index > 0

    def _with(self, learner: str) -> tuple[Voter, ...]:
        peer = self.peers.get(learner)
        return (*self._replica.membership.voters, Voter(learner, peer.address if peer else ""))

    def _without(self, old: str) -> tuple[Voter, ...]:
        return tuple(voter for voter in self._replica.membership.voters if voter.id != old)

    def next_change(self) -> tuple[Voter, ...] | None:
        """The next step of replacing a member by the one that came under its name.

        The dead one goes first: were the new one added before and died again, the quorum would be out of reach.
        """
        replica = self._replica
        if not replica.may_change():
            return None
        if not self._replacing:
            self._replace_volatile()
        for new, (old, ticket) in list(self._replacing.items()):
            if old in replica.voters:
                return self._without(old) if len(replica.voters) > 1 else None
            del self._replacing[new]
            if new in self._candidates:
                if ticket is not None:
                    self.promise(ticket, f"{new} is a voter in the place of {old}")
                return self._with(new)
            if ticket is not None:
                self._refuse(ticket, f"{new} is gone; {old} is no voter any more")
        return None

    def _replace_volatile(self) -> None:
        """A memory-only member that restarted replaces its predecessor by itself.

        Its predecessor may be out already, where the mastership moved meanwhile: then the voters are too few.
        """
        is_short = len(self._replica.voters) < self._settings.nodes
        for learner in self._candidates:
            peer, old = self.peers.get(learner), self.predecessor(learner)
            if not (peer and peer.is_volatile and self.has_caught_up(learner)):
                continue
            if (old and old not in self.linked) or (not old and is_short):
                self._replacing[learner] = (old, None)
                return

    def keep_promises(self) -> None:
        """Answer the orders whose entry is committed."""
        if not self._promises:
            return
        replica = self._replica
        for promise in list(self._promises):
            if promise.index <= replica.commit_index:
                self._promises.remove(promise)
                self.answered.append((promise.ticket, OrderDone(promise.text)))

    def lost_mastership(self) -> None:
        waiting = [promise.ticket for promise in self._promises]
        waiting += [ticket for _, ticket in self._replacing.values() if ticket is not None]
        for ticket in waiting:
            self._refuse(ticket, "the mastership was lost meanwhile: look at the status and try again")
        self._promises.clear()
        self._replacing.clear()

    # --- status -----------------------------------------------------------------------

    def statuses(self) -> tuple[MemberStatus, ...]:
        replica = self._replica
        known = dict.fromkeys((*replica.voters, *replica.followers))
        known.update(dict.fromkeys(each for each in self.linked if self.peers[each].cluster == replica.cluster))
        known.setdefault(self._settings.member_id)
        return tuple(self._status(each) for each in sorted(known))

    def _status(self, member_id: str) -> MemberStatus:
        replica = self._replica
        is_own = member_id == self._settings.member_id
        peer = self.introduce() if is_own else self.peers.get(member_id)
        address = next((voter.address for voter in replica.membership.voters if voter.id == member_id), "")
        return MemberStatus(
            id=member_id,
            name=name_of(member_id),
            role=self._role(member_id),
            voter=member_id in replica.voters,
            is_linked=is_own or member_id in self.linked,
            lag=self._lag(member_id),
            address=peer.address if peer else address,
            http=peer.http if peer else "",
            admin=peer.admin if peer else "",
            replaces=self.predecessor(member_id),
        )

    def _role(self, member_id: str) -> str:
        replica = self._replica
        if member_id == replica.master:
            return "master"
        if member_id not in replica.voters:
            return "learner"
        return "follower" if member_id in self.linked or member_id == self._settings.member_id else "unknown"

    def _lag(self, member_id: str) -> int | None:
        replica = self._replica
        if member_id == self._settings.member_id:
            return max(0, replica.commit_index - replica.durability.durable_index)
        progress = replica.followers.get(member_id)
        return None if progress is None else max(0, replica.commit_index - progress.match_index)


def read_payload(entry: Entry) -> list[m.Mutation]:
    """The mutations of an entry that another member sent. Raises FrameError for one that cannot be applied."""
    try:
        mutations = m.decode(entry.payload)
        judge_mutations(mutations, entry.index, len(entry.voters or ()))
    except (m.UnknownMutation, Unfit) as error:
        raise FrameError(f"entry {entry.index}: {error}") from error
    return mutations


def name_of(member_id: str) -> str:
    """A member id is its name, a dash and random hex digits."""
    return member_id.rpartition("-")[0] or member_id


def founding(lottery: Lottery) -> m.ClusterFounded:
    """A new cluster id and the key of its receipt handles."""
    return m.ClusterFounded(lottery.token(b"cluster", 16).hex(), lottery.token(b"mac", 32), FEATURE_LEVEL)
