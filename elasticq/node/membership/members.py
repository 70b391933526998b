"""The members of the cluster, and how members meet: founding, joining, and what keeps this member from being ready.

The greetings of members fill an address book. Quorum counts the voters in the log.

When ``nodes`` fresh members have all met, they found a cluster. The member with the lowest id writes the first entry,
which is the same for all. Each of them is a voter as soon as it has that entry. A member that meets a cluster before
that joins the cluster as a learner.
"""

from elasticq.engine.stored import mutations as m
from elasticq.engine.validation import Unfit
from elasticq.engine.validation import validate as validate_mutations
from elasticq.model.ranges import PEERS_MAX
from elasticq.node.membership.peer import Peer
from elasticq.node.settings import MemberStatus, NodeSettings
from elasticq.replication.messages import AnyMessage, Found, FrameError
from elasticq.replication.records import Entry, Voter
from elasticq.replication.replica import Replica
from elasticq.replication.seeded_random import SeededRandom

FEATURE_LEVEL = 1  # of a cluster when it is founded: all members understand this level
GREETED_LEVEL = 2  # of this version; from level 2 on, members answer questions over links
FOUNDING_TERM = 1  # a term without a master


class Members:
    """The known members and the linked ones. It lets ``replica`` found or join a cluster.

    was_voter: this member is a voter, or was one by an entry that it had.
    was_removed: this member was removed from the voters.
    """

    def __init__(
        self, settings: NodeSettings, replica: Replica, random: SeededRandom, *, was_removed: bool = False
    ) -> None:
        """Create the address book. ``was_removed`` is the stored fact that this member was removed before its
        restart."""
        self._settings = settings
        self._replica = replica
        self._random = random
        self.incarnation = settings.incarnation or random.token(b"boot", 8).hex()
        self.peers: dict[str, Peer] = {}
        self.linked: set[str] = set()
        self._lost_at_ms: dict[str, int] = {}  # of members without a link: when it broke
        self.was_removed = was_removed and not replica.membership.is_voter
        self.was_voter = replica.membership.has_been_voter
        self._voters_index = min(replica.membership.index, replica.commit_index)

    # --- greetings ----------------------------------------------------------------

    @property
    def is_fresh(self) -> bool:
        return self._is_blank and self._replica.term == 0

    @property
    def _is_blank(self) -> bool:
        """Return whether this member has no log and no cluster. It may have a term from an unfinished join."""
        replica = self._replica
        return replica.log.last_index == 0 and not replica.voters and not replica.cluster

    def introduce(self) -> Peer:
        settings = self._settings
        return Peer(
            id=settings.member_id,
            name=name_of(settings.member_id),
            incarnation=self.incarnation,
            cluster_name=settings.cluster_name,
            cluster=self._replica.cluster,
            nodes=settings.nodes,
            is_fresh=self.is_fresh,
            is_volatile=settings.volatile,
            level=GREETED_LEVEL,
            address=settings.address,
            http=settings.http,
            admin=settings.admin,
            region=settings.region,
            has_one_region=settings.single_region,
            http_port=settings.http_port,
            admin_port=settings.admin_port,
        )

    def met(self, peer: Peer, now_ms: int) -> None:
        """Handle the greeting of another member, its first one or a renewed one.

        It may lead to founding or joining a cluster.
        """
        if peer.cluster_name != self._settings.cluster_name or peer.id == self._settings.member_id:
            return
        self.peers[peer.id] = peer
        self.linked.add(peer.id)
        self._lost_at_ms.pop(peer.id, None)
        self._forget_strangers()
        replica = self._replica
        if peer.cluster:
            self._meet_cluster(peer)
        elif self.is_fresh:
            self._found_if_complete(now_ms)
        if peer.is_fresh:
            self._pass_on_founding(peer.id)
        replica.known_peers.discard(peer.id)
        if replica.cluster and peer.cluster == replica.cluster:
            replica.known_peers.add(peer.id)

    def _forget_strangers(self) -> None:
        """Forget the members that are neither linked nor voters if more than ``PEERS_MAX`` members are known."""
        if len(self.peers) > PEERS_MAX:
            kept = self.linked.union(self._replica.voters)
            self.peers = {each: peer for each, peer in self.peers.items() if each in kept}
            self._lost_at_ms = {each: at_ms for each, at_ms in self._lost_at_ms.items() if each in self.peers}

    @property
    def reached_voters(self) -> int:
        """Return how many voters are linked with this member, itself included if it is a voter."""
        replica = self._replica
        return sum(other in self.linked for other in replica.others) + replica.membership.is_voter

    @property
    def linked_peers(self) -> list[Peer]:
        return [self.peers[each] for each in sorted(self.linked)]

    def lost(self, member_id: str, now_ms: int) -> None:
        """Handle the loss of the link to a member.

        Without that member or its cluster, founding or joining may be possible.
        """
        self.linked.discard(member_id)
        self._lost_at_ms[member_id] = now_ms
        if self._is_blank:
            clusters = self._clusters_met()
            if len(clusters) == 1:
                self._replica.cluster = clusters.pop()
                self._know_peers()
            elif not clusters and self.is_fresh:
                self._found_if_complete(now_ms)

    def _know_peers(self) -> None:
        cluster = self._replica.cluster
        self._replica.known_peers |= {each for each in self.linked if self.peers[each].cluster == cluster}

    def _meet_cluster(self, peer: Peer) -> None:
        """Let a member without a cluster join the cluster of ``peer``, unless it has met two clusters."""
        if self._is_blank and len(self._clusters_met()) == 1:
            self._replica.cluster = peer.cluster

    def _clusters_met(self) -> set[str]:
        return {self.peers[each].cluster for each in self.linked if self.peers[each].cluster}

    # --- founding -------------------------------------------------------------------

    def _founders(self) -> list[Peer]:
        fresh = [self.peers[each] for each in self.linked if self.peers[each].is_fresh]
        return sorted((*fresh, self.introduce()), key=lambda peer: peer.id)

    def _found_if_complete(self, now_ms: int) -> None:
        """Found the cluster if all ``nodes`` members have met and agree, and this member has the lowest id.

        The time of the first entry is 0, because cluster time never falls below an entry's time and one wall clock may
        be wrong.
        """
        founders = self._founders()
        if self.trouble or len(founders) != self._settings.nodes or founders[0].id != self._settings.member_id:
            return
        voters = tuple(Voter(peer.id, peer.address) for peer in founders)
        payload = m.encode([founding(self._random)])
        self._replica.found(Entry(1, FOUNDING_TERM, 0, payload, voters), now_ms)
        self.founded()
        for peer in founders[1:]:
            self._pass_on_founding(peer.id)

    def accepts(self, found: Found) -> bool:
        """Return whether the entry names this fresh member and exactly ``nodes`` voters.

        Raise FrameError for an entry that does not found a cluster.
        """
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

    def is_ours(self, message: AnyMessage) -> bool:
        """Return whether ``message`` comes from this member's cluster, or founds a cluster that names this member.

        Raise FrameError for a Found whose entry does not found a cluster.
        """
        if type(message) is Found:
            return self.accepts(message)
        cluster = self._replica.cluster
        if message.cluster and cluster:
            return message.cluster == cluster
        return bool(cluster) or self._replica.membership.is_voter

    def founded(self) -> None:
        """Set the cluster id from the log's first entry, if the log has it, even if its commit is unknown here.

        All founders have the same entry, and a learner got it from a master that had committed it. A learner may stop
        before it hears of the commit. Without this rule it would belong to no cluster and could not join one.
        """
        entry = self._founding_entry() if self._replica.membership.is_voter else self._first_entry()
        first = m.decode(entry.payload)[0] if entry is not None else None
        if isinstance(first, m.ClusterFounded):
            self._replica.cluster = first.cluster_id

    def _first_entry(self) -> Entry | None:
        log = self._replica.log
        return log.entry(1) if log.base_index == 0 and log.last_index > 0 else None

    def _founding_entry(self) -> Entry | None:
        entry = self._first_entry()
        return entry if entry and entry.term == FOUNDING_TERM and entry.voters is not None else None

    def _pass_on_founding(self, to: str) -> None:
        entry = self._founding_entry()
        if entry is not None and entry.voters is not None and any(voter.id == to for voter in entry.voters):
            self._replica.send_founding(to, entry)

    def voters_changed(self, *, is_voter: bool) -> None:
        """Note a new newest log entry that names voters. ``is_voter``: it names this member."""
        if is_voter:
            self.was_voter, self.was_removed = True, False

    def commit_moved(self) -> bool:
        """Return whether an entry that names the voters was committed since the last call of this function.

        Set ``was_removed`` if this member was a voter, and that entry does not name it.
        """
        replica = self._replica
        membership = replica.membership
        if membership.index > replica.commit_index:
            return False
        if self.was_voter and not membership.is_voter:
            self.was_removed = True
        is_news, self._voters_index = membership.index != self._voters_index, membership.index
        return is_news

    # --- problems ---------------------------------------------------------------------

    @property
    def trouble(self) -> str:
        """Return why this member cannot join or found a cluster, and what to do; empty if nothing is wrong."""
        replica = self._replica
        if self.was_removed:
            return (
                "this member was removed from the cluster; stop it, or empty its data directory to let it join again "
                "(docs/operations.md: Remove)"
            )
        others = self._clusters_met() - {replica.cluster}
        if others and replica.cluster:
            return (
                f"another cluster ({', '.join(sorted(others))}) has the same name: "
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
            return f"--nodes differs: {nodes} here, {contradicting[0]} elsewhere: start all with the same number"
        if len(founders) > nodes:
            names = ", ".join(peer.name for peer in founders)
            return f"{len(founders)} fresh members ({names}) for --nodes {nodes}: stop those that are to join later"
        return ""

    def waiting_for(self) -> str:
        """Return why this member is not a full part of a cluster yet; empty if nothing is missing."""
        if self.trouble:
            return self.trouble
        replica = self._replica
        if self.is_fresh:
            return f"waiting to found the cluster: {len(self._founders())} of {self._settings.nodes} members have met"
        if not replica.membership.is_voter:
            old = self.predecessor(self._settings.member_id)
            if old and not self._settings.volatile:
                name = name_of(old)
                return f"a learner with the name of {old}: 'elasticq cluster replace {name}' replaces that voter"
        return ""

    # --- names ------------------------------------------------------------------------

    def predecessor(self, member_id: str) -> str:
        """Return the id of the voter with the same name as the non-voter ``member_id``; empty if there is none."""
        replica = self._replica
        if member_id in replica.voters:
            return ""
        name = name_of(member_id)
        return next((voter for voter in replica.voters if name_of(voter) == name), "")

    # --- status -----------------------------------------------------------------------

    def statuses(self, now_ms: int, time_ms: int) -> tuple[MemberStatus, ...]:
        """Return the status of each known member. now_ms: of the boot clock; time_ms: the cluster time."""
        replica = self._replica
        known = dict.fromkeys((*replica.voters, *replica.followers))
        met = (self.peers[each] for each in self.linked)
        known.update(dict.fromkeys(peer.id for peer in met if peer.cluster == replica.cluster and not peer.is_proxy))
        known.setdefault(self._settings.member_id)
        return tuple(self._status(each, now_ms, time_ms) for each in sorted(known))

    def proxies(self) -> tuple[str, ...]:
        """Return the names of the linked proxies."""
        return tuple(sorted(self.peers[each].name for each in self.linked if self.peers[each].is_proxy))

    def _status(self, member_id: str, now_ms: int, time_ms: int) -> MemberStatus:
        replica = self._replica
        is_own = member_id == self._settings.member_id
        peer = self.introduce() if is_own else self.peers.get(member_id)
        address = next((voter.address for voter in replica.membership.voters if voter.id == member_id), "")
        is_linked = is_own or member_id in self.linked
        match_index = self._match_index(member_id) if is_linked else None
        lost_ms = None if is_linked else self._lost_at_ms.get(member_id)
        return MemberStatus(
            id=member_id,
            name=name_of(member_id),
            role=self._role(member_id),
            voter=member_id in replica.voters,
            is_linked=is_linked,
            lag=None if match_index is None else max(0, replica.commit_index - match_index),
            lag_ms=None if match_index is None else self._lag_ms(match_index, time_ms),
            lost_ms=None if lost_ms is None else now_ms - lost_ms,
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

    def _match_index(self, member_id: str) -> int | None:
        """Return the newest index that is durable at a member; None if this member does not know it."""
        replica = self._replica
        if member_id == self._settings.member_id:
            return replica.durability.durable_index
        progress = replica.followers.get(member_id)
        return None if progress is None or (progress.probing and not progress.match_index) else progress.match_index

    def _lag_ms(self, match_index: int, time_ms: int) -> int:
        """Return for how long the first committed entry after ``match_index`` has existed; 0 if there is none.

        It is a lower bound if the log does not have that entry any more.
        """
        replica = self._replica
        if match_index >= replica.commit_index:
            return 0
        log = replica.log
        index = max(match_index + 1, log.base_index + 1)
        since_ms = log.entry(index).time_ms if index <= log.last_index else log.last_time_ms
        return max(0, time_ms - since_ms)


def read_payload(entry: Entry) -> list[m.Mutation]:
    """Return the mutations of an entry that another member sent. Raise FrameError for one that cannot be applied."""
    try:
        mutations = m.decode(entry.payload)
        validate_mutations(mutations, entry.index, len(entry.voters or ()))
    except (m.UnknownMutation, Unfit) as error:
        raise FrameError(f"entry {entry.index}: {error}") from error
    return mutations


def name_of(member_id: str) -> str:
    """Return the name in a member id, which is the name, a dash and random hex digits."""
    return member_id.rpartition("-")[0] or member_id


def founding(random: SeededRandom) -> m.ClusterFounded:
    """Return the mutation that founds a cluster, with a new cluster id and a new key for receipt handles."""
    return m.ClusterFounded(random.token(b"cluster", 16).hex(), random.token(b"mac", 32), FEATURE_LEVEL)
