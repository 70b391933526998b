"""The parts of one member below its journal: state, replica, clock, members, and what they share."""

from collections.abc import Iterable

from elasticq.engine.redrive.mover import Mover
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.node.clock import ClusterClock
from elasticq.node.content_cache import ContentCache
from elasticq.node.digests import Digests
from elasticq.node.effects import Effects
from elasticq.node.membership.members import Members
from elasticq.node.membership.voter_changes import VoterChanges
from elasticq.node.outlet import Outlet
from elasticq.node.restoring import restore
from elasticq.node.safe_execution import SafeExecutor
from elasticq.node.settings import NodeSettings
from elasticq.node.waits.backpressure import SendBackpressure
from elasticq.node.waits.replies import Replies
from elasticq.node.waits.waiting_calls import WaitingCalls
from elasticq.replication.election import Timing
from elasticq.replication.records import Durable
from elasticq.replication.replica import Replica
from elasticq.replication.seeded_random import SeededRandom


class Parts:
    """The parts of one member. Those above the journal get this object, and take what they use from it.

    set_aside: the number of rows on disk that could not be applied.
    """

    def __init__(
        self, settings: NodeSettings, durable: Durable, random: SeededRandom, rows: Iterable[m.Mutation]
    ) -> None:
        self.settings, self.random, self.mover = settings, random, Mover()
        self.effects = effects = Effects()
        self.state = state = State()
        self.set_aside = restore(state, rows, effects)
        self.clock = clock = ClusterClock()
        clock.ahead_ms = state.ahead_ms
        timing = Timing(
            settings.heartbeat_ms, settings.election_min_ms, settings.election_max_ms, settings.broken_link_ms
        )
        is_volatile, replies = settings.volatile, effects.replies
        self.replica = replica = Replica(
            settings.member_id, settings.voters, durable, timing, random, clock.reading, is_volatile=is_volatile
        )
        self.members = Members(settings, replica, random, was_removed=durable.was_removed)
        self.members.founded()
        if state.cluster_id:
            replica.cluster = state.cluster_id
        self.voter_changes = VoterChanges(settings, replica, self.members)
        self.safe_executor = SafeExecutor(effects.failures)
        self.waiting_calls = WaitingCalls(state, settings.hold_ms, settings.read_wait_ms, settings.limits.wait_s)
        self.outlet = Outlet(replica, effects, is_volatile=is_volatile)
        self.digests = Digests(state, replica)
        self.content_cache = cache = ContentCache(state, effects.fetches, settings.memory_bytes)
        self.backpressure = SendBackpressure(state, cache, replies, settings.memory_bytes_max if is_volatile else 0)
        self.replies = Replies(replica, replies, settings.mode, settings.all_timeout_ms)
