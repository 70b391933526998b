"""Faults planted in the real code by patching one method of it: the checkers must catch each."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from random import Random
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from elasticq.engine import retry_answers
from elasticq.engine.actions import leases, receive, send
from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.execute import HANDLERS, Handler, execute
from elasticq.engine.ordering import standard
from elasticq.engine.ordering.contract import ContentsMissing
from elasticq.engine.ordering.fifo import FifoOrder
from elasticq.engine.ordering.leases import Attempt, Leases, read_attempt
from elasticq.engine.ordering.partitions import PartitionedOrder
from elasticq.engine.ordering.schedule import deliver_at_ms
from elasticq.engine.ordering.shared import SharedOrder
from elasticq.engine.ordering.shares import Share, Shares
from elasticq.engine.redrive import dead_letters as redrive
from elasticq.engine.redrive.mover import Mover, Step
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.call_history import member_guid
from elasticq.engine.stored.identity import TERM_SHIFT, Identity
from elasticq.engine.stored.invocations import Invocations
from elasticq.engine.stored.recorded_call import Recorded
from elasticq.model.commands import Call, Command, DeleteMessage, ReceiveMessage
from elasticq.model.errors import LeaseExpired
from elasticq.model.results import ReceiveMessageResult
from elasticq.node import executor as executor_module
from elasticq.node import journal as journal_module
from elasticq.node.call_holder import Keeper
from elasticq.node.clock import ClusterClock
from elasticq.node.executor import Executor
from elasticq.node.journal import Journal
from elasticq.node.membership.members import Members
from elasticq.node.membership.voter_changes import VoterChanges
from elasticq.node.node import Node
from elasticq.node.outputs import Committed, HeldCall, Ticket
from elasticq.node.proxy import ProxyCalls
from elasticq.node.reply import Reply
from elasticq.node.settings import NodeSettings
from elasticq.node.waits.replies import Replies
from elasticq.replication.election import Election
from elasticq.replication.membership import Membership
from elasticq.replication.messages import AppendReply, Offer
from elasticq.replication.raft_state import RaftState
from elasticq.replication.records import Entry, Vote, Voter
from elasticq.replication.replica import MASTER, Replica
from elasticq.replication.seeded_random import SeededRandom
from elasticq.sim.disk import Copy, Disk
from elasticq.sim.invariants import Invariants
from elasticq.sim.member import Member
from elasticq.sim.queues import PRIORITY
from elasticq.storage.rows.pages import encode_priorities
from elasticq.storage.rows.rows import Rows
from elasticq.storage.rows.statements import AS_STORED, PUT_PRIORITIES, priorities_row

Planted = Callable[[], AbstractContextManager[None]]


@contextmanager
def one_sync_removed() -> Iterator[None]:
    """Each disk reports its third sync, and then every eleventh, without having done it."""
    honest, calls = Disk.sync, dict[Disk, int]()

    def lying(self: Disk, records: int) -> None:
        calls[self] = number = calls.get(self, 0) + 1
        if number % 11 != 3:
            honest(self, records)

    with patch.object(Disk, "sync", lying):
        yield


@contextmanager
def vote_not_persisted() -> Iterator[None]:
    def without_vote(self: RaftState) -> None:
        self.record(Vote(self.term, None))

    with patch.object(RaftState, "persist_vote", without_vote):
        yield


@contextmanager
def vote_for_a_stale_log() -> Iterator[None]:
    with patch.object(Election, "is_up_to_date", lambda self, last_term, last_index: True):
        yield


@contextmanager
def reply_before_commit() -> Iterator[None]:
    with patch.object(Replies, "may_release", lambda self, pending, now_ms: True):
        yield


@contextmanager
def dedup_hit_before_commit() -> Iterator[None]:
    """A retry is answered from the invocation log at once, wherever its entry stands."""
    honest = Executor._execute

    def hasty(self: Executor, call: Call, ticket: Ticket, now_ms: int) -> None:
        context = self._context
        self._journal.stamp_command(now_ms)
        if call.invocation and self._state.invocations.get(call.invocation, context.now_ms) is not None:
            try:
                result, _ = execute(self._state, call, context)
            except ContentsMissing:
                honest(self, call, ticket, now_ms)
                return
            self._due.append(Reply(ticket, result, self._replica.commit_index))
            return
        honest(self, call, ticket, now_ms)

    with patch.object(Executor, "_execute", hasty):
        yield


@contextmanager
def sequence_without_term() -> Iterator[None]:
    with patch.object(send, "next_sequence", lambda last, term: last + 1):
        yield


@contextmanager
def old_term_committed_by_counting() -> Iterator[None]:
    with patch.object(Replica, "_may_commit", lambda self, index: True):
        yield


@contextmanager
def truncate_without_conflict() -> Iterator[None]:
    """Whatever is sent again above commit cuts the log, the same or not."""

    def distrusting(self: RaftState, entry: Entry) -> bool:
        return entry.index <= self.commit_index

    with patch.object(RaftState, "agrees", distrusting):
        yield


@contextmanager
def serving_before_takeover() -> Iterator[None]:
    honest = Node._became_master

    def eager(self: Node, now_ms: int) -> None:
        honest(self, now_ms)
        self.leadership.serve()

    with patch.object(Node, "_became_master", eager):
        yield


@contextmanager
def restarted_member_raises_its_term() -> Iterator[None]:
    honest = Replica.start

    def raising(self: Replica, now_ms: int) -> None:
        if self.log.last_index:
            self.term, self.voted_for = self.term + 1, None
            self.persist_vote()
        honest(self, now_ms)

    with patch.object(Replica, "start", raising):
        yield


@contextmanager
def wall_clock_stamps() -> Iterator[None]:
    with patch.object(Journal, "_stamp", lambda self, now_ms: now_ms + self._clock._wall_offset_ms):
        yield


@contextmanager
def rows_without(*kinds: type) -> Iterator[None]:
    """The rows on disk never hear of mutations of these kinds."""
    honest = Rows.take

    def deaf(self: Rows, committed: Committed) -> None:
        heard = [mutation for mutation in committed.mutations if type(mutation) not in kinds]
        honest(self, replace(committed, mutations=heard))

    with patch.object(Rows, "take", deaf):
        yield


def rows_without_removals() -> AbstractContextManager[None]:
    return rows_without(m.MessagesRemoved)


def rows_without_the_guid_table() -> AbstractContextManager[None]:
    return rows_without(m.InvocationRecorded)


@contextmanager
def apply_that_reads_a_clock() -> Iterator[None]:
    """``apply`` stamps a send with a clock of its own; here one that ticks whenever it is read."""
    honest, clock = journal_module.apply, count()

    def reading(state: Any, mutation: m.Mutation, undo: Any = None) -> None:
        if isinstance(mutation, m.MessageStored):
            mutation.sent_ms += next(clock)
        honest(state, mutation, undo)

    with patch.object(journal_module, "apply", reading):
        yield


@contextmanager
def acknowledging_above_the_snapshot() -> Iterator[None]:
    """A member that is offered a snapshot answers as if it had it."""
    honest = Replica._on_offer

    def hasty(self: Replica, message: Offer, now_ms: int) -> None:
        honest(self, message, now_ms)
        if self.wanted is not None:
            self.send(
                AppendReply(
                    cluster=self.cluster,
                    group=0,
                    sender=self.member_id,
                    to=message.sender,
                    term=self.term,
                    ok=True,
                    match_index=message.index,
                    round=0,
                ),
                rests_on_records=True,
            )

    with patch.object(Replica, "_on_offer", hasty):
        yield


@contextmanager
def retries_without_memory(kind: type[Command]) -> Iterator[None]:
    """A call of this kind that is made again is another one."""
    honest = executor_module._run

    def forgetful(state: State, call: Call, context: ExecutionContext) -> Outcome:
        if isinstance(call.command, kind):
            call = replace(call, invocation=b"")
        return honest(state, call, context)

    with patch.object(executor_module, "_run", forgetful):
        yield


@contextmanager
def random_receipt_handle() -> Iterator[None]:
    """No two makings of a handle are the same."""
    honest, number = Identity.receipt_handle, count(1)

    def random(self: Identity, queue_id: int, sequence: int, delivery_number: int) -> str:
        return honest(self, queue_id, sequence, delivery_number + next(number))

    with patch.object(Identity, "receipt_handle", random):
        yield


@contextmanager
def snapshots_changed(change: Callable[[sqlite3.Connection], object]) -> Iterator[None]:
    """Whoever gets a snapshot gets it after this change."""
    honest = Disk.copy

    def changed(self: Disk, index: int) -> Copy | None:
        copy = honest(self, index)
        if copy is None:
            return None
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.deserialize(copy.data)
        change(connection)
        return Copy(copy.base, connection.serialize())

    with patch.object(Disk, "copy", changed):
        yield


def guid_table_missing_in_the_snapshot() -> AbstractContextManager[None]:
    return snapshots_changed(lambda connection: connection.execute("DELETE FROM invocations"))


def priorities_lost_in_the_snapshot() -> AbstractContextManager[None]:
    """Each page tells one priority for all of its messages, the queue's default, and no change of any."""

    def lose(connection: sqlite3.Connection) -> None:
        pages = connection.execute("SELECT DISTINCT queue_id, first FROM priorities").fetchall()
        connection.execute("DELETE FROM priorities")
        for queue_id, first in pages:
            blob = encode_priorities(first, {first: PRIORITY}, are_all=True)
            connection.execute(PUT_PRIORITIES, priorities_row(queue_id, first, AS_STORED, blob))

    return snapshots_changed(lose)


