"""Execution of calls on a master, from admission to answer, including everything for which a call waits.

A call can wait for the end of a hand-over (waiting calls), for space (backpressure) or for contents on disk. A publish
can wait for its matching, a receive for a message (waiters), and a heartbeat for a change in its group. Each change of
the state wakes the calls that wait for it.
"""

from typing import Final

from msgspec.structs import replace

from elasticq.engine import execute as execution
from elasticq.engine.actions.declare import at_first_use
from elasticq.engine.actions.leases import is_leased
from elasticq.engine.actions.receive import returned, wait_s
from elasticq.engine.consumer_groups import fence
from elasticq.engine.consumer_groups.actions import awaited_view, heartbeat_wait_ms
from elasticq.engine.execute import seal_or_answer
from elasticq.engine.matching import Unfinished
from elasticq.engine.ordering.contract import ContentsMissing
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.consumer_group_rows import ConsumerChanged, ConsumerRemoved, ResourceAssigned, ResourceFreed
from elasticq.model.commands import Call, ReceiveMessage
from elasticq.model.errors import QueueDoesNotExist, ServiceUnavailable, SqsError, TopicThrottled
from elasticq.model.extensions import ById, Peek
from elasticq.model.group_commands import ElasticqHeartbeat
from elasticq.model.group_results import GroupViewResult
from elasticq.model.limits import WAITERS_MAX
from elasticq.model.names import queue_path
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.node.clock import earlier
from elasticq.node.decision import Decision
from elasticq.node.journal import Journal
from elasticq.node.leadership import TAKING_OVER, Leadership
from elasticq.node.outcomes import found_nothing, is_plain, is_standard_send
from elasticq.node.outputs import Fetch, HeldCall, Ticket
from elasticq.node.parts import Parts
from elasticq.node.reply import Reply
from elasticq.node.waits.contents import ContentWaits
from elasticq.node.waits.heartbeats import Heartbeats, WaitingHeartbeat
from elasticq.node.waits.pending_calls import Remote
from elasticq.node.waits.publishes import TOO_MANY, Matchings
from elasticq.node.waits.undecided import Undecided
from elasticq.node.waits.waiters import Waiter, Waiters

# Bounds for one receive: executions, and messages in all. Beyond them it moves only the last found dead letters.
DEAD_LETTERS: Final = 10, 1_000
ATTEMPTS_MAX: Final = 10_000
TOO_MANY_ON_DISK: Final = "Too many calls wait for messages that are on disk; try again later."
SERVED_AT_ONCE: Final = 100  # waiting calls that one turn executes, so that other calls can run
ENDED_AT_ONCE: Final = 200  # waits that one turn ends
LOST: Final = "The mastership was lost; the outcome is unknown, a retry is safe."
TOO_LATE: Final = "The call reached the master after its deadline and was not executed there; a retry is safe."
UNREADABLE: Final = "Messages of this queue cannot be read from disk and are lost; a retry skips them."

# Compiled code finds these names of its own module without a dict lookup, and those of an interpreted one with it.
_GroupViewResult: Final = GroupViewResult
_MessagesReceived: Final = m.MessagesReceived
_ReceiveMessageResult: Final = ReceiveMessageResult
_SqsError: Final = SqsError
_VisibilityChanged: Final = m.VisibilityChanged
_run: Final = execution.execute

_NO_PARTITIONS: Final[frozenset[int]] = frozenset()
# After these a waiting receive of their queue may find a message, or must learn that the queue was deleted.
_WAKING = (m.MessageStored, m.VisibilityChanged, m.ReceiveReturned, m.QueueDeleted, m.QueueAttributesSet)
_FREEING = (m.MessagesRemoved, m.RangeRemoved)  # after these the next message of a blocked group may be free
_FENCING = (ResourceAssigned, ResourceFreed)  # after these a receive of a group's consumer may have to be refused


