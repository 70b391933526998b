"""Executes calls on a master: from their admission to the answer that is due, with all that lets a call wait.

A call waits for the end of a transfer of the mastership (waiting calls), for room (backpressure), for contents that
are on disk, for work in slices (matchings), or for a message (waiters). Whatever changes the state here wakes those
who wait for it.
"""

from typing import Final

from msgspec.structs import replace

from elasticq.engine.actions.declare import at_first_use
from elasticq.engine.actions.leases import is_leased
from elasticq.engine.actions.receive import returned, wait_s
from elasticq.engine.consumer_groups import fence
from elasticq.engine.consumer_groups.actions import awaited_view, heartbeat_wait_ms
from elasticq.engine.execute import execute, seal_or_answer
from elasticq.engine.matching import Unfinished
from elasticq.engine.ordering.contract import ContentsMissing
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.consumer_group_rows import ConsumerChanged, ConsumerRemoved, ResourceAssigned, ResourceFreed
from elasticq.model.commands import Call, ReceiveMessage
from elasticq.model.errors import QueueDoesNotExist, ServiceUnavailable, SqsError, TopicThrottled
from elasticq.model.extensions import ById, Peek
from elasticq.model.group_commands import ElasticqHeartbeat
from elasticq.model.group_results import GroupViewResult
from elasticq.model.limits import WAITERS_MAX
from elasticq.model.names import queue_path
from elasticq.model.results import ReceiveMessageResult, Result, SendMessageBatchResult, SendMessageResult
from elasticq.node.clock import ClusterClock
from elasticq.node.content_cache import ContentCache
from elasticq.node.decision import Decision
from elasticq.node.journal import Journal
from elasticq.node.leadership import TAKING_OVER, Leadership
from elasticq.node.outputs import Fetch, HeldCall, Reply, Ticket
from elasticq.node.safe_execution import SafeExecutor
from elasticq.node.settings import NodeSettings
from elasticq.node.waits.backpressure import SendBackpressure
from elasticq.node.waits.heartbeats import Heartbeats, WaitingHeartbeat
from elasticq.node.waits.pending_calls import Remote
from elasticq.node.waits.publishes import TOO_MANY, Matchings
from elasticq.node.waits.replies import Replies
from elasticq.node.waits.undecided import Undecided
from elasticq.node.waits.waiters import Waiter, Waiters
from elasticq.node.waits.waiting_calls import WaitingCalls
from elasticq.replication.replica import Replica

DEAD_LETTERS: Final = 10, 1_000  # commands, and messages in all, after which a receive moves only what it found last
ATTEMPTS_MAX: Final = 10_000
LOST: Final = "The mastership was lost; the outcome is unknown, a retry is safe."
TOO_LATE: Final = "The call reached the master after its deadline and was not executed there; a retry is safe."
UNREADABLE: Final = (
    "Messages of this queue cannot be read from the disk any more, and are lost; a retry passes over them."
)

_NOWHERE: Final[frozenset[int]] = frozenset()
# After these a waiting receive of their queue may find something, or learn that the queue is gone.
_WAKING = (m.MessageStored, m.VisibilityChanged, m.ReceiveReturned, m.QueueDeleted, m.QueueAttributesSet)
_FREEING = (m.MessagesRemoved, m.RangeRemoved)  # where groups may be kept back: the next of theirs may be free
_FENCING = (ResourceAssigned, ResourceFreed)  # after these a receive of a consumer of a group may be refused