@contextmanager
def partition_gives_what_is_next_in_the_queue() -> Iterator[None]:
    """Where a partition has something to hand out, the queue's next message is handed out in its place."""
    honest = PartitionedOrder.choose_in

    def hasty(self: PartitionedOrder, partition: int, now_ms: int, limit: int, sent_after_ms: int) -> list[int]:
        own = honest(self, partition, now_ms, limit, sent_after_ms)
        return self.choose(now_ms, limit, sent_after_ms) if own else own

    with patch.object(PartitionedOrder, "choose_in", hasty):
        yield


@contextmanager
def partition_forgets_what_came_back() -> Iterator[None]:
    """A message that was received once is handed out only to who asks the whole queue."""
    honest = PartitionedOrder.choose_in

    def forgetful(self: PartitionedOrder, partition: int, now_ms: int, limit: int, sent_after_ms: int) -> list[int]:
        own = honest(self, partition, now_ms, limit, sent_after_ms)
        return [] if any(sequence in self._rows for sequence in own) else own

    with patch.object(PartitionedOrder, "choose_in", forgetful):
        yield


@contextmanager
def priorities_forgotten_at_takeover() -> Iterator[None]:
    """A new master has all messages at the default."""
    honest = Node._became_master

    def forgetful(self: Node, now_ms: int) -> None:
        honest(self, now_ms)
        for queue in self.state.queues.values():
            if queue.kind.has_priorities:
                for sequence in queue.issued:
                    if queue.row(sequence) is not None:
                        queue.order.prioritise(sequence, queue.default_priority)

    with patch.object(Node, "_became_master", forgetful):
        yield