class Executor:
    """The calls of this master. Answers that may leave at once are added to ``due``.

    waiters: the long polls.
    undecided: the answers that this member held when it lost the mastership.
    """

    def __init__(self, parts: Parts, journal: Journal, leadership: Leadership) -> None:
        settings = parts.settings
        self.waiters: Final = Waiters()  # Final, because other parts of the node hold these objects, too
        self.heartbeats: Final = Heartbeats()
        self.undecided: Final = Undecided(is_for_all=settings.mode == "all")
        self._state = parts.state
        self._replica = parts.replica
        self._clock = parts.clock
        self._safe_executor = parts.safe_executor
        self._journal = journal
        self._context = journal.context
        self._leadership = leadership
        self._replies = parts.replies
        self._content_cache = parts.content_cache
        self._backpressure = parts.backpressure
        self._waiting_calls = parts.waiting_calls
        self._due = parts.effects.replies
        self._is_volatile = settings.volatile
        self.content_waits: Final = ContentWaits()
        self.resume_at_ms = 0  # when the next turn may go on with waits of which the last one did its part
        self.matchings = Matchings()
        self._attempts: dict[bytes, int] = {}  # invocation id -> answers sent so far, where there were several

    # --- calls ---------------------------------------------------------------------

    def admit(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        """Execute a call, or let it wait for the end of a hand-over or, as a send, for space.

        All calls pass through here.
        """
        if not self._leadership.may_write:
            self._hold(call, ticket, now_ms)
        elif not (self._backpressure.is_watching and self._backpressure.hold(call, ticket)):
            self._execute(call, ticket, now_ms)

    def _hold(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        """Let a call without an effect wait until the hand-over ends; refuse it if too many calls wait."""
        waiting_calls = self._waiting_calls
        held, is_own = waiting_calls.from_now(call, ticket, now_ms), type(ticket) is not Remote
        if not waiting_calls.hold(held, now_ms, is_bounded=is_own):
            self._due.append(Reply(ticket, ServiceUnavailable(TAKING_OVER), 0))

    def _execute(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        self._journal.stamp_command(now_ms)
        deadline_ms = call.deadline_ms
        if deadline_ms and deadline_ms < self._clock.reading(now_ms)[1]:
            self._answer(call, ticket, ServiceUnavailable(TOO_LATE), now_ms)
            return
        no_queue: QueueDoesNotExist | None = None
        try:
            decision = self._safe_executor.decide(_run, self._state, call, self._context)
            if type(decision.result) is _ReceiveMessageResult:  # sends skip this block, because they are the hot path
                if decision.mutations and found_nothing(decision.result):
                    decision = self._move_dead_letters(call, decision, now_ms)
                if found_nothing(decision.result) and is_leased(call):
                    if not decision.mutations and self._wait(call, ticket, now_ms):
                        return
                    decision = self._seal_or_answer(call, decision, now_ms)
                self._count_attempt(call, decision)
            result, mutations = decision.result, decision.mutations
            if type(result) is _GroupViewResult and self._wait_for_change(call, ticket, decision, result, now_ms):
                return
            if mutations:
                self.change(decision, now_ms, call, ticket)
                if not self._is_volatile and type(result) is _ReceiveMessageResult:
                    self._prefetch_after(mutations[0])
                return
        except _SqsError as error:
            if type(error) is not QueueDoesNotExist or self._context.template is None:
                self._answer(call, ticket, error.without_frames(), now_ms)
                return
            no_queue = error.without_frames()  # without frames, because one of them is this function's
        except ContentsMissing as missing:
            self._await_contents(call, ticket, missing.sequences)
            return
        except Unfinished as unfinished:
            if not self.matchings.add(call, ticket, unfinished.matching):
                self._answer(call, ticket, TopicThrottled(TOO_MANY), now_ms)
            return
        if no_queue is not None:  # not in the except clause, where later errors would keep a reference to this one
            self._execute_with_queue(call, ticket, no_queue, now_ms)
            return
        if found_nothing(result) and self._wait(call, ticket, now_ms):
            return
        if is_standard_send(result) and not self._replies.acked_before_commit:  # a retry: mode all waits for all again
            self._replies.answer_send(call, ticket, result, self._journal.head_index(), now_ms)
            return
        self._answer(call, ticket, result, now_ms)

    def _execute_with_queue(self, call: Call, ticket: Ticket, error: SqsError, now_ms: int) -> None:
        """Create the call's queue from the template and execute it; answer ``error`` if the template does not apply."""
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

    def _move_dead_letters(self, call: Call, decision: Decision, now_ms: int) -> Decision:
        """Move the dead letters that a receive found, and execute it again, until it finds none.

        Beyond DEAD_LETTERS its result is empty, and the returned decision moves the dead letters found last. Raise
        SqsError or ContentsMissing; dead letters that were moved before stay moved.
        """
        (steps, most), moved = DEAD_LETTERS, 0
        for _ in range(steps):
            moved += len(decision.mutations)
            self.change(decision, now_ms, call)
            self._journal.stamp_command(now_ms)
            decision = self._safe_executor.decide(_run, self._state, call, self._context)
            if moved > most or not decision.mutations or not found_nothing(decision.result):
                break
        return decision

    def _seal_or_answer(self, call: Call, decision: Decision, now_ms: int) -> Decision:
        """Apply ``decision``, and return the final one for a receive under a lease that found nothing."""
        self.change(decision, now_ms, call)
        self._journal.stamp_command(now_ms)
        return self._safe_executor.decide(seal_or_answer, self._state, call, self._context)

    def change(self, decision: Decision, now_ms: int, call: Call | None = None, ticket: Ticket | None = None) -> None:
        """Apply a decision, add it to the open entry, and answer ``ticket`` by the reply rule.

        Raise SqsError if the mutations of ``call`` cannot be applied. Then the call has no effect.
        """
        mutations, result = decision.mutations, decision.result
        if not mutations:
            return
        self._journal.append(decision, now_ms, call)
        self._backpressure.contents_came()
        is_send = ticket is not None and is_standard_send(result)
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
        """Answer a call by the reply rule. ``call`` is None if no client waits for the answer any more."""
        replica = self._replica
        if replica.commits_alone:  # everything is committed, and no other member can be master
            self._due.append(Reply(ticket, outcome, replica.commit_index))
            return
        self._replies.answer(call, ticket, outcome, self._journal.head_index(), now_ms)

    def _count_attempt(self, call: Call, decision: Decision) -> None:
        """Count the repeated answers to one receive, whose messages become visible again only if all are returned.

        A repeated answer has no mutations, or one that restarts the visibility timeout. If the invocation id was
        forgotten, the next answer is a first one and restarts the count.
        """
        result, mutations, attempts = decision.result, decision.mutations, self._attempts
        if mutations and type(mutations[0]) is not _VisibilityChanged:
            if attempts:
                attempts.pop(call.invocation, None)
        elif type(result) is _ReceiveMessageResult and result.messages and not result.leased:
            result.attempt = attempts.pop(result.invocation, 1)
            attempts[result.invocation] = result.attempt + 1
            if len(attempts) > ATTEMPTS_MAX:
                del attempts[next(iter(attempts))]

    def give_back(self, result: ReceiveMessageResult, now_ms: int) -> None:
        """Make the messages visible again once all answers to their receive were returned unread, in any order."""
        answers = self._attempts.pop(result.invocation, 1 if result.attempt == 0 else 0) - 1
        if answers > 0:
            self._attempts[result.invocation] = answers
        elif answers == 0:
            time_ms = self._journal.stamp_command(now_ms)  # this also removes the invocation id from the history
            self.change(self._safe_executor.own(returned(self._state, result, time_ms)), now_ms)

    # --- contents on disk ----------------------------------------------------------

    def _await_contents(self, call: Call, ticket: Ticket, sequences: list[int]) -> None:
        """Let a call wait for contents that are on disk. It is executed again when they are in memory."""
        assert isinstance(call.command, (ReceiveMessage, Peek, ById))
        queue_id = self._queue_of(call, call.command)
        if self.content_waits.add(queue_id, call, ticket):
            self._content_cache.want(queue_id, sequences)
        else:
            self._due.append(Reply(ticket, ServiceUnavailable(TOO_MANY_ON_DISK), 0))

    def fetched(self, fetch: Fetch, contents: list[m.MessageStored], now_ms: int) -> None:
        """Take contents that were read from disk, and execute the calls that waited for them."""
        self._content_cache.fetched(fetch, contents)
        if self._leadership.serving:
            self.content_waits.fetched(fetch.queue_id)
            self.serve_fetched(now_ms)
            self._serve_waiters(fetch.queue_id, now_ms)
        self._content_cache.trim()

    def serve_fetched(self, now_ms: int) -> None:
        """Execute SERVED_AT_ONCE of the calls whose contents came from disk."""
        for call, ticket in self.content_waits.take_ready(SERVED_AT_ONCE):
            self._execute(call, ticket, now_ms)
        self.resume_at_ms = now_ms + 1

    def lose_contents(self, queue_id: int, sequences: list[int], now_ms: int) -> None:
        """Remove messages whose contents are lost, and refuse the calls that waited for contents of their queue."""
        self._journal.stamp_command(now_ms)
        removed: list[m.Mutation] = [m.MessagesRemoved(queue_id, part) for part in m.chunks(sequences)]
        self.change(self._safe_executor.own(removed), now_ms)
        for call, ticket in self.content_waits.take_of(queue_id):
            self._answer(call, ticket, ServiceUnavailable(UNREADABLE), now_ms)

    def _prefetch_after(self, mutation: m.Mutation) -> None:
        if not isinstance(mutation, _MessagesReceived):
            return  # it only moved dead letters
        self._content_cache.taken(self._state.queues[mutation.queue_id], mutation.sequences[-1])

    # --- senders -------------------------------------------------------------------

    def release_senders(self, now_ms: int) -> None:
        """Admit waiting sends again, because the rows on disk advanced, or the disk became full or free."""
        backpressure = self._backpressure
        backpressure.look()
        for call, ticket in backpressure.released():
            assert self._leadership.serving, "a member that is not the master holds no sends"
            self.admit(call, ticket, now_ms)

    # --- long polls ----------------------------------------------------------------

    def _wait(self, call: Call, ticket: Ticket, now_ms: int) -> bool:
        """Let a receive that found nothing wait. Return False for a short poll, which is answered now."""
        command = call.command
        assert isinstance(command, ReceiveMessage)
        if self._was_answered(call):
            return False  # this repeats an earlier answer; the queue may be deleted
        seconds = wait_s(self._state, call, command)
        if seconds <= 0:
            return False
        if is_leased(call):
            call = replace(call, invocation=b"")  # all receives of the lease get one answer; none replaces another
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
        """Serve the receives at queues that ``mutations`` changed, except at ``besides``, which was served."""
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

    def _serve_waiters(self, queue_id: int, now_ms: int) -> int:
        """Answer the receives that wait at a queue, in their order, as long as it has messages for them.

        Return how many were executed, SERVED_AT_ONCE at most. The next turn serves the others.
        """
        in_vain, queues, served = _NO_PARTITIONS, self._state.queues, 0
        while waiter := self.waiters.next(queue_id, in_vain, queues.get(queue_id), self._context.now_ms):
            if served == SERVED_AT_ONCE:
                self.waiters.expect(queue_id, self._context.now_ms + 1)
                return served
            served += 1
            self._journal.stamp_command(now_ms)
            try:
                decision = self._safe_executor.decide(_run, self._state, waiter.call, self._context)
                if decision.mutations and found_nothing(decision.result):
                    decision = self._move_dead_letters(waiter.call, decision, now_ms)
                    if waiter.is_over:  # moving its dead letters has woken and answered it
                        continue
                if decision.mutations and found_nothing(decision.result) and is_leased(waiter.call):
                    decision = self._seal_or_answer(waiter.call, decision, now_ms)
                    if waiter.is_over:
                        continue
                self._count_attempt(waiter.call, decision)
                result, mutations = decision.result, decision.mutations
                if not mutations and is_plain(result):
                    if not self._was_answered(waiter.call):
                        in_vain |= {waiter.partition}
                        continue
                    # Another attempt of the same SDK call was answered, so this attempt gets no messages.
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
                self._prefetch_after(mutations[0])
            self._wake(mutations, now_ms, besides=queue_id)
            if not is_plain(result):
                self._serve_twins(waiter, now_ms)
        queue = queues.get(queue_id)
        due_ms = queue.order.next_due_ms() if queue is not None else None
        if due_ms is not None:  # due messages were skipped while contents are fetched: try again 1 ms later
            self.waiters.expect(queue_id, max(due_ms, self._context.now_ms + 1))
        return served

    def _serve_twins(self, served: Waiter, now_ms: int) -> None:
        """Give the other receives of the same lease the same answer."""
        for waiter in self.waiters.twins(served):
            self._give_up_waiting(waiter, now_ms)

    def _give_up_waiting(self, waiter: Waiter, now_ms: int) -> None:
        """End the wait of one receive, with an empty answer or, under a lease, with the final answer to its id.

        Do nothing if it is over, for instance because another end of a wait has moved dead letters to it.
        """
        if waiter.is_over:
            return
        call, ticket = waiter.call, waiter.ticket
        if not is_leased(call):
            self._answer_waiter(waiter, ReceiveMessageResult(), now_ms)
            return
        self.waiters.remove(waiter)
        if not self._leadership.may_write:  # an entry made now is not in the log of the hand-over's target
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
            self._await_contents(call, ticket, missing.sequences)

    def _answer_waiter(self, waiter: Waiter, outcome: Result | SqsError, now_ms: int) -> None:
        """Answer a waiting receive, unless it was answered when dead letters moved."""
        if not waiter.is_over:
            self.waiters.remove(waiter)
            self._answer(waiter.call, waiter.ticket, outcome, now_ms)

    # --- heartbeats ----------------------------------------------------------------

    def _wait_for_change(
        self, call: Call, ticket: Ticket, decision: Decision, view: GroupViewResult, now_ms: int
    ) -> bool:
        """Renew the session and let a heartbeat wait if it knows the current assignment. Return False to answer it
        now."""
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
        """Answer the heartbeats of consumers whose assignment changed or that were removed."""
        for mutation in mutations:
            if isinstance(mutation, (ConsumerChanged, ConsumerRemoved)):
                heartbeat = self.heartbeats.take(mutation.number)
                if heartbeat is not None:
                    self._answer_heartbeat(heartbeat, now_ms)

    def _answer_heartbeat(self, heartbeat: WaitingHeartbeat, now_ms: int) -> None:
        """Answer a waiting heartbeat. This does not renew the session, because the client may have died."""
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
        """End the waits whose time is over, ENDED_AT_ONCE at most. The next turn ends the others."""
        for _ in range(ENDED_AT_ONCE):
            if (heartbeat := self.heartbeats.take_expired(now_ms)) is not None:
                self._answer_heartbeat(heartbeat, now_ms)
            elif (waiter := self.waiters.pop_expired(now_ms)) is not None:
                self._give_up_waiting(waiter, now_ms)
            else:
                return
        self.resume_at_ms = now_ms + 1

    def serve_due(self, now_ms: int) -> None:
        """Serve queues with due messages, until about SERVED_AT_ONCE receives were executed."""
        time_ms, served = self._journal.stamp_command(now_ms), 0
        while served < SERVED_AT_ONCE and (queue_id := self.waiters.pop_due(time_ms)) is not None:
            served += 1 + self._serve_waiters(queue_id, now_ms)
        if served >= SERVED_AT_ONCE:
            self.resume_at_ms = now_ms + 1

    def cancel(self, ticket: Ticket) -> None:
        self.waiters.cancel(ticket)
        self.heartbeats.take_with(ticket)
        self.matchings.cancel(ticket)
        self.content_waits.cancel(ticket)

    def end_wait_of(self, ticket: Ticket, now_ms: int) -> None:
        """End the wait with this ticket. A receive is answered empty or, under a lease, with the final answer."""
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
        """End all waits of receives and heartbeats as ``end_wait_of`` does."""
        for waiter in self.waiters.all():
            self._give_up_waiting(waiter, now_ms)
        for heartbeat in self.heartbeats.take_all():
            self._answer_heartbeat(heartbeat, now_ms)

    # --- time and mastership --------------------------------------------------------

    def wake_at_ms(self) -> int | None:
        """Return when (boot clock) a wait ends or a waiting receive may find a message; None without one."""
        waiters = self.waiters
        wake_ms = self.heartbeats.next_deadline_ms() if self.heartbeats.count else None
        if waiters.count:
            wake_ms = earlier(wake_ms, waiters.next_deadline_ms())
            due_ms = waiters.next_due_ms() if self._leadership.may_write else None
            if due_ms is not None:
                wake_ms = earlier(wake_ms, self._clock.boot_ms(due_ms))
        return None if wake_ms is None else max(wake_ms, self.resume_at_ms)

    def lost_mastership(self, now_ms: int) -> list[HeldCall]:
        """Remove the waiting calls, and return those that the next master shall execute.

        These are reads, calls without an effect so far, and calls with an invocation id. A call without one whose entry
        is not committed yet is added to ``undecided``.
        """
        waiting_calls = self._waiting_calls
        held = []
        for answer in self._replies.give_up():
            if answer.call is None or not waiting_calls.hold_ms:
                self._due.append(Reply(answer.ticket, ServiceUnavailable(LOST), 0))
                continue
            answered = waiting_calls.after_wait(answer.call, answer.ticket, now_ms)  # its own wait is over
            if waiting_calls.may_go_on(answered, now_ms):
                answered.is_uncertain = True
                held.append(answered)
            elif answer.by_lease or self._replica.log.term_at(answer.index) != self._context.term:
                held.append(answered)  # it has no entry of its own, or its entry was cut off
            else:
                self.undecided.add(answered, answer)
        idle = self._backpressure.give_up() + self.matchings.take_all() + self.content_waits.take_all()
        held += [waiting_calls.from_now(call, ticket, now_ms) for call, ticket in idle]
        polls: list[Waiter | WaitingHeartbeat] = [*self.waiters.take_all(), *self.heartbeats.take_all()]
        held += [waiting_calls.after_wait(each.call, each.ticket, each.deadline_ms) for each in polls]
        return held
