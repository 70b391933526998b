"""A simulated consumer of a group. It uses the real core of the client, ``GroupState``, and has its own clock.

It makes the client's calls: heartbeats when the core wants them, one more heartbeat that waits at the server, and acts
(receives and deletes) under its tokens. Between the core's permission and the act some time passes. The consumer may
be paused meanwhile, so the server also gets acts of consumers that have lost their assignment. After a kill or a leave
the process joins the group again as another consumer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from elasticq.checks.group_history import Act, Held, Renewed
from elasticq.client.group_state import Assignment, GroupState, View
from elasticq.model.commands import Call, Command, DeleteMessage, ReceiveMessage
from elasticq.model.errors import (
    ElasticqGroupDoesNotExist,
    ElasticqUnknownConsumer,
    QueueDoesNotExist,
    ReceiptHandleIsInvalid,
    ServiceUnavailable,
    SqsError,
)
from elasticq.model.group_commands import ElasticqHeartbeat, ElasticqJoinGroup, ElasticqLeaveGroup
from elasticq.model.group_results import GroupViewResult, HeldResource
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.node.outputs import Ticket
from elasticq.sim.client import Client
from elasticq.sim.cluster import Cluster
from elasticq.sim.group_record import GROUP, GroupRecord
from elasticq.sim.workload import Workload

LOST: Final = (ElasticqUnknownConsumer, ElasticqGroupDoesNotExist)
RATES: Final = (1.0, 1.0, 0.9, 0.9, 1.05)
"""The speeds of consumers' clocks. The guarantees of consumer groups hold for clocks that are up to 10 % slow."""
START_US, STOP_US, REJOIN_US = (0, 200_000), (0, 900_000), (50_000, 2_000_000)
THINK_US, SENDING_US = (20_000, 500_000), (0, 60_000)
WAITS_S: Final = (1, 2, 5)
WAIT_AGAIN_US: Final = 60_000
BEAT_US: Final = 600_000  # the timeout of a heartbeat; the consumer then makes a new one


class Caller(Client):
    """One connection of a consumer. It ends, pauses and loses the network together with the consumer.

    refusal: the error that answered the call, set only while that answer is handled.
    """

    def __init__(self, body: Consumer, name: str) -> None:
        super().__init__(body.cluster, body.workload, name)
        self.body = body
        self.refusal: SqsError | None = None

    def start(self) -> None:
        """Do nothing: the consumer starts each call."""

    def _attempt(self, number: int) -> None:
        self.body.awake(partial(super()._attempt, number))

    def _timed_out(self, ticket: Ticket) -> None:
        self.body.awake(partial(super()._timed_out, ticket))

    def _broken(self, ticket: Ticket) -> None:
        self.body.awake(partial(super()._broken, ticket))

    def _request(self, ticket: Ticket, call: Call) -> None:
        if not self.body.is_cut:
            super()._request(ticket, call)

    def refused(self, ticket: Ticket) -> None:
        if not self.body.is_cut:
            self.body.awake(partial(super().refused, ticket))

    def answered(self, ticket: Ticket, outcome: Result | SqsError) -> None:
        if not self.body.is_cut:
            self.body.awake(partial(self._take, ticket, outcome))

    def _take(self, ticket: Ticket, outcome: Result | SqsError) -> None:
        if isinstance(outcome, ReceiptHandleIsInvalid):
            outcome = QueueDoesNotExist()  # the queue may have been recreated; other clients' checks report this error
        if isinstance(outcome, SqsError) and not isinstance(outcome, ServiceUnavailable):
            self.refusal = outcome
        if self.body.is_calm:
            self.lost_reply_share = 0.0
        super().answered(ticket, outcome)
        self.refusal = None


class Beat(Caller):
    """A connection for heartbeats. Each gets one attempt, because a new heartbeat is better than a late one."""

    timeout_us = BEAT_US
    patience_us = 0


