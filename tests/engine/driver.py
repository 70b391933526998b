"""Drives a Desk by lists of plain steps, so that hypothesis can make histories of every mutation."""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import TypeVar

from hypothesis import strategies as st

from elasticq.engine.actions.receive import returned
from elasticq.engine.execute import execute, seal_or_answer
from elasticq.engine.ordering import fair
from elasticq.engine.ordering.counts import Counts
from elasticq.engine.ordering.fair import FairOrder
from elasticq.engine.ordering.looks import as_a
from elasticq.engine.ordering.shares import TURN
from elasticq.engine.ordering.standard import StandardOrder
from elasticq.engine.redrive.mover import Mover
from elasticq.engine.residency import weight
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.delivery_rows import UNTOUCHED
from elasticq.engine.sweep import Sweeper
from elasticq.engine.views.digest import state_digest
from elasticq.engine.writers.contract import Undo
from elasticq.model import commands as c
from elasticq.model.commands import MessageAttributeValue
from elasticq.model.errors import SqsError
from elasticq.model.extensions import ElasticqChangePriority
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION, queue_arn
from elasticq.model.results import MoveTaskStartedResult, ReceiveMessageResult
from tests.engine.desk import ENDPOINT, Desk

Step = tuple[str, int, int]
Item = TypeVar("Item")
NAMES = ("red", "blue")
ACTIONS = (
    "create",
    "send",
    "send",
    "delayed",
    "batch",
    "receive",
    "receive",
    "retry",
    "delete",
    "change",
    "purge",
    "drop",
    "attributes",
    "return",
    "sweep",
    "wait",
    "wait",
    "takeover",
    "tag",
    "redrive",
    "start_moving",
    "cancel_moving",
    "move",
    "move",
    "again",
    "again",
    "lease",
    "lease",
    "lease",
    "end_lease",
)
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 7), st.integers(0, 7)), max_size=40)
WAITS_S = (0.001, 0.5, 1, 2, 5, 10, 61, 130)