@contextmanager
def history_aged_by_the_wall_clock() -> Iterator[None]:
    """A call that is made again is looked up by the time of the master's own clock, not by the cluster's."""
    honest, honest_get, ahead_ms = Executor._execute, Invocations.get, 0

    def by_wall(self: Executor, call: Call, ticket: Ticket, now_ms: int) -> None:
        nonlocal ahead_ms
        clock = self._clock
        ahead_ms = now_ms + clock._wall_offset_ms - clock.time_ms(now_ms)
        honest(self, call, ticket, now_ms)
        ahead_ms = 0

    def aged(self: Invocations, key: bytes, now_ms: int) -> Recorded | None:
        return honest_get(self, key, now_ms + ahead_ms)

    with patch.object(Executor, "_execute", by_wall), patch.object(Invocations, "get", aged):
        yield


@contextmanager
def history_read_after_the_state() -> Iterator[None]:
    """A call that is made again is refused where the state says that it cannot be done now: it was done already."""
    honest = executor_module._run

    def late(state: State, call: Call, context: ExecutionContext) -> Outcome:
        with suppress(ContentsMissing):
            HANDLERS[type(call.command)].run(state, call, call.command, context)
        return honest(state, call, context)

    with patch.object(executor_module, "_run", late):
        yield


@contextmanager
def quorum_by_who_is_seen() -> Iterator[None]:
    """The majority of the voters that are linked, as ElasticMQ's group membership of 2012 had it."""

    honest, members_of = Members.__init__, WeakKeyDictionary[Replica, Members]()

    def noting(
        self: Members, settings: NodeSettings, replica: Replica, random: SeededRandom, *, was_removed: bool
    ) -> None:
        honest(self, settings, replica, random, was_removed=was_removed)
        members_of[replica] = self

    def seen(self: Replica) -> int:
        members = members_of.get(self)
        linked = members.linked if members is not None else set(self.others)
        return (1 + len(linked.intersection(self.others))) // 2 + 1

    with (
        patch.object(Members, "__init__", noting),
        patch.object(Replica, "quorum", property(seen, lambda self, quorum: None), create=True),
    ):
        yield