class Life:
    """A consumer from its start to its end.

    open: the assignments that it holds, by token. hold_until_us: when they end by its own clock, in true time.
    is_over: the consumer has ended; later events are dropped.
    """

    def __init__(self, body: Consumer, number: int) -> None:
        name = f"{body.name}.{number}"
        self.core = GroupState()
        self.joining = Caller(body, f"{name} join")
        self.beating = Beat(body, f"{name} beat")
        self.waiting = Beat(body, f"{name} wait")
        self.acting = Caller(body, f"{name} act")
        self.open: dict[int, Held] = {}
        self.hold_until_us = 0
        self.is_over = False
        self.is_leaving = False
        self.turn = 0


class Consumer:
    """A process that takes part in the group, as a new consumer after each restart.

    rate: the speed of its clock. is_cut: it has no network. is_calm: it is not disturbed any more.
    backlog: what it does when it resumes. life: the current consumer, None while the process is down.
    """

    def __init__(self, cluster: Cluster, workload: Workload, record: GroupRecord, name: str, weight: int) -> None:
        self.cluster = cluster
        self.workload = workload
        self.scheduler = cluster.scheduler
        self.record = record
        self.name = name
        self.weight = weight
        self.random = self.scheduler.random(name)
        self.rate = self.random.choice(RATES)
        self.is_cut = False
        self.is_paused = False
        self.is_calm = False
        self.backlog: list[Callable[[], None]] = []
        self.lives = 0
        self.life: Life | None = None

    @property
    def id(self) -> str:
        """Return the current ConsumerId, empty if there is none."""
        return "" if self.life is None else self.life.core.view.consumer_id

    def holds(self, queue: str) -> bool:
        """Return whether the consumer holds this queue or one of its partitions."""
        held = [] if self.life is None else list(self.life.open.values())
        return any(each.resource.split("/")[0] == queue for each in held)

    # --- clock ------------------------------------------------------------------------

    @property
    def now_ms(self) -> float:
        return self.scheduler.now_us * self.rate / 1_000

    def _true_us(self, own_ms: float) -> int:
        return int(own_ms * 1_000 / self.rate)

    # --- life -------------------------------------------------------------------------

    def start(self) -> None:
        """Start the process, unless it runs."""
        if self.life is None:
            self.lives += 1
            self.life = Life(self, self.lives)
            self._settle()

    def kill(self) -> None:
        """End at once, like a killed process."""
        life = self.life
        if life is None:
            return
        for held in list(life.open.values()):
            self._close(life, held)
        life.is_over = True
        self.life = None
        self.is_paused = False
        self.backlog.clear()

    def leave(self) -> None:
        """Stop all work, leave the group, and join it again later."""
        life = self.life
        if life is not None and not life.is_leaving:
            life.is_leaving = True
            life.core.close()
            self.awake(self._settle)

    def pause(self) -> None:
        self.is_paused = self.life is not None

    def resume(self) -> None:
        self.is_paused = False
        backlog, self.backlog = self.backlog, []
        for action in backlog:
            self.awake(action)

    def mend(self) -> None:
        """End the cut from the network."""
        self.is_cut = False

    def calm(self) -> None:
        """End all disturbances for the rest of the run, and start the process if it is down."""
        self.is_calm = True
        self.mend()
        self.resume()
        self.start()

    def awake(self, action: Callable[[], None]) -> None:
        """Run ``action`` now, or when the process resumes. Drop it if the consumer ends before."""
        if self.life is None:
            return
        if self.is_paused:
            self.backlog.append(self._of_this_life(action))
        else:
            action()

    def _of_this_life(self, action: Callable[[], None]) -> Callable[[], None]:
        life = self.life

        def act() -> None:
            if self.life is life:
                action()

        return act

    def _later(self, delay_us: int, action: Callable[[], None]) -> None:
        guarded = self._of_this_life(action)
        self.scheduler.schedule(delay_us, lambda: self.awake(guarded))

    # --- steps of the core ------------------------------------------------------------

    def _settle(self) -> None:
        """Do the steps that the core wants now, and schedule the next check."""
        life = self.life
        assert life is not None
        core = life.core
        steps = core.next_steps(self.now_ms)
        for assignment in steps.stop:
            self._later(self.random.randint(*STOP_US), partial(self._stopped, life, assignment.token))
        for assignment in steps.start:
            self._opened(life, assignment)
            self._later(self.random.randint(*START_US), partial(self._started, life, assignment.token))
        for token, held in list(life.open.items()):
            if not core.may_finish(token, self.now_ms):
                self._close(life, held)
        hold_until_ms = core.wake_ms(self.now_ms)
        if hold_until_ms is not None:
            life.hold_until_us = self._true_us(hold_until_ms)
        if life.is_leaving and not core.acting:
            self._leave_group(life)
        else:
            self._call(life)
        self._sleep(life, hold_until_ms)

    def _sleep(self, life: Life, hold_until_ms: float | None) -> None:
        life.turn += 1
        turn = life.turn
        wake_ms = [] if hold_until_ms is None else [hold_until_ms]
        if life.beating.running is None and life.joining.running is None:
            wake_ms.append(life.core.ask_ms())
        if not wake_ms:
            return

        def wake() -> None:
            if life.turn == turn:
                self._settle()

        self._later(max(1_000, self._true_us(min(wake_ms)) - self.scheduler.now_us + 1_000), wake)

    def _opened(self, life: Life, assignment: Assignment) -> None:
        held = Held(life.core.view.consumer_id, assignment.resource, assignment.token, self.scheduler.now_us)
        life.open[assignment.token] = held
        self.record.events.append(held)
        self._later(self.random.randint(*THINK_US), partial(self._act, life, assignment))

    def _close(self, life: Life, held: Held) -> None:
        """Record the end of a hold. If the consumer was paused, the hold may have ended earlier by its own clock."""
        now_us = self.scheduler.now_us
        held.until_us = max(held.from_us, min(now_us, life.hold_until_us or now_us))
        life.open.pop(held.token, None)

    def _started(self, life: Life, token: int) -> None:
        life.core.started(token)
        self._settle()

    def _stopped(self, life: Life, token: int) -> None:
        life.core.stopped(token)
        held = life.open.get(token)
        if held is not None:
            self._close(life, held)
        self._settle()

    # --- calls ------------------------------------------------------------------------

    def _call(self, life: Life) -> None:
        core, sent_ms = life.core, self.now_ms
        if core.ask_ms() <= sent_ms and life.beating.running is None and life.joining.running is None:
            ask = core.ask(sent_ms)
            if ask.consumer_id:
                command: Command = ElasticqHeartbeat(GROUP, ask.consumer_id, ask.released)
                self._beat(life, life.beating, command, ask.consumer_id, 0)
            elif not life.is_leaving:
                sent_us = self.scheduler.now_us
                join = ElasticqJoinGroup(GROUP, f"{self.name} at {sent_us}", self.weight)
                life.joining.begin(join, None, partial(self._joined, life, sent_ms, sent_us))
        view = core.view
        if view.consumer_id and life.waiting.running is None and not life.is_leaving:
            wait_s = self.random.choice(WAITS_S)
            command = ElasticqHeartbeat(GROUP, view.consumer_id, [], view.version, wait_s)
            self._beat(life, life.waiting, command, view.consumer_id, wait_s)

    def _beat(self, life: Life, caller: Caller, command: Command, consumer: str, wait_s: int) -> None:
        done = partial(self._beaten, life, caller, consumer, self.now_ms, self.scheduler.now_us)
        caller.begin(command, None, done, wait_us=wait_s * 1_000_000)

    def _joined(self, life: Life, sent_ms: float, sent_us: int, result: Result | None) -> None:
        if isinstance(result, GroupViewResult):
            self._renewed(result.consumer_id, sent_us)
            life.core.joined(view_of(result), sent_ms)
        else:
            life.core.failed(self.now_ms)
        self._settle()

    def _beaten(
        self, life: Life, caller: Caller, consumer: str, sent_ms: float, sent_us: int, result: Result | None
    ) -> None:
        if isinstance(result, GroupViewResult):
            self._renewed(consumer, sent_us)
            life.core.answered(view_of(result), sent_ms)
        elif isinstance(caller.refusal, LOST):
            life.core.lost(consumer)
        elif caller is life.beating:
            life.core.failed(self.now_ms)
        self._later(0 if caller is life.beating else WAIT_AGAIN_US, self._settle)

    def _renewed(self, consumer: str, sent_us: int) -> None:
        self.record.events.append(Renewed(sent_us, consumer, self.scheduler.now_us))

    def _leave_group(self, life: Life) -> None:
        consumer = life.core.view.consumer_id
        if not consumer:
            self._gone(life, None)
        elif life.joining.running is None:
            self.record.log.left.add(consumer)
            life.joining.begin(ElasticqLeaveGroup(GROUP, consumer), None, partial(self._gone, life))

    def _gone(self, life: Life, result: Result | None) -> None:
        self.kill()
        self.scheduler.schedule(self.random.randint(*REJOIN_US), self.start)

    # --- acts -------------------------------------------------------------------------

    def _act(self, life: Life, assignment: Assignment) -> None:
        """Receive under the token, and delete a message later. Ask the core for permission as the client does."""
        if assignment.token not in life.open:
            return
        if life.acting.running is not None or not life.core.may_act(assignment.token, self.now_ms):
            self._again(life, assignment)
            return
        command = ReceiveMessage(
            queue_url=assignment.queue_url,
            max_number_of_messages=2,
            wait_time_seconds=self.random.choice((0, 0, 1)),
            elasticq_group=GROUP,
            elasticq_token=assignment.token,
            elasticq_partition=assignment.partition,
        )
        self._later(self.random.randint(*SENDING_US), partial(self._send, life, assignment, command))

    def _again(self, life: Life, assignment: Assignment) -> None:
        self._later(self.random.randint(*THINK_US), partial(self._act, life, assignment))

    def _send(self, life: Life, assignment: Assignment, command: Command) -> None:
        if life.acting.running is not None:
            self._again(life, assignment)
            return
        consumer, now_us = life.core.view.consumer_id, self.scheduler.now_us
        act = Act(consumer, assignment.resource, assignment.token, now_us)
        self.record.events.append(act)
        life.acting.begin(command, None, partial(self._acted, life, assignment, act), wait_us=1_000_000)

    def _acted(self, life: Life, assignment: Assignment, act: Act, result: Result | None) -> None:
        if result is not None:
            act.outcome, act.complete_us = "ok", self.scheduler.now_us
        elif life.acting.refusal is not None:
            act.outcome, act.complete_us = "fail", self.scheduler.now_us
        if isinstance(result, ReceiveMessageResult) and result.messages:
            handle = result.messages[0].receipt_handle
            command = DeleteMessage(
                queue_url=assignment.queue_url,
                receipt_handle=handle,
                elasticq_group=GROUP,
                elasticq_token=assignment.token,
                elasticq_partition=assignment.partition,
            )
            self._later(self.random.randint(*SENDING_US), partial(self._send, life, assignment, command))
        else:
            self._again(life, assignment)


def view_of(result: GroupViewResult) -> View:
    """Return the view that the client gets from an answer."""
    return View(
        result.consumer_id,
        result.version,
        result.generation,
        result.hold_ms,
        result.heartbeat_ms,
        _by_token(result.assigned),
        _by_token(result.revoking),
    )


def _by_token(held: list[HeldResource]) -> dict[int, Assignment]:
    return {each.token: Assignment(each.resource, each.queue_url, each.partition, each.token) for each in held}