class Driver:
    """Both queues exist from the start; every error of AWS's is an answer like any other."""

    names: tuple[str, str] = NAMES
    attributes: Mapping[str, str] = MappingProxyType({"MessageRetentionPeriod": "120"})

    def __init__(self) -> None:
        self.desk = Desk()
        self.handles: list[str] = []
        self.received: list[ReceiveMessageResult] = []
        self.guids = 0
        self.undo: Undo | None = None
        self.sweeper = Sweeper()
        self.mover = Mover()
        self.tasks: list[str] = []
        for name in self.names:
            self.desk.create(name, **self.attributes)
        self._redrive(self.names[1], 1, 0)

    def run(self, steps: Sequence[Step]) -> None:
        for action, a, b in steps:
            getattr(self, f"_{action}")(self.names[a % 2], a // 2, b)

    def _do(self, command: c.Command, attempt_of: int = 0) -> None:
        """``attempt_of``: the SDK call's number, 0 for a client that sends no id."""
        invocation = b""
        if attempt_of:
            invocation = blake2b(b"%d %r" % (attempt_of, repr(command).encode()), digest_size=16).digest()
        try:
            result = self.desk.do(command, invocation=invocation, undo=self.undo)
        except SqsError:
            return
        if isinstance(result, MoveTaskStartedResult):
            self.tasks.append(result.task_handle)
        if isinstance(result, ReceiveMessageResult) and result.messages:
            self.received.append(result)
            self.handles += [message.receipt_handle for message in result.messages]

    def _guid(self, b: int) -> int:
        """None, a fresh one, or the newest again."""
        if b % 3 == 0:
            return 0
        self.guids += b % 3 == 1
        return self.guids

    def _create(self, name: str, a: int, b: int) -> None:
        self._do(c.CreateQueue(queue_name=name, attributes=dict(self.attributes)), self._guid(b))

    def _send(self, name: str, a: int, b: int) -> None:
        attributes = {"n": MessageAttributeValue("Number", string_value=str(b))} if a else None
        self._do(
            c.SendMessage(queue_url=name, message_body="x" * (b + 1), message_attributes=attributes), self._guid(b)
        )

    def _delayed(self, name: str, a: int, b: int) -> None:
        self._do(c.SendMessage(queue_url=name, message_body="later", delay_seconds=b), self._guid(b))

    def _batch(self, name: str, a: int, b: int) -> None:
        entries = [c.SendMessageBatchEntry(id=str(at), message_body="x" * at) for at in range(a, a + b % 4 + 1)]
        self._do(c.SendMessageBatch(queue_url=name, entries=entries), self._guid(b))

    def _receive(self, name: str, a: int, b: int) -> None:
        self._do(
            c.ReceiveMessage(queue_url=name, max_number_of_messages=a + 1, visibility_timeout=b), self._guid(a + b)
        )

    def _again(self, name: str, a: int, b: int) -> None:
        """What is received often enough is a dead letter."""
        for _ in range(b % 4):
            self._do(c.ReceiveMessage(queue_url=name, max_number_of_messages=a + 1, visibility_timeout=0))

    def _retry(self, name: str, a: int, b: int) -> None:
        self._do(c.SendMessage(queue_url=name, message_body="again"), b % 3 + 1)

    def _handle(self, a: int) -> str:
        return self.handles[-1 - a % len(self.handles)] if self.handles else "none"

    def _delete(self, name: str, a: int, b: int) -> None:
        self._do(c.DeleteMessage(queue_url=name, receipt_handle=self._handle(b)), self._guid(a))

    def _change(self, name: str, a: int, b: int) -> None:
        command = c.ChangeMessageVisibility(queue_url=name, receipt_handle=self._handle(b), visibility_timeout=a * 3)
        self._do(command, self._guid(b))

    def _purge(self, name: str, a: int, b: int) -> None:
        if b < 3:
            self._do(c.PurgeQueue(queue_url=name))

    def _drop(self, name: str, a: int, b: int) -> None:
        if b < 3:
            self._do(c.DeleteQueue(queue_url=name), self._guid(b))

    def _attributes(self, name: str, a: int, b: int) -> None:
        self._do(c.SetQueueAttributes(queue_url=name, attributes={"DelaySeconds": str(b % 2)}))

    def _return(self, name: str, a: int, b: int) -> None:
        if self.received:
            result = self.received[-1 - b % len(self.received)]
            self.desk.write(returned(self.desk.state, result, self.desk.context.now_ms), self.undo)

    def _sweep(self, name: str, a: int, b: int) -> None:
        self.desk.write(self.sweeper.step(self.desk.state, self.desk.context.now_ms)[0], self.undo)

    def _tag(self, name: str, a: int, b: int) -> None:
        if b % 2:
            self._do(c.TagQueue(queue_url=name, tags={str(a): str(b)}), self._guid(b))
        else:
            self._do(c.UntagQueue(queue_url=name, tag_keys=[str(a)]))

    def _redrive(self, name: str, a: int, b: int) -> None:
        """Dead letters of one queue go to the other, or to itself."""
        target = queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, self.names[b % 2])
        policy = f'{{"deadLetterTargetArn": "{target}", "maxReceiveCount": {a + 1}}}' if b < 6 else ""
        self._do(c.SetQueueAttributes(queue_url=name, attributes={"RedrivePolicy": policy}))

    def _start_moving(self, name: str, a: int, b: int) -> None:
        arns = [queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, each) for each in self.names]
        self._do(
            c.StartMessageMoveTask(
                source_arn=arns[self.names.index(name)],
                destination_arn=arns[b % 2] if b < 4 else None,
                max_number_of_messages_per_second=a + 1 if a else None,
            ),
            self._guid(b),
        )

    def _cancel_moving(self, name: str, a: int, b: int) -> None:
        if self.tasks:
            self._do(c.CancelMessageMoveTask(task_handle=self.tasks[-1 - b % len(self.tasks)]), self._guid(a))

    def _move(self, name: str, a: int, b: int) -> None:
        context = self.desk.context
        self.desk.write(self.mover.step(self.desk.state, context.now_ms, context.term).mutations, self.undo)

    def _wait(self, name: str, a: int, b: int) -> None:
        self.desk.wait(WAITS_S[b])

    def _lease(self, name: str, a: int, b: int) -> None:
        """A numbered receive of one of few leases, which seals it now and then."""
        call = c.Call(
            c.ReceiveMessage(
                queue_url=name,
                max_number_of_messages=a + 1,
                visibility_timeout=b + 1,
                receive_request_attempt_id=f"q/{b % 2}/0/{a}",
            ),
            "anonymous",
            DEFAULT_ACCOUNT,
            ENDPOINT,
        )
        try:
            _, mutations = (seal_or_answer if b % 3 == 0 else execute)(self.desk.state, call, self.desk.context)
        except SqsError:
            return
        self.desk.write(mutations, self.undo)

    def _end_lease(self, name: str, a: int, b: int) -> None:
        handle = f"lease:q/{a % 2}/"
        if b < 3:
            self._do(c.DeleteMessage(queue_url=name, receipt_handle=handle), self._guid(b))
        else:
            self._do(c.ChangeMessageVisibility(queue_url=name, receipt_handle=handle, visibility_timeout=b - 3))

    def _takeover(self, name: str, a: int, b: int) -> None:
        context = self.desk.context
        if self.undo is None:  # a master's own takeover is committed before it serves
            context.term += 1
            self.desk.write([m.TookOver(context.term, "a", context.now_ms - a * 500, context.now_ms + b * 500)])