@contextmanager
def memory_member_keeps_its_id() -> Iterator[None]:
    """It comes back as the voter that it was, without its vote and its log."""
    honest = Member._new_id

    def same(self: Member) -> str:
        return f"{self.name}-{self.index:016x}" if self.is_volatile else honest(self)

    with patch.object(Member, "_new_id", same):
        yield


@contextmanager
def two_changes_of_voters_at_once() -> Iterator[None]:
    """A replacement is one entry, and nobody waits for the change before it."""

    def together(self: VoterChanges) -> tuple[Voter, ...] | None:
        if not self._replacing:
            self._replace_volatile()
        for new, (old, ticket) in list(self._replacing.items()):
            del self._replacing[new]
            if ticket is not None:
                self.promise(ticket, f"{new} for {old}")
            return (*self._without(old), Voter(new))
        return None

    with (
        patch.object(Replica, "_assert_change", lambda self, voters: None),
        patch.object(Replica, "may_change", lambda self: self.role == MASTER),
        patch.object(Membership, "allows", lambda self, voters: bool(voters)),
        patch.object(VoterChanges, "next_change", together),
    ):
        yield


# --- FIFO and dead letters -----------------------------------------------------------


def _ungrouped(state: State, queue: Queue) -> FifoOrder:
    """As if each message had a group of its own."""
    order = FifoOrder(queue.rows, queue.contents, state.grace, queue.ages)
    order.set_delay(queue.delay_s * 1_000)
    for first, last in queue.order.untouched_pairs():
        order.insert_untouched(first, last)
    for sequence in queue.issued:
        if queue.row(sequence) is not None:
            order.join(sequence, str(sequence))
    for sequence, row in queue.rows.items():
        order.insert(sequence, row)
    return order


@contextmanager
def fifo_order_forgotten_at_takeover() -> Iterator[None]:
    honest = Node._became_master

    def forgetful(self: Node, now_ms: int) -> None:
        honest(self, now_ms)
        for queue in self.state.queues.values():
            if queue.kind.blocks_groups:
                queue.order = queue.messages.order = _ungrouped(self.state, queue)

    with patch.object(Node, "_became_master", forgetful):
        yield