class Executor:
    """``waiters``: the long polls of this master. ``heartbeats``: those of consumers of groups that wait. Answers that
    may leave at once are added to ``due``.

    undecided: the answers that this member held back when it lost the mastership.
    """

    def __init__(
        self,
        settings: NodeSettings,
        state: State,
        replica: Replica,
        clock: ClusterClock,
        safe_executor: SafeExecutor,
        journal: Journal,
        leadership: Leadership,
        replies: Replies,
        content_cache: ContentCache,
        backpressure: SendBackpressure,
        waiting_calls: WaitingCalls,
        due: list[Reply],
    ) -> None:
        self.waiters: Final = Waiters()  # Final, as other parts of the node hold these, too
        self.heartbeats: Final = Heartbeats()
        self.undecided: Final = Undecided(is_for_all=settings.mode == "all")
        self._state = state
        self._replica = replica
        self._clock = clock
        self._safe_executor = safe_executor
        self._journal = journal
        self._context = journal.context
        self._leadership = leadership
        self._replies = replies
        self._content_cache = content_cache
        self._backpressure = backpressure
        self._waiting_calls = waiting_calls
        self._due = due
        self._is_volatile = settings.volatile
        # By queue: calls that need contents that are on disk.
        self._awaiting_contents: dict[int, list[tuple[Call, Ticket]]] = {}
        self.matchings = Matchings()
        self._attempts: dict[bytes, int] = {}  # by invocation: answers that are out, where there were several

    # --- calls ---------------------------------------------------------------------

    def admit(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        """Execute a call, or let it wait for the end of a transfer or, as a send, for room; all calls come here."""
        if not self._leadership.may_write:
            self._hold(call, ticket, now_ms)
        elif not (self._backpressure.is_watching and self._backpressure.hold(call, ticket)):
            self._execute(call, ticket, now_ms)

    def _hold(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        """Let a call that had no effect wait until the transfer ends, done or given up; refuse it if too many wait."""
        waiting_calls = self._waiting_calls
        held, is_own = waiting_calls.from_now(call, ticket, now_ms), type(ticket) is not Remote
        if not waiting_calls.hold(held, now_ms, is_bounded=is_own):
            self._due.append(Reply(ticket, ServiceUnavailable(TAKING_OVER), 0))

    def _execute(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        self._journal.stamp_command(now_ms)
        if call.deadline_ms and call.deadline_ms < self._clock.reading(now_ms)[1]:
            self._answer(call, ticket, ServiceUnavailable(TOO_LATE), now_ms)
            return
        no_queue: QueueDoesNotExist | None = None
        try:
            decision = self._safe_executor.decide(execute, self._state, call, self._context)
            if type(decision.result) is ReceiveMessageResult:  # a send does not pay for what follows
                if decision.mutations and _found_nothing(decision.result):
                    decision = self._look_again(call, decision, now_ms)
                if _found_nothing(decision.result) and is_leased(call):
                    if not decision.mutations and self._wait(call, ticket, now_ms):
                        return
                    decision = self._seal_or_answer(call, decision, now_ms)
                self._count_attempt(call, decision)
            result, mutations = decision.result, decision.mutations
            if type(result) is GroupViewResult and self._wait_for_change(call, ticket, decision, result, now_ms):
                return
            if mutations:
                self.change(decision, now_ms, call, ticket)
                if not self._is_volatile and type(result) is ReceiveMessageResult:
                    self._took(mutations[0])
                return
        except SqsError as error:
            if type(error) is not QueueDoesNotExist or self._context.template is None:
                self._answer(call, ticket, error.without_frames(), now_ms)
                return
            no_queue = error.without_frames()  # one of them is this frame
        except ContentsMissing as missing:
            self._park(call, ticket, missing.sequences)
            return
        except Unfinished as unfinished:
            if not self.matchings.add(call, ticket, unfinished.matching):
                self._answer(call, ticket, TopicThrottled(TOO_MANY), now_ms)
            return
        if no_queue is not None:  # here, as errors of what follows would carry this one along
            self._execute_with_queue(call, ticket, no_queue, now_ms)
            return
        if _found_nothing(result) and self._wait(call, ticket, now_ms):
            return
        if _is_standard_send(result) and not self._replies.acked_before_commit:  # a retry: mode all waits for all again
            self._replies.answer_send(call, ticket, result, self._journal.head_index(), now_ms)
            return
        self._answer(call, ticket, result, now_ms)

    def _execute_with_queue(self, call: Call, ticket: Ticket, error: SqsError, now_ms: int) -> None:
        """Make the call's queue from the template and execute the call; answer ``error`` if a first use makes none."""
        try:
            decision = self._safe_executor.decide(at_first_use, self._state, call, self._context)
            self.change(decision, now_ms, call)
        except SqsError as why:
            self._answer(call, ticket, why.without_frames(), now_ms)
            return
        if decision.mutations:
            self._execute(call, ticket, now_ms)
        else:
            self._answer(call, ticket, error, now_ms)

    def _look_again(self, call: Call, decision: Decision, now_ms: int) -> Decision:
        """Move the dead letters that a receive found instead of messages, and execute it again, until it finds none.

        Beyond DEAD_LETTERS its result is empty, and the decision moves those found last. Raises SqsError,
        ContentsMissing; the dead letters that were moved before stay moved.
        """
        (steps, most), moved = DEAD_LETTERS, 0
        for _ in range(steps):
            moved += len(decision.mutations)
            self.change(decision, now_ms, call)
            self._journal.stamp_command(now_ms)
            decision = self._safe_executor.decide(execute, self._state, call, self._context)
            if moved > most or not decision.mutations or not _found_nothing(decision.result):
                break
        return decision

    def _seal_or_answer(self, call: Call, decision: Decision, now_ms: int) -> Decision:
        """The final answer to a leased receive that found nothing and waits no longer; applies ``decision`` first."""
        self.change(decision, now_ms, call)
        self._journal.stamp_command(now_ms)
        return self._safe_executor.decide(seal_or_answer, self._state, call, self._context)

    def change(self, decision: Decision, now_ms: int, call: Call | None = None, ticket: Ticket | None = None) -> None:
        """Apply what was decided, put it into the open entry, and answer a ticket by the reply rule.

        Raises SqsError where ``call``'s part of the entry cannot be applied: then the call has no effect.
        """
        mutations, result = decision.mutations, decision.result
        if not mutations:
            return
        self._journal.append(decision, now_ms, call)
        self._backpressure.contents_came()
        is_send = ticket is not None and _is_standard_send(result)
        if is_send and self._replies.acked_before_commit:
            self._journal.open_is_acked = True
        self._journal.close_if_free(now_ms)
        if ticket is not None:
            if is_send and not self._replica.commits_alone:
                self._replies.answer_send(call, ticket, result, self._journal.head_index(), now_ms)
            else:
                self._answer(call, ticket, result, now_ms)
        if self.waiters.count:
            self._wake(mutations, now_ms)
        if self.heartbeats.count:
            self._wake_consumers(mutations, now_ms)

    def _answer(self, call: Call | None, ticket: Ticket | None, outcome: Result | SqsError, now_ms: int) -> None:
        """Answer a call by the reply rule; ``call`` is None where nobody waits for the answer any more."""
        replica = self._replica
        if replica.commits_alone:  # everything is committed, and nobody else can be master
            self._due.append(Reply(ticket, outcome, replica.commit_index))
            return
        self._replies.answer(call, ticket, outcome, self._journal.head_index(), now_ms)

    def _count_attempt(self, call: Call, decision: Decision) -> None:
        """Number one more answer to a receive: its messages become visible again only if all its answers come back.

        Answers after the first have no mutations, or one that starts the visibility timeout again; a first one, after
        its GUID was forgotten, begins the count anew.
        """
        result, mutations, attempts = decision.result, decision.mutations, self._attempts
        if mutations and type(mutations[0]) is not m.VisibilityChanged:
            if attempts:
                attempts.pop(call.invocation, None)
        elif type(result) is ReceiveMessageResult and result.messages and not result.leased:
            result.attempt = attempts.pop(result.invocation, 1)
            attempts[result.invocation] = result.attempt + 1
            if len(attempts) > ATTEMPTS_MAX:
                del attempts[next(iter(attempts))]

    def give_back(self, result: ReceiveMessageResult, now_ms: int) -> None:
        """Make the messages of a receive visible again when all answers to it came back.

        Answers come back in any order, and any of them may have been read by the client.
        """
        answers = self._attempts.pop(result.invocation, 1 if result.attempt == 0 else 0) - 1
        if answers > 0:
            self._attempts[result.invocation] = answers
        elif answers == 0:
            time_ms = self._journal.stamp_command(now_ms)  # the GUID of the receive is forgotten, too
            self.change(self._safe_executor.own(returned(self._state, result, time_ms)), now_ms)

    # --- contents on disk ----------------------------------------------------------

    def _park(self, call: Call, ticket: Ticket, sequences: list[int]) -> None:
        """Let a call wait for contents that are on disk; it is executed again when they are in memory."""
        assert isinstance(call.command, (ReceiveMessage, Peek, ById))
        queue_id = self._queue_of(call, call.command)
        self._awaiting_contents.setdefault(queue_id, []).append((call, ticket))
        self._content_cache.want(queue_id, sequences)

    def fetched(self, fetch: Fetch, contents: list[m.MessageStored], now_ms: int) -> None:
        """Take contents that came from the disk, and execute the calls that waited for them."""
        self._content_cache.fetched(fetch, contents)
        if self._leadership.serving:
            for call, ticket in self._awaiting_contents.pop(fetch.queue_id, ()):
                self._execute(call, ticket, now_ms)
            self._serve_waiters(fetch.queue_id, now_ms)
        self._content_cache.trim()

    def lose_contents(self, queue_id: int, sequences: list[int], now_ms: int) -> None:
        """Remove messages whose contents are lost, and refuse the calls that waited for contents of their queue."""
        self._journal.stamp_command(now_ms)
        removed: list[m.Mutation] = [m.MessagesRemoved(queue_id, part) for part in m.chunks(sequences)]
        self.change(self._safe_executor.own(removed), now_ms)
        for call, ticket in self._awaiting_contents.pop(queue_id, ()):
            self._answer(call, ticket, ServiceUnavailable(UNREADABLE), now_ms)

    def _took(self, mutation: m.Mutation) -> None:
        if not isinstance(mutation, m.MessagesReceived):
            return  # dead letters only
        self._content_cache.taken(self._state.queues[mutation.queue_id], mutation.sequences[-1])

    # --- senders -------------------------------------------------------------------

    def release_senders(self, now_ms: int) -> None:
        """Admit waiting sends again, as the rows on disk moved on or the disk became full or free."""
        backpressure = self._backpressure
        backpressure.look()
        for call, ticket in backpressure.released():
            assert self._leadership.serving, "whoever loses the mastership holds nobody back"
            self.admit(call, ticket, now_ms)

    # --- long polls ----------------------------------------------------------------

    def _wait(self, call: Call, ticket: Ticket, now_ms: int) -> bool:
        """Let a receive that found nothing wait as a long poll; returns False for a short poll, to be answered now."""
        command = call.command
        assert isinstance(command, ReceiveMessage)
        if self._was_answered(call):
            return False  # an answer again, whose queue may be gone
        seconds = wait_s(self._state, call, command)
        if seconds <= 0:
            return False
        if is_leased(call):
            call = replace(call, invocation=b"")  # all who ask get the same answer, so that nobody takes a place
        displaced = self.waiters.take_over(call, ticket)
        if displaced is not None:
            self._answer(None, displaced, ReceiveMessageResult(), now_ms)
            return True
        if self.waiters.count >= WAITERS_MAX:
            self._answer(call, ticket, ServiceUnavailable("Too many receives are waiting."), now_ms)
            return True
        queue = self._queue_of(call, command)
        self.waiters.add(call, ticket, queue, now_ms + seconds * 1_000, command.elasticq_partition)
        self.waiters.expect(queue, self._state.queues[queue].order.next_due_ms())
        return True

    def _was_answered(self, call: Call) -> bool:
        return bool(call.invocation) and self._state.invocations.get(call.invocation, self._context.now_ms) is not None

    def _queue_of(self, call: Call, command: ReceiveMessage | Peek | ById) -> int:
        owner, name = queue_path(command.queue_url or "", call.account)
        return self._state.queue(owner, name).id

    def _blocks(self, queue_id: int) -> bool:
        queue = self._state.queues.get(queue_id)
        return queue is not None and queue.may_block

    def _wake(self, mutations: list[m.Mutation], now_ms: int, *, besides: int = 0) -> None:
        """Serve the receives that wait on queues changed by ``mutations``, but not on ``besides``, served already."""
        for mutation in mutations:
            if isinstance(mutation, _WAKING) or (isinstance(mutation, _FREEING) and self._blocks(mutation.queue_id)):
                queue_id = mutation.queue_id
                if queue_id != besides and self.waiters.is_awaited(queue_id):
                    self._serve_waiters(queue_id, now_ms)
            elif isinstance(mutation, _FENCING) and self.waiters.is_awaited(mutation.queue_id):
                self._refuse_fenced(mutation.queue_id, now_ms)

    def _refuse_fenced(self, queue_id: int, now_ms: int) -> None:
        """End the waits of receives whose consumers do not hold the queue any more."""
        queue = self._state.queues.get(queue_id)
        self._journal.stamp_command(now_ms)
        for waiter in self.waiters.fenced(queue_id):
            command = waiter.call.command
            assert isinstance(command, ReceiveMessage)
            try:
                if queue is not None:
                    fence.check(self._state, waiter.call, queue, command, self._context.now_ms)
            except SqsError as error:
                self._answer_waiter(waiter, error.without_frames(), now_ms)

    def _serve_waiters(self, queue_id: int, now_ms: int) -> None:
        """Answer the receives that wait on a queue, in their order, as long as there are messages for them."""
        in_vain, queues = _NOWHERE, self._state.queues
        while waiter := self.waiters.next(queue_id, in_vain, queues.get(queue_id), self._context.now_ms):
            self._journal.stamp_command(now_ms)
            try:
                decision = self._safe_executor.decide(execute, self._state, waiter.call, self._context)
                if decision.mutations and _found_nothing(decision.result):
                    decision = self._look_again(waiter.call, decision, now_ms)
                    if waiter.is_over:  # served by what its dead letters woke
                        continue
                if decision.mutations and _found_nothing(decision.result) and is_leased(waiter.call):
                    decision = self._seal_or_answer(waiter.call, decision, now_ms)
                    if waiter.is_over:
                        continue
                self._count_attempt(waiter.call, decision)
                result, mutations = decision.result, decision.mutations
                if not mutations and _is_plain(result):
                    if not self._was_answered(waiter.call):
                        in_vain |= {waiter.partition}
                        continue
                    # Another attempt of its SDK call got what there was: nothing that comes is for this one.
                    self._answer_waiter(waiter, result, now_ms)
                    continue
                if mutations:
                    self._journal.append(decision, now_ms, waiter.call)
                    self._backpressure.contents_came()
            except SqsError as error:
                self._answer_waiter(waiter, error.without_frames(), now_ms)
                continue
            except ContentsMissing as missing:
                if waiter.is_over:
                    continue
                self._content_cache.want(queue_id, missing.sequences)
                in_vain |= {waiter.partition}
                continue
            self.waiters.remove(waiter)
            if mutations:
                self._journal.close_if_free(now_ms)
            self._answer(waiter.call, waiter.ticket, result, now_ms)
            if mutations and not self._is_volatile:
                self._took(mutations[0])
            self._wake(mutations, now_ms, besides=queue_id)
            if not _is_plain(result):
                self._serve_twins(waiter, now_ms)
        queue = queues.get(queue_id)
        due_ms = queue.order.next_due_ms() if queue is not None else None
        if due_ms is not None:  # what is due and was not looked at, as a wait for contents came first, is so in a while
            self.waiters.expect(queue_id, max(due_ms, self._context.now_ms + 1))

    def _serve_twins(self, served: Waiter, now_ms: int) -> None:
        """Give the receives that wait under the same id of a lease the same answer."""
        for waiter in self.waiters.twins(served):
            self._give_up_waiting(waiter, now_ms)

    def _give_up_waiting(self, waiter: Waiter, now_ms: int) -> None:
        """End the wait of one receive: it is answered empty or, under a lease, with the final answer to its id.

        A wait that is over is left alone: the end of another may have moved dead letters for it.
        """
        if waiter.is_over:
            return
        call, ticket = waiter.call, waiter.ticket
        if not is_leased(call):
            self._answer_waiter(waiter, ReceiveMessageResult(), now_ms)
            return
        self.waiters.remove(waiter)
        if not self._leadership.may_write:  # an entry now would make the transfer target's log old
            self._hold(call, ticket, now_ms)
            return
        self._journal.stamp_command(now_ms)
        try:
            decision = self._safe_executor.decide(seal_or_answer, self._state, call, self._context)
            if decision.mutations:
                self.change(decision, now_ms, call, ticket)
            else:
                self._answer(call, ticket, decision.result, now_ms)
        except SqsError as error:
            self._answer(call, ticket, error.without_frames(), now_ms)
        except ContentsMissing as missing:
            self._park(call, ticket, missing.sequences)

    def _answer_waiter(self, waiter: Waiter, outcome: Result | SqsError, now_ms: int) -> None:
        """Answer a waiting receive, unless it was: the dead letters that it moved may have freed messages for it."""
        if not waiter.is_over:
            self.waiters.remove(waiter)
            self._answer(waiter.call, waiter.ticket, outcome, now_ms)

    # --- heartbeats ----------------------------------------------------------------

    def _wait_for_change(
        self, call: Call, ticket: Ticket, decision: Decision, view: GroupViewResult, now_ms: int
    ) -> bool:
        """Renew the session and let a heartbeat wait whose view its consumer knows; False: it is to be answered now."""
        command = call.command
        assert isinstance(command, ElasticqHeartbeat)
        wait_ms = heartbeat_wait_ms(command, view)
        if not wait_ms:
            return False
        self.change(decision, now_ms, call)
        consumer = int(view.consumer_id, 16)
        older = self.heartbeats.take(consumer)
        self.heartbeats.add(WaitingHeartbeat(consumer, call, ticket, now_ms + wait_ms, view.hold_ms))
        if older is not None:
            self._answer_heartbeat(older, now_ms)
        return True

    def _wake_consumers(self, mutations: list[m.Mutation], now_ms: int) -> None:
        """Answer the heartbeats of consumers that hold something else now, or are gone."""
        for mutation in mutations:
            if isinstance(mutation, (ConsumerChanged, ConsumerRemoved)):
                heartbeat = self.heartbeats.take(mutation.number)
                if heartbeat is not None:
                    self._answer_heartbeat(heartbeat, now_ms)

    def _answer_heartbeat(self, heartbeat: WaitingHeartbeat, now_ms: int) -> None:
        """Answer a heartbeat that waits no longer. It renews nothing: nobody knows whether its client still lives."""
        call, ticket = heartbeat.call, heartbeat.ticket
        self._journal.stamp_command(now_ms)
        try:
            view = self._safe_executor.decide(awaited_view, self._state, call, self._context).result
        except SqsError as error:
            self._answer(call, ticket, error.without_frames(), now_ms)
            return
        assert isinstance(view, GroupViewResult)
        view.hold_ms = min(view.hold_ms, heartbeat.hold_ms)
        self._answer(call, ticket, view, now_ms)

    def end_waits(self, now_ms: int) -> None:
        while (heartbeat := self.heartbeats.take_expired(now_ms)) is not None:
            self._answer_heartbeat(heartbeat, now_ms)
        while (waiter := self.waiters.pop_expired(now_ms)) is not None:
            self._give_up_waiting(waiter, now_ms)

    def serve_due(self, now_ms: int) -> None:
        time_ms = self._journal.stamp_command(now_ms)
        while (queue_id := self.waiters.pop_due(time_ms)) is not None:
            self._serve_waiters(queue_id, now_ms)

    def cancel(self, ticket: Ticket) -> None:
        self.waiters.cancel(ticket)
        self.heartbeats.take_with(ticket)
        self.matchings.cancel(ticket)
        for calls in self._awaiting_contents.values():
            calls[:] = [(call, other) for call, other in calls if other != ticket]

    def end_wait_of(self, ticket: Ticket, now_ms: int) -> None:
        """End the wait of one receive as ``close_waiters`` does, if it waits."""
        waiter = self.waiters.of(ticket)
        if waiter is not None:
            self._give_up_waiting(waiter, now_ms)
        heartbeat = self.heartbeats.take_with(ticket)
        if heartbeat is not None:
            self._answer_heartbeat(heartbeat, now_ms)

    def forget_waiting_of(self, sender: str) -> None:
        for waiter in self.waiters.all():
            ticket = waiter.ticket
            if type(ticket) is Remote and ticket.sender == sender:
                self.waiters.cancel(ticket)
        for ticket in self.heartbeats.tickets():
            if type(ticket) is Remote and ticket.sender == sender:
                self.heartbeats.take_with(ticket)

    def close_waiters(self, now_ms: int) -> None:
        """End the waits of all receives: each is answered empty or, under a lease, with the final answer to its id."""
        for waiter in self.waiters.all():
            self._give_up_waiting(waiter, now_ms)
        for heartbeat in self.heartbeats.take_all():
            self._answer_heartbeat(heartbeat, now_ms)

    # --- time and mastership --------------------------------------------------------

    def wake_at_ms(self) -> int | None:
        """The boot-clock ms at which a wait ends or a message may become visible to a waiting receive, if any waits."""
        waiters = self.waiters
        heartbeat_ms = self.heartbeats.next_deadline_ms() if self.heartbeats.count else None
        if not waiters.count:
            return heartbeat_ms
        wake_ms = waiters.next_deadline_ms()
        if heartbeat_ms is not None and (wake_ms is None or heartbeat_ms < wake_ms):
            wake_ms = heartbeat_ms
        due_ms = waiters.next_due_ms() if self._leadership.may_write else None
        if due_ms is not None:
            due_ms = self._clock.boot_ms(due_ms)
            if wake_ms is None or due_ms < wake_ms:
                wake_ms = due_ms
        return wake_ms

    def lost_mastership(self, now_ms: int) -> list[HeldCall]:
        """Return the calls that the next master shall take: those without an effect yet, reads, and those with a GUID.

        Where a call without a GUID waits for its entry, what becomes of that entry decides.
        """
        waiting_calls = self._waiting_calls
        held = []
        for answer in self._replies.give_up():
            if answer.call is None or not waiting_calls.hold_ms:
                self._due.append(Reply(answer.ticket, ServiceUnavailable(LOST), 0))
                continue
            answered = waiting_calls.after_wait(answer.call, answer.ticket, now_ms)  # it has waited
            if waiting_calls.may_go_on(answered, now_ms):
                answered.is_uncertain = True
                held.append(answered)
            elif answer.by_lease or self._replica.log.term_at(answer.index) != self._context.term:
                held.append(answered)  # it has no entry of its own, or that one is gone
            else:
                self.undecided.add(answered, answer)
        idle = self._backpressure.give_up() + self.matchings.take_all()
        idle += [parked for calls in self._awaiting_contents.values() for parked in calls]
        self._awaiting_contents.clear()
        held += [waiting_calls.from_now(call, ticket, now_ms) for call, ticket in idle]
        receives = self.waiters.take_all()
        held += [waiting_calls.after_wait(each.call, each.ticket, each.deadline_ms) for each in receives]
        waiting = self.heartbeats.take_all()
        held += [waiting_calls.after_wait(each.call, each.ticket, each.deadline_ms) for each in waiting]
        return held


def _found_nothing(result: Result | SqsError) -> bool:
    """True for the result of a receive that found no message and may wait."""
    return type(result) is ReceiveMessageResult and not result.messages and not result.leased


def _is_plain(result: Result | SqsError) -> bool:
    """True for the result of a receive without a lease; those of leases may need no mutation."""
    return type(result) is ReceiveMessageResult and not result.leased


def _is_standard_send(result: Result | SqsError) -> bool:
    """True for a send that stored something in a standard queue: acknowledgement modes are for these only."""
    if type(result) is SendMessageResult:
        return result.sequence_number is None
    if type(result) is not SendMessageBatchResult or not result.successful:
        return False
    return result.successful[0].sequence_number is None