# --- what must hold of any state ------------------------------------------------------


def digest(desk: Desk) -> bytes:
    return state_digest(desk.state, desk.context.now_ms)


def availability(queue: Queue, state: State, now_ms: int) -> tuple[dict[int, int], Counts]:
    """From the rows alone: since when each available message is, and the counts."""
    since_ms: dict[int, int] = {}
    counts = Counts(0, 0, 0)
    for sequence in queue.issued:
        row = queue.row(sequence)
        if row is None:
            continue
        if state.grace.deadline(row) <= now_ms:
            since_ms[sequence] = state.grace.deadline(row) or queue.contents[sequence].sent_ms
        elif row.delivery_number:
            counts.in_flight += 1
        else:
            counts.delayed += 1
    counts.visible = len(since_ms)
    return since_ms, counts


def check_indexes(state: State, now_ms: int) -> None:
    """Every queue's index says what its rows say."""
    for queue in state.queues.values():
        if queue.kind.blocks_groups:
            check_groups(queue, state, now_ms)
            continue
        since_ms, counts = availability(queue, state, now_ms)
        assert queue.order.counts(now_ms) == counts
        chosen = queue.order.choose(now_ms, 1_000, -1)
        if queue.sharing is not None:
            check_sharing(queue, state, now_ms, since_ms)
            check_contents(queue)
            continue
        assert sorted(chosen) == sorted(since_ms)
        if not any(content.dead_letter for content in queue.contents.values()):  # as old as when they were sent
            if as_a(FairOrder, queue.order) is not None:
                check_fairness(queue, state, now_ms, since_ms)
            elif as_a(StandardOrder, queue.order) is not None and not queue.kind.has_priorities:
                check_turns(queue, chosen, since_ms)
        if queue.kind.has_priorities:
            assert chosen == sorted(chosen, key=lambda sequence: (queue.order.priority(sequence), sequence))
        check_contents(queue)
    assert not any(queue.contents or queue.rows or queue.count for queue in state.deleted_queues.values())
    assert state.contents_bytes == sum(queue.messages.bytes for queue in state.queues.values())


def by_turns(returned: Sequence[Item], fresh: Sequence[Item], turns: int) -> list[Item]:
    """One by one, what came back first unless the last bit of ``turns`` is set, and the rest of the longer one."""
    returned, fresh, found = list(returned), list(fresh), list[Item]()
    while returned and fresh:
        found.append((fresh if turns % 2 else returned).pop(0))
        turns += 1
    return found + returned + fresh