@contextmanager
def group_served_past_its_first_in_flight() -> Iterator[None]:
    honest = FifoOrder.choose

    def greedy(self: FifoOrder, now_ms: int, limit: int, sent_after_ms: int) -> list[int]:
        chosen = honest(self, now_ms, limit, sent_after_ms)
        for group in {self.group_name(sequence): self._groups.of(sequence) for sequence in chosen}.values():
            assert group is not None
            chosen += [x for x in group if x not in self._deadlines and x not in chosen and x in self._contents]
        return chosen[:limit]

    with patch.object(FifoOrder, "choose", greedy):
        yield


@contextmanager
def dedup_ids_only_of_this_term() -> Iterator[None]:
    honest = send.first_sent

    def forgetful(state: State, key: bytes, now_ms: int) -> int | None:
        first = honest(state, key, now_ms)
        return first if first is not None and first >> TERM_SHIFT == state.takeover_term else None

    with patch.object(send, "first_sent", forgetful):
        yield


@contextmanager
def dedup_table_missing_in_the_snapshot() -> Iterator[None]:
    """The rows go on to be compared with nobody's, or they would tell first."""
    with guid_table_missing_in_the_snapshot(), patch.object(Invariants, "compare_rows", lambda self, member: None):
        yield


@contextmanager
def dead_letter_forgets_its_source_removal() -> Iterator[None]:
    """Once for each message: it is a dead letter again at its queue's next receive."""
    honest, forgotten = redrive.move_to_dead_letters, set[int]()

    def forgetful(state: State, queue: Queue, dead: list[int], context: ExecutionContext) -> list[m.Mutation]:
        made = honest(state, queue, dead, context)
        for mutation in made:
            if isinstance(mutation, m.MessagesRemoved):
                mutation.sequences = [sequence for sequence in mutation.sequences if sequence in forgotten]
        forgotten.update(dead)
        return made

    with patch.object(redrive, "move_to_dead_letters", forgetful):
        yield


@contextmanager
def dead_letter_one_receive_too_late() -> Iterator[None]:
    honest = redrive._divided

    def late(queue: Queue, chosen: list[int], limit: int, receives: int) -> tuple[list[int], list[int]]:
        return honest(queue, chosen, limit, receives + 1)

    with patch.object(redrive, "_divided", late):
        yield


@contextmanager
def dead_letter_only_removed() -> Iterator[None]:
    honest = redrive.move_to_dead_letters

    def careless(state: State, queue: Queue, dead: list[int], context: ExecutionContext) -> list[m.Mutation]:
        return [each for each in honest(state, queue, dead, context) if isinstance(each, m.MessagesRemoved)]

    with patch.object(redrive, "move_to_dead_letters", careless):
        yield


@contextmanager
def move_task_leaves_what_it_moved() -> Iterator[None]:
    honest = Mover.step

    def forgetful(self: Mover, state: State, now_ms: int, term: int) -> Step:
        step = honest(self, state, now_ms, term)
        step.mutations = [each for each in step.mutations if not isinstance(each, m.MessagesRemoved)]
        return step

    with patch.object(Mover, "step", forgetful):
        yield


@contextmanager
def attempt_forgets_what_it_got() -> Iterator[None]:
    with patch.object(receive, "attempted", lambda state, queue, key, attempt_id, now_ms: (0, [])):
        yield


@contextmanager
def advance_that_one_member_forgets() -> Iterator[None]:
    """What the log says of the clock never reaches the rows of the followers."""
    honest = journal_module.apply

    def deaf(self: Journal, index: int, *, keep_undo: bool) -> None:
        def forgetful(state: State, mutation: m.Mutation, undo: Any = None) -> None:
            if type(mutation) is not m.ClockAdvanced or not self._replica.member_id.startswith("m2"):
                honest(state, mutation, undo)

        with patch.object(journal_module, "apply", forgetful):
            faithful(self, index, keep_undo=keep_undo)

    faithful = Journal._apply_entry
    with patch.object(Journal, "_apply_entry", deaf):
        yield