def check_turns(queue: Queue, chosen: list[int], since_ms: Mapping[int, int]) -> None:
    """From the rows: what came back and what was never received take turns, of each the longest available first."""
    assert as_a(StandardOrder, queue.order) is not None
    back = sorted(since_ms[each] for each in since_ms if queue.rows.get(each, UNTOUCHED).delivery_number)
    fresh = sorted(since_ms[each] for each in since_ms if not queue.rows.get(each, UNTOUCHED).delivery_number)
    assert [since_ms[sequence] for sequence in chosen] == by_turns(back, fresh, queue.order._turns)


def check_contents(queue: Queue) -> None:
    assert set(queue.contents) <= set(queue.issued)
    assert (set(queue.contents), queue.is_cold) == ({x for x in queue.issued if queue.row(x) is not None}, False)
    assert queue.messages.bytes == sum(map(weight, queue.contents.values()))


# --- priority queues --------------------------------------------------------------------


class PriorityDriver(Driver):
    """The same steps on priority queues; most messages say their priority, and it is changed now and then."""

    attributes = MappingProxyType({"ElasticqOrder": "priority", "MessageRetentionPeriod": "120"})

    def _priority(self, a: int) -> dict[str, MessageAttributeValue] | None:
        return {"ElasticqPriority": MessageAttributeValue("Number", str(a - 2))} if a else None

    def _send(self, name: str, a: int, b: int) -> None:
        command = c.SendMessage(queue_url=name, message_body="x" * (b + 1), message_attributes=self._priority(a))
        self._do(command, self._guid(b))

    def _delayed(self, name: str, a: int, b: int) -> None:
        attributes = self._priority(a)
        self._do(c.SendMessage(name, "later", b, attributes, message_group_id="g" if b % 2 else None), self._guid(b))

    def _batch(self, name: str, a: int, b: int) -> None:
        entries = [
            c.SendMessageBatchEntry(id=str(at), message_body="y", message_attributes=self._priority(at * b % 4))
            for at in range(a + 1)
        ]
        self._do(c.SendMessageBatch(queue_url=name, entries=entries), self._guid(b))

    def _attributes(self, name: str, a: int, b: int) -> None:
        attributes = {"DelaySeconds": str(b % 2), "ElasticqDefaultPriority": str(a - 2)}
        self._do(c.SetQueueAttributes(queue_url=name, attributes=attributes))

    def _tag(self, name: str, a: int, b: int) -> None:
        """Some messages get another priority, wherever they stand."""
        state = self.desk.state
        queue = state.names.get((DEFAULT_ACCOUNT, name))
        if queue is None:
            return
        origins = [queue.contents[each].origin or (queue.id, each) for each in queue.contents if each % 3 == b % 3]
        ids = [state.identity.message_id(*origin) for origin in origins]
        self._do(ElasticqChangePriority(name, [*ids, "unknown"], a - 2), self._guid(b))


def check_priorities(desk: Desk) -> None:
    """From the log alone: what is handed out comes by the priority that it was given last, then by its arrival."""
    defaults: dict[int, int] = {}
    priorities: dict[tuple[int, int], int] = {}
    for x in desk.log:
        if isinstance(x, m.QueueCreated | m.QueueAttributesSet):
            defaults[x.queue_id] = int(x.attributes.get("ElasticqDefaultPriority", 0))
        elif isinstance(x, m.MessageStored):
            given = (x.attributes or {}).get("ElasticqPriority")
            priorities[x.queue_id, x.sequence] = int(given.string_value or "") if given else defaults[x.queue_id]
        elif isinstance(x, m.PrioritiesSet):
            priorities.update(zip([(x.queue_id, each) for each in x.sequences], x.priorities, strict=True))
    now_ms = desk.context.now_ms
    for queue in desk.state.queues.values():
        available, _ = availability(queue, desk.state, now_ms)
        wanted = sorted(available, key=lambda sequence: (priorities[queue.id, sequence], sequence))
        assert queue.order.choose(now_ms, 1_000, -1) == wanted


# --- fair queues ------------------------------------------------------------------------