def rows_without_the_advances() -> AbstractContextManager[None]:
    return rows_without(m.ClockAdvanced)


@contextmanager
def advance_in_heartbeats() -> Iterator[None]:
    """Members tell each other cluster time where real time is asked for: each adds the advances once more."""
    with patch.object(ClusterClock, "reading", lambda self, now_ms: (self._linked_term, self.time_ms(now_ms))):
        yield


@contextmanager
def lease_expires_call_by_call() -> Iterator[None]:
    """Each numbered receive has a deadline, and a seal, of its own."""

    def apart(attempt_id: str | None) -> Attempt | None:
        said = read_attempt(attempt_id)
        return said and Attempt(said.name, said.batch, said.partition * 1_000 + said.call, 0)

    with patch.object(leases, "read_attempt", apart):
        yield


@contextmanager
def id_of_an_expired_lease_receives_anew() -> Iterator[None]:
    """As if a lease that is over had never been."""
    honest = leases.receive_message

    def forgetful(state: State, call: Call, command: ReceiveMessage, context: ExecutionContext) -> Outcome:
        try:
            outcome = honest(state, call, command, context)
        except LeaseExpired:
            pass
        else:
            if not isinstance(outcome[0], LeaseExpired):
                return outcome
        return receive.receive_message(state, call, replace(command, receive_request_attempt_id=None), context)

    with patch.dict(HANDLERS, {ReceiveMessage: Handler(forgetful, retry_answers.RECEIVED)}):
        yield


@contextmanager
def lease_is_sealed_in_words_only() -> Iterator[None]:
    """An empty answer is final for who reads it, but nothing is written down."""
    honest = executor_module.seal_or_answer

    def silent(state: State, call: Call, context: ExecutionContext) -> Outcome:
        result, mutations = honest(state, call, context)
        is_seal = isinstance(result, ReceiveMessageResult) and not result.messages
        return result, [] if is_seal else mutations

    with patch.object(executor_module, "seal_or_answer", silent):
        yield


@contextmanager
def committed_lease_keeps_its_messages() -> Iterator[None]:
    """A commit closes the lease and forgets to remove what it holds."""
    honest = leases.delete_message

    def gentle(state: State, call: Call, command: DeleteMessage, context: ExecutionContext) -> Outcome:
        result, mutations = honest(state, call, command, context)
        is_commit = any(isinstance(mutation, m.LeaseSet) for mutation in mutations)
        return result, [x for x in mutations if not (is_commit and isinstance(x, m.MessagesRemoved))]

    with patch.dict(HANDLERS, {DeleteMessage: Handler(gentle)}):
        yield


def leases_missing_in_the_rows() -> AbstractContextManager[None]:
    return rows_without(m.LeaseCalled, m.LeaseSet)


@contextmanager
def lapsed_lease_comes_back_with_a_takeover() -> Iterator[None]:
    """Nobody writes down that a lease is over when others get its messages: the grace prolongs it."""
    with patch.object(Leases, "expirations", lambda self, queue_id, grace, now_ms: []):
        yield


@contextmanager
def older_handle_acts_on_leased_messages() -> Iterator[None]:
    with patch.object(Leases, "has_living", lambda self, queue_id: False):
        yield


@contextmanager
def slot_is_not_given_back_on_time_out() -> Iterator[None]:
    """A message that returns by itself still counts against what its group may have in flight."""
    honest = SharedOrder._put_back

    def leaking(self: SharedOrder, sequence: int, due_ms: int, was_received: bool) -> bool:
        is_in_order = honest(self, sequence, due_ms, was_received)
        tenant = self._tenants.of(sequence)
        if tenant is not None and was_received:
            tenant.in_flight += 1
            self._note(tenant)
        return is_in_order

    with patch.object(SharedOrder, "_put_back", leaking):
        yield