class FairDriver(Driver):
    """The same steps on standard queues with few tenants; every fourth message is a tenant of its own."""

    def _send(self, name: str, a: int, b: int) -> None:
        group = f"g{a}" if a else None
        self._do(c.SendMessage(queue_url=name, message_body="x" * (b + 1), message_group_id=group), self._guid(b))

    def _delayed(self, name: str, a: int, b: int) -> None:
        command = c.SendMessage(queue_url=name, message_body="later", delay_seconds=b, message_group_id=f"g{a % 3}")
        self._do(command, self._guid(b))

    def _batch(self, name: str, a: int, b: int) -> None:
        entries = [
            c.SendMessageBatchEntry(id=str(at), message_body="y", message_group_id=f"g{a if b % 2 else at % 3}")
            for at in range(b + 1)
        ]
        self._do(c.SendMessageBatch(queue_url=name, entries=entries), self._guid(b))


def check_fairness(queue: Queue, state: State, now_ms: int, since_ms: dict[int, int]) -> None:
    """Whoever is quiet goes first, longest available; then whoever has the fewest in flight.

    A tenant's messages that came back and those that were never received take turns; messages without a group are
    a line like that of a tenant, but never noisy.
    """
    order = as_a(FairOrder, queue.order)
    assert order is not None
    in_flight = Counter(
        queue.contents[sequence].group_id
        for sequence, row in queue.rows.items()
        if row.delivery_number and state.grace.deadline(row) > now_ms
    )
    total = sum(in_flight.values())
    chosen = order.choose(now_ms, 1_000, -1)
    lines = {
        group: tenant_line(order, group, [each for each in chosen if queue.contents[each].group_id == group], since_ms)
        for group in {queue.contents[sequence].group_id for sequence in chosen}
    }
    noisy = {
        name: lines.pop(name)
        for name, count in in_flight.items()
        if name is not None and name in lines and count >= fair.NOISY_MIN and count * 10 > total
    }
    expected = []
    while lines := {group: line for group, line in lines.items() if line}:
        expected.append(min(lines.values(), key=lambda line: line[0]).pop(0)[1])
    while noisy := {group: line for group, line in noisy.items() if line}:
        group = min(noisy, key=lambda group: (in_flight[group], noisy[group][0]))
        in_flight[group] += 1
        expected.append(noisy[group].pop(0)[1])
    assert chosen == expected
    for limit in (1, 3, 10):
        assert order.choose(now_ms, limit, -1) == chosen[:limit]


def tenant_line(
    order: FairOrder, group: str | None, sequences: list[int], since_ms: Mapping[int, int]
) -> list[tuple[int, int]]:
    """A tenant's messages in their order, each with the time by which it stands in the line of tenants."""
    tenant = order._tenants.named(group) if group is not None else None
    returned = order._returned if tenant is None else tenant.returned or {}
    fresh = sorted((since_ms[each], was_delayed(order, each), each) for each in sequences if each not in returned)
    turns = order._turns if tenant is None else tenant.last_turns
    line = by_turns(list(returned), [each for _, _, each in fresh], turns)
    found, ahead_ms = list[tuple[int, int]](), None
    for sequence in reversed(line):
        if sequence not in returned:
            ahead_ms = since_ms[sequence]
        found.append((since_ms[sequence] if ahead_ms is None else min(since_ms[sequence], ahead_ms), sequence))
    return found[::-1]


def was_delayed(order: FairOrder, sequence: int) -> bool:
    """Of messages that are available since the same moment those go first that were never delayed."""
    return order._contents[sequence].visible_at_ms > 0


# --- queues whose groups share -----------------------------------------------------------


class SharedDriver(FairDriver):
    """The same steps on queues whose groups share, by attributes that are changed now and then."""

    attributes = MappingProxyType(
        {
            "MessageRetentionPeriod": "120",
            "ElasticqFairness": "weighted",
            "ElasticqGroupSeparator": ".",
            "ElasticqGroupWeights": '{"g1": 3, "g.2": 2}',
            "ElasticqMaxInFlightPerGroup": "2",
        }
    )

    def _batch(self, name: str, a: int, b: int) -> None:
        entries = [
            c.SendMessageBatchEntry(id=str(at), message_body="y", message_group_id=group)
            for at, group in enumerate([("g1", "g.1", "g.2", None)[at * a % 4] for at in range(b + 1)])
        ]
        self._do(c.SendMessageBatch(queue_url=name, entries=entries), self._guid(b))

    def _attributes(self, name: str, a: int, b: int) -> None:
        attributes = {"DelaySeconds": str(b % 2), "ElasticqMaxInFlightPerGroup": str(a)}
        if b > 2:
            attributes["ElasticqFairness"] = ("sqs", "round_robin", "weighted", "weighted", "adaptive")[b - 3]
            attributes["ElasticqMaxInFlightPerGroup"] = "0" if b == 3 else str(a)
            attributes["ElasticqGroupSeparator"] = "." if a else ""
        self._do(c.SetQueueAttributes(queue_url=name, attributes=attributes))


def check_sharing(queue: Queue, state: State, now_ms: int, since_ms: dict[int, int]) -> None:
    """The order says what a naive one does, from the rows and from what is stored of turns."""
    chosen = queue.order.choose(now_ms, 1_000, -1)
    assert len(set(chosen)) == len(chosen)
    names = [queue.contents[sequence].group_id or "" for sequence in chosen]
    assert names == Turns(queue, state, now_ms, since_ms).names()
    order = as_a(FairOrder, queue.order)
    assert order is not None
    if not any(content.dead_letter for content in queue.contents.values()):  # as old as when they were sent
        for group in {queue.contents[sequence].group_id for sequence in chosen}:
            own = [sequence for sequence in chosen if queue.contents[sequence].group_id == group]
            every = [sequence for sequence in since_ms if queue.contents[sequence].group_id == group]
            assert own == [sequence for _, sequence in tenant_line(order, group, every, since_ms)][: len(own)]
    for limit in (1, 3, 10):
        assert queue.order.choose(now_ms, limit, -1) == chosen[:limit]