@contextmanager
def turns_by_a_random_number_of_ones_own() -> Iterator[None]:
    """Each member draws whose turn it is."""
    honest, random = Shares._next, Random(7)

    def drawn(self: Shares, parent: Share) -> Share | None:
        share = honest(self, parent)
        if share is None:
            return None
        return random.choice([each for each in self._by_path.values() if each.parent is parent and each.place])

    with patch.object(Shares, "_next", drawn):
        yield


@contextmanager
def due_time_by_the_wall_clock() -> Iterator[None]:
    """A time of delivery counts from the wall clock of the member that takes the send, here one that is ahead."""

    def by_the_wall(stored: m.MessageStored, now_ms: int, ahead_max_ms: int) -> int:
        time_ms = deliver_at_ms(stored, now_ms, ahead_max_ms)
        return max(time_ms - 800, 0) and max(time_ms - 800, now_ms)

    with patch.object(standard, "deliver_at_ms", by_the_wall):
        yield


def turns_missing_in_the_rows() -> AbstractContextManager[None]:
    return rows_without(m.TurnsSet)


@contextmanager
def dead_learner_becomes_a_voter() -> Iterator[None]:
    with patch.object(VoterChanges, "_candidates", property(lambda self: list(self._replica.tracker.learners))):
        yield


@contextmanager
def learner_forgets_its_cluster() -> Iterator[None]:
    """Unless its first entry is one that founders wrote together."""
    honest = Members.founded

    def forgetful(self: Members) -> None:
        if self._founding_entry() is not None:
            honest(self)

    with patch.object(Members, "founded", forgetful):
        yield


@contextmanager
def retried_receive_keeps_its_first_deadline() -> Iterator[None]:
    """A receive that is answered again leaves its messages hidden from its first execution on, not from the answer."""

    def nothing(*arguments: Any) -> list[m.Mutation]:
        return []

    with patch.object(receive, "_prolonged", nothing):
        yield


@contextmanager
def memory_has_no_snapshot_before_all_is_committed() -> Iterator[None]:
    """A new master cannot commit before a follower has the snapshot, which it does not give before it has committed."""
    honest = Member.snapshot

    def strict(self: Member, index: int) -> Copy | None:
        node = self.node
        if node is not None and self.is_volatile and node.replica.commit_index != node.applied_index:
            return None
        return honest(self, index)

    with patch.object(Member, "snapshot", strict):
        yield


@contextmanager
def time_of_any_earlier_master() -> Iterator[None]:
    """A new master takes the highest time that any of its voters is linked to, and not the newest master's."""
    honest = ClusterClock.win

    def win(self: ClusterClock, term: int, votes: Iterable[tuple[int, int]], last_entry_ms: int, now_ms: int) -> None:
        honest(self, term, [(min(linked_term, 1), time_ms) for linked_term, time_ms in votes], last_entry_ms, now_ms)

    with patch.object(ClusterClock, "win", win):
        yield


@contextmanager
def follower_links_its_clock_ahead() -> Iterator[None]:
    """By a little: what a master's heartbeat says counts from its sending, not from a moment before it."""
    honest = ClusterClock.link

    def ahead(self: ClusterClock, term: int, real_ms: int, now_ms: int) -> None:
        honest(self, term, real_ms + 40, now_ms)

    with patch.object(ClusterClock, "link", ahead):
        yield


@contextmanager
def proxy_names_a_call_anew() -> Iterator[None]:
    """A proxy that passes a call on again gives it another GUID than before, where it made that itself."""
    honest = Keeper._with_guid

    def anew(self: Keeper, held: HeldCall) -> Call:
        guid = held.call.invocation
        own = member_guid(1, self._pending_calls.incarnation)[-6:]
        if isinstance(self, ProxyCalls) and held.is_uncertain and guid[-6:] == own:
            return replace(held.call, invocation=self._pending_calls.new_guid())
        return honest(self, held)

    with patch.object(Keeper, "_with_guid", anew):
        yield