class Turns:
    """A naive order of groups that share: it looks at all nodes for each message.

    left: how many messages of each group may be handed out; turns: start, weight and clock of each node by path.
    """

    def __init__(self, queue: Queue, state: State, now_ms: int, since_ms: dict[int, int]) -> None:
        assert queue.sharing is not None
        self.sharing = queue.sharing
        self.in_flight: Counter[str] = Counter()
        self.left: Counter[str] = Counter()
        for sequence in queue.contents:
            name, row = queue.contents[sequence].group_id or "", queue.row(sequence)
            if sequence in since_ms:
                self.left[name] += 1
            elif row is not None and row.delivery_number:
                self.in_flight[name] += 1
        if self.sharing.in_flight_max:
            for name in self.left:
                self.left[name] = min(self.left[name], max(self.sharing.in_flight_max - self.in_flight[name], 0))
        self.turns = {path: list(stored) for path, stored in queue.turns.items()}
        self.turns.setdefault(" ", [0, 1, 0])
        for name in sorted(+self.left):
            above = " "
            for path in self.way(name):
                start, weight, clock = self.turns.get(path, (0, 0, 0))
                if not weight:
                    start, weight = max(start, self.turns[above][2]), self.weight(path, above)
                self.turns[path], above = [start, weight, clock], path

    def way(self, name: str) -> list[str]:
        """The nodes from below the root down to the group."""
        if not self.sharing.separator:
            return [name]
        parts = name.split(".")
        return [" " + ".".join(parts[: at + 1]) + "." for at in range(len(parts))] + [name]

    def weight(self, path: str, above: str) -> int:
        if self.sharing.is_adaptive:
            own = sum(count for name, count in self.in_flight.items() if path in self.way(name))
            every = sum(count for name, count in self.in_flight.items() if above in (" ", *self.way(name)))
            return 10 - 9 * own // every if every else 10
        if not self.sharing.separator:
            return self.sharing.weights.get(path, 1)
        return self.sharing.weights.get(path[1:-1], 1) if path.startswith(" ") else 1

    def names(self) -> list[str]:
        """The groups in the order in which they get messages."""
        found = []
        while +self.left:
            path, way = " ", []
            while path not in self.left:
                together = self.together(path)
                clock = max(self.turns[path][2], min(self.turns[each][0] for each in together))
                may = [each for each in together if self.turns[each][0] <= clock]
                finish = {each: self.turns[each][0] + TURN // self.turns[each][1] for each in may}
                following = min(may, key=lambda each: (finish[each], each))
                if len(together) > 1:
                    self.turns[path][2] = clock + TURN // sum(self.turns[each][1] for each in together)
                    way.append((following, path, finish[following]))
                path = following
            for each, above, start in way:
                self.turns[each][:2] = [start, self.weight(each, above)]
            found.append(path)
            self.left[path] -= 1
        return found

    def together(self, above: str) -> list[str]:
        """The nodes with work right under this one."""
        ways = [(" ", *self.way(name)) for name in +self.left]
        return sorted({way[way.index(above) + 1] for way in ways if above in way})


# --- FIFO queues ------------------------------------------------------------------------


class FifoDriver(Driver):
    """The same steps on FIFO queues, with few groups and ids, so that they meet."""

    names = ("red.fifo", "blue.fifo")
    attributes = MappingProxyType({"FifoQueue": "true", "MessageRetentionPeriod": "120"})

    def _send(self, name: str, a: int, b: int) -> None:
        command = c.SendMessage(
            queue_url=name,
            message_body="x" * (b + 1),
            message_group_id=f"g{a}",
            message_deduplication_id=f"id{len(self.desk.log) if b % 4 else b}",
        )
        self._do(command, self._guid(b))

    def _delayed(self, name: str, a: int, b: int) -> None:
        self._do(c.SetQueueAttributes(queue_url=name, attributes={"DelaySeconds": str(b % 4)}), self._guid(a))

    def _batch(self, name: str, a: int, b: int) -> None:
        entries = [
            c.SendMessageBatchEntry(
                id=str(at), message_body="y", message_group_id=f"g{at % 3}", message_deduplication_id=f"b{at * b % 5}"
            )
            for at in range(b % 4 + 1)
        ]
        self._do(c.SendMessageBatch(queue_url=name, entries=entries), self._guid(a + b))

    def _receive(self, name: str, a: int, b: int) -> None:
        command = c.ReceiveMessage(
            queue_url=name,
            max_number_of_messages=a + 1,
            visibility_timeout=b,
            receive_request_attempt_id=f"try{b // 2}" if b % 2 else None,
        )
        self._do(command, self._guid(a + b))

    def _retry(self, name: str, a: int, b: int) -> None:
        """Whatever was received last goes, so that groups move on."""
        for message in self.received[-1].messages if self.received else ():
            self._do(c.DeleteMessage(queue_url=name, receipt_handle=message.receipt_handle))


def check_groups(queue: Queue, state: State, now_ms: int) -> None:
    """A FIFO queue's index says what its rows say: of each group what comes before the first that is hidden."""
    groups: dict[str, list[int]] = {}
    closed: set[str] = set()
    counts = Counts(0, 0, 0)
    for sequence in queue.issued:
        row = queue.row(sequence)
        if row is None:
            continue
        content = queue.contents[sequence]
        group = content.group_id or ""
        if state.grace.deadline(row) > now_ms:
            counts.in_flight += 1
            closed.add(group)
        elif not row.visible_at_ms and content.sent_ms + queue.delay_s * 1_000 > now_ms:
            counts.delayed += 1
            closed.add(group)
        else:
            counts.visible += 1
        if group not in closed:
            groups.setdefault(group, []).append(sequence)
    assert queue.order.counts(now_ms) == counts
    chosen = queue.order.choose(now_ms, 1_000, -1)
    names = list(dict.fromkeys(queue.contents[sequence].group_id or "" for sequence in chosen))
    assert sorted(names) == sorted(groups)
    assert chosen == [sequence for name in names for sequence in groups[name]], "group by group, each in order"
    for limit in (1, 3):
        assert queue.order.choose(now_ms, limit, -1) == chosen[:limit]
    check_contents(queue)
