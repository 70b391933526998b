"""The rows against a model of dicts: whatever the history and the cuts, what is loaded is what was committed."""

import random
import sqlite3
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.apply import apply
from elasticq.engine.ordering.leases import Key, key_of
from elasticq.engine.ordering.priority import DEFAULT_PRIORITY, ORDER, PRIORITY
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.model.commands import MessageAttributeValue
from elasticq.node.outputs import Committed
from elasticq.replication.records import Base, Voter
from elasticq.storage.rows import batches, schema
from elasticq.storage.rows.batches import Batch
from elasticq.storage.rows.rows import Rows

QUEUES = (7, 9, 11)
FIFO_QUEUE = 9  # of histories
PRIORITY_QUEUE = 11


# --- the model -------------------------------------------------------------------------


class Model:
    """What a member would know, kept in the plainest way."""

    def __init__(self) -> None:
        self.queues: dict[int, m.QueueRestored] = {}
        self.contents: dict[tuple[int, int], m.MessageStored] = {}
        self.delivery: dict[tuple[int, int], tuple[int, ...]] = {}
        self.priorities: dict[tuple[int, int], int] = {}
        self.invocations: dict[bytes, m.InvocationRecorded] = {}
        self.founded: m.ClusterFounded | None = None
        self.takeovers: list[m.TookOver] = []
        self.tasks: dict[int, m.MoveTaskSet] = {}
        self.leases: dict[Key, dict[int, m.LeaseCalled | m.LeaseSet]] = {}

    def apply(self, x: m.Mutation) -> None:
        queue = self.queues.get(getattr(x, "queue_id", 0))
        is_open = queue is not None and queue.deleted_ms is None
        match x:
            case m.ClusterFounded():
                self.founded = x
            case m.TookOver():
                self.takeovers = [*self.takeovers, x][-64:]
            case m.MoveTaskSet():
                self.tasks[x.number] = x
            case m.MoveTaskForgotten():
                self.tasks.pop(x.number, None)
            case m.LeaseCalled():
                self.leases.setdefault(key_of(x), {})[x.call] = x
            case m.LeaseSet():
                calls = {} if x.ended_ms else self.leases.get(key_of(x), {})
                self.leases[key_of(x)] = {**calls, -1: x}
            case m.LeaseForgotten():
                self.leases.pop(key_of(x), None)
            case m.QueueCreated():
                self.queues[x.queue_id] = m.QueueRestored(
                    x.queue_id, x.account, x.name, x.attributes, x.tags, x.created_ms, x.created_ms, None, None, 0, 0
                )
            case m.InvocationRecorded():
                self.invocations.setdefault(x.invocation, x)
            case m.AttemptRecorded():
                self.invocations.pop(x.attempt, None)
                if x.detail:
                    self.invocations[x.attempt] = m.InvocationRecorded(x.attempt, x.recorded_ms, 0, 0, x.detail)
            case m.ReceiveReturned() if x.invocation:
                self.invocations.pop(x.invocation, None)
        if queue is not None and isinstance(x, m.MessageStored):
            queue.last_sequence = x.sequence
        if is_open:
            self._apply_to(queue, x)
        if isinstance(x, m.QueueReclaimed):
            self.queues.pop(x.queue_id, None)

    def _apply_to(self, queue: m.QueueRestored, x: Any) -> None:
        match x:
            case m.QueueAttributesSet():
                queue.attributes, queue.modified_ms = x.attributes, x.modified_ms
            case m.QueueTagged():
                queue.tags = x.tags
            case m.QueuePurged() if x.watermark > queue.watermark:
                queue.watermark, queue.purged_ms = x.watermark, x.purged_ms
                self._drop(x.queue_id, 0, x.watermark - 1)
            case m.QueueDeleted():
                queue.deleted_ms = x.deleted_ms
                self._drop(x.queue_id, 0, 1 << 63)
            case m.MessageStored():
                if x.sequence >= queue.watermark:
                    self.contents[x.queue_id, x.sequence] = x
                    if x.visible_at_ms:
                        self.delivery[x.queue_id, x.sequence] = (x.visible_at_ms, 0, 0, 0, 0)
                    if x.queue_id == PRIORITY_QUEUE:
                        given = (x.attributes or {}).get(PRIORITY)
                        priority = given.string_value if given else queue.attributes.get(DEFAULT_PRIORITY)
                        self.priorities[x.queue_id, x.sequence] = int(priority or 0)
            case m.PrioritiesSet():
                for sequence, priority in zip(x.sequences, x.priorities, strict=True):
                    if (x.queue_id, sequence) in self.priorities:
                        self.priorities[x.queue_id, sequence] = priority
            case m.MessagesReceived():
                for sequence, *values in zip(
                    x.sequences, x.delivery_numbers, x.receive_counts, x.first_received_ms, strict=True
                ):
                    self._deliver(x.queue_id, sequence, (x.until_ms, *values, x.received_ms))
            case m.VisibilityChanged():
                for sequence, until_ms in zip(x.sequences, x.until_ms, strict=True):
                    self._deliver(x.queue_id, sequence, (until_ms, *self._known(x.queue_id, sequence)[1:]))
            case m.ReceiveReturned():
                for sequence, delivery_number, count, first_ms in zip(
                    x.sequences, x.delivery_numbers, x.receive_counts, x.first_received_ms, strict=True
                ):
                    known = self._known(x.queue_id, sequence)
                    if known[1] == delivery_number:
                        self._deliver(
                            x.queue_id, sequence, (x.visible_at_ms, delivery_number, count, first_ms, known[4])
                        )
            case m.MessagesRemoved():
                for sequence in x.sequences:
                    self._drop(x.queue_id, sequence, sequence)
            case m.RangeRemoved():
                self._drop(x.queue_id, x.first, x.last)

    def _known(self, queue_id: int, sequence: int) -> tuple[int, ...]:
        return self.delivery.get((queue_id, sequence), (0, 0, 0, 0, 0))

    def _deliver(self, queue_id: int, sequence: int, values: tuple[int, ...]) -> None:
        if (queue_id, sequence) in self.contents:
            self.delivery[queue_id, sequence] = values

    def _drop(self, queue_id: int, first: int, last: int) -> None:
        if first == last:
            keys = [(queue_id, first)] if (queue_id, first) in self.contents else []
        else:
            keys = [key for key in self.contents if key[0] == queue_id and first <= key[1] <= last]
        for key in keys:
            del self.contents[key]
            self.delivery.pop(key, None)
            self.priorities.pop(key, None)

    def view(self) -> tuple[Any, ...]:
        queues = [self.queues[queue_id] for queue_id in sorted(self.queues)]
        untouched = sorted(self.contents.keys() - self.delivery.keys())
        groups = {key: content.group_id for key, content in self.contents.items() if key[0] == FIFO_QUEUE}
        tasks = [self.tasks[number] for number in sorted(self.tasks)]
        return (
            self.founded,
            self.takeovers,
            queues,
            untouched,
            self.delivery,
            self.invocations,
            tasks,
            groups,
            self.leases,
            self.priorities,
        )


def view_of(mutations: Iterator[m.Mutation]) -> tuple[Any, ...]:
    """The same view, made of what was restored; checks its order and bounds on the way."""
    founded, takeovers, queues, untouched = None, [], [], []
    delivery: dict[tuple[int, int], tuple[int, ...]] = {}
    groups: dict[tuple[int, int], str] = {}
    priorities: dict[tuple[int, int], int] = {}
    invocations: dict[bytes, m.InvocationRecorded] = {}
    tasks: list[m.MoveTaskSet] = []
    leases: dict[Key, dict[int, m.LeaseCalled | m.LeaseSet]] = {}
    order = [
        m.ClusterFounded,
        m.TookOver,
        m.MoveTaskSet,
        m.LeaseCalled,
        m.LeaseSet,
        m.QueueRestored,
        m.InvocationRecorded,
    ]
    stage = last_page = 0
    for x in mutations:
        if type(x) in order:
            assert order.index(type(x)) >= stage
            stage = order.index(type(x))
        match x:
            case m.ClusterFounded():
                founded = x
            case m.TookOver():
                takeovers.append(x)
            case m.MoveTaskSet():
                tasks.append(x)
            case m.LeaseCalled():
                leases.setdefault(key_of(x), {})[x.call] = x
            case m.LeaseSet():
                leases.setdefault(key_of(x), {})[-1] = x
            case m.QueueRestored():
                queues.append(x)
                last_page = 0
            case m.UntouchedRestored():
                assert x.queue_id == queues[-1].queue_id
                assert last_page < x.first <= x.last < x.first + 1_000
                last_page = x.last
                for first, last in zip(x.firsts, x.lasts, strict=True):
                    untouched += [(x.queue_id, sequence) for sequence in range(first, last + 1)]
            case m.GroupsRestored():
                assert last_page >= x.sequences[-1], "after their page"
                for sequence, at in zip(x.sequences, x.groups, strict=True):
                    groups[x.queue_id, sequence] = x.names[at]
            case m.PrioritiesRestored():
                assert last_page >= x.sequences[-1], "after their page"
                priorities.update(((x.queue_id, sequence), x.priorities[at]) for at, sequence in enumerate(x.sequences))
            case m.DelaysRestored():
                assert last_page >= x.sequences[-1], "after their page"
                for sequence, due_ms in zip(x.sequences, x.visible_at_ms, strict=True):
                    delivery[x.queue_id, sequence] = (due_ms, 0, 0, 0, 0)
            case m.RowsRestored():
                assert len(x.sequences) <= 1_000
                columns = (x.visible_at_ms, x.delivery_numbers, x.receive_counts, x.first_received_ms, x.received_ms)
                for sequence, *values in zip(x.sequences, *columns, strict=True):
                    delivery[x.queue_id, sequence] = tuple(values)
            case m.InvocationRecorded():
                invocations.setdefault(x.invocation, x)
            case m.QueueCreated() | m.QueueDeleted() | m.QueueReclaimed():
                assert not queues, "only that the newest id is not given again"
            case _:
                raise AssertionError(x)
    return founded, takeovers, queues, untouched, delivery, invocations, tasks, groups, leases, priorities


# --- driving ------------------------------------------------------------------------------


def run(connection: sqlite3.Connection, batch: Batch) -> None:
    connection.execute("BEGIN")
    for sql, parameters in batch.statements:
        connection.executemany(sql, parameters)
    connection.execute("COMMIT")
    for sql in batch.after:
        connection.executescript(sql)


def flush(rows: Rows, connection: sqlite3.Connection) -> int:
    """All that is to be done; how many batches that were."""
    count = 0
    while (batch := rows.begin()) is not None:
        run(connection, batch)
        assert rows.done() == batch.index
        count += 1
    return count


def opened(path: str | Path = ":memory:") -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    schema.prepare(connection)
    return connection


def loaded(connection: sqlite3.Connection) -> tuple[Rows, int, tuple[Any, ...]]:
    rows = Rows()
    base, mutations = rows.load(connection)
    return rows, base.index, view_of(mutations)


def fetched(rows: Rows, connection: sqlite3.Connection, queue_id: int, sequences: list[int]) -> list[m.MessageStored]:
    messages: list[m.MessageStored] = []
    for sql, parameters in rows.fetch(queue_id, sequences):
        messages += rows.decode(connection.execute(sql, parameters).fetchall())
    return messages


def stored(sequence: int, queue_id: int = 7, body: str = "x" * 256, **more: Any) -> m.MessageStored:
    return m.MessageStored(queue_id, sequence, body, 1_000 + sequence % 1_000, "AIDA", **more)


def created(queue_id: int = 7, *, is_fifo: bool = False) -> m.QueueCreated:
    attributes = {"DelaySeconds": "0", **({"FifoQueue": "true"} if is_fifo else {})}
    if queue_id == PRIORITY_QUEUE:
        attributes[ORDER] = "priority"
    return m.QueueCreated(queue_id, "000000000000", f"q{queue_id}", attributes, {"a": "b"}, 5)


def filled(connection: sqlite3.Connection, count: int, *, body: str = "x" * 256, batch: int = 4_096) -> Rows:
    """Rows with ``count`` flushed messages, 1 to count, of queue 7; the index after is count + 2."""
    rows = Rows()
    rows.take(Committed(1, 1, 1, [created()]))
    for first in range(1, count + 1, batch):
        last = min(first + batch, count + 1)
        rows.take(Committed(first + 1, 1, 1, [stored(sequence, body=body) for sequence in range(first, last)]))
        flush(rows, connection)
    return rows


def task(number: int, queue_id: int = 7, moved: int = 0, status: str = m.RUNNING) -> m.MoveTaskSet:
    return m.MoveTaskSet(number, f"id{number}", "000000000000", queue_id, "arn", "", 0, status, 1, moved, 9, moved, 99)


class History:
    """Makes valid mutations of random numbers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.model = Model()
        self.index = self.now_ms = self.delivery_number = 0
        self.term = 1
        self.next_sequence = dict.fromkeys(QUEUES, 1 << 40)
        self.views = {0: deepcopy(self.model.view())}
        self.alive_at = {0: dict(self.model.contents)}
        self.entries: list[Committed] = []

    def entry(self) -> Committed:
        self.index += 1
        self.now_ms += self.random.randrange(50)
        made = [self._one() for _ in range(self.random.choice((1, 1, 3, 8)))]
        mutations = [mutation for part in made for mutation in part]
        self.views[self.index] = deepcopy(self.model.view())
        self.alive_at[self.index] = dict(self.model.contents)
        committed = Committed(self.index, self.term, self.now_ms, mutations)
        self.entries.append(committed)
        return committed

    def _one(self) -> list[m.Mutation]:
        random_ = self.random
        queue_id = random_.choice(QUEUES)
        if queue_id not in self.model.queues:
            made: list[m.Mutation] = [created(queue_id, is_fifo=queue_id == FIFO_QUEUE)]
            if not self.model.founded:
                made.insert(0, m.ClusterFounded("c", b"k" * 16, 1))
        else:
            kinds = [self._send] * 8 + [self._receive] * 5 + [self._change, self._return, self._remove, self._remove]
            rare = [self._purge, self._delete, self._reclaim, self._set, self._attempt]
            rare += [self._tag, self._task, self._lease, self._lease, self._take_over]
            if queue_id == PRIORITY_QUEUE:
                kinds += [self._prioritise] * 3
            made = random_.choice(kinds + [self._expire] + ([random_.choice(rare)] if random_.random() < 0.5 else []))(
                queue_id
            )
        for mutation in made:
            self.model.apply(mutation)
        return deepcopy(made)

    def _some(self, queue_id: int) -> list[int]:
        """Living messages mostly, and one that may be anything."""
        living = [sequence for queue, sequence in self.model.contents if queue == queue_id]
        chosen = self.random.sample(living, min(len(living), self.random.choice((1, 3, 40))))
        return sorted({*chosen, self.random.randrange(1 << 40, self.next_sequence[queue_id] + 2)})

    def _send(self, queue_id: int) -> list[m.Mutation]:
        made: list[m.Mutation] = []
        for _ in range(self.random.choice((1, 10, 20, 140))):
            self.next_sequence[queue_id] += self.random.choice((1, 1, 1, 1, 2, 90))
            sequence = self.next_sequence[queue_id]
            attributes = {"k": MessageAttributeValue("String", "v")} if self.random.random() < 0.05 else None
            delay = self.now_ms + 900 if self.random.random() < 0.1 else 0
            body = "ä" * self.random.choice((1, 20, 20, 20, 20_000 if self.random.random() < 0.02 else 5))
            message = m.MessageStored(queue_id, sequence, body, self.now_ms, "s", delay, attributes)
            if queue_id == FIFO_QUEUE:
                message.group_id = f"g{self.random.choice((1, 2, 3, sequence))}"
            if queue_id == PRIORITY_QUEUE and self.random.random() < 0.5:
                priority = self.random.choice((1, 2, -(2**63), 2**63 - 1, sequence))
                message.attributes = {PRIORITY: MessageAttributeValue("Number", str(priority))}
            made.append(message)
        key = self.random.randbytes(1) * 16
        return [*made, m.InvocationRecorded(key, self.now_ms, queue_id, self.next_sequence[queue_id])]

    def _receive(self, queue_id: int) -> list[m.Mutation]:
        sequences = self._some(queue_id)
        self.delivery_number += 1
        outs = [self.term << 40 | self.delivery_number] * len(sequences)
        counts = [self.random.randrange(1, 5) for _ in sequences]
        now_ms = self.now_ms
        return [m.MessagesReceived(queue_id, now_ms, now_ms + 30, sequences, outs, counts, [now_ms] * len(sequences))]

    def _prioritise(self, queue_id: int) -> list[m.Mutation]:
        sequences = self._some(queue_id)
        return [m.PrioritiesSet(queue_id, sequences, [self.random.randrange(-3, 3) for _ in sequences])]

    def _change(self, queue_id: int) -> list[m.Mutation]:
        sequences = self._some(queue_id)
        return [m.VisibilityChanged(queue_id, sequences, [self.now_ms + self.random.randrange(99) for _ in sequences])]

    def _return(self, queue_id: int) -> list[m.Mutation]:
        sequences = self._some(queue_id)
        known = [self.model.delivery.get((queue_id, sequence), (0, 3))[1] for sequence in sequences]
        outs = [self.random.choice((out, out, out, 1)) for out in known]
        key = self.random.choice((b"", self.random.randbytes(1) * 16))
        numbers = [self.random.randrange(9) for _ in sequences]
        return [m.ReceiveReturned(queue_id, sequences, outs, numbers, numbers, self.now_ms, key)]

    def _remove(self, queue_id: int) -> list[m.Mutation]:
        return [m.MessagesRemoved(queue_id, self._some(queue_id))]

    def _expire(self, queue_id: int) -> list[m.Mutation]:
        first, *_, last = [*self._some(queue_id), *self._some(queue_id)]
        return [m.RangeRemoved(queue_id, min(first, last), max(first, last))]

    def _purge(self, queue_id: int) -> list[m.Mutation]:
        watermark = self.random.choice((self.next_sequence[queue_id] + 1, self._some(queue_id)[0]))
        return [m.QueuePurged(queue_id, watermark, self.now_ms)]

    def _delete(self, queue_id: int) -> list[m.Mutation]:
        return [m.QueueDeleted(queue_id, self.now_ms)]

    def _reclaim(self, queue_id: int) -> list[m.Mutation]:
        return [m.QueueReclaimed(queue_id)] if self.model.queues[queue_id].deleted_ms is not None else []

    def _set(self, queue_id: int) -> list[m.Mutation]:
        attributes = {**self.model.queues[queue_id].attributes, "DelaySeconds": str(self.now_ms)}
        if queue_id == PRIORITY_QUEUE:
            attributes[DEFAULT_PRIORITY] = str(self.random.randrange(9))
        return [m.QueueAttributesSet(queue_id, attributes, self.now_ms)]

    def _attempt(self, queue_id: int) -> list[m.Mutation]:
        key = self.random.randbytes(1) * 16
        return [m.AttemptRecorded(key, self.now_ms, self.random.choice((b"", b"%d" % self.now_ms)))]

    def _tag(self, queue_id: int) -> list[m.Mutation]:
        return [m.QueueTagged(queue_id, {"now": str(self.now_ms)})]

    def _task(self, queue_id: int) -> list[m.Mutation]:
        number = self.random.randrange(1, 5)
        if self.random.random() < 0.3:
            return [m.MoveTaskForgotten(number)]
        status = self.random.choice((m.RUNNING, m.COMPLETED))
        return [task(number, queue_id, self.now_ms, status)]

    def _lease(self, queue_id: int) -> list[m.Mutation]:
        key = (queue_id, "q", self.random.randrange(3), self.random.randrange(2))
        known = self.model.leases.get(key, {})
        if self.random.random() < 0.1:
            return [m.LeaseForgotten(*key)]
        itself = known.get(-1)
        if isinstance(itself, m.LeaseSet) and itself.ended_ms:
            return []
        if known and self.random.random() < 0.3:
            ended_ms = self.random.choice((0, self.now_ms))
            return [m.LeaseSet(*key, 1, self.now_ms, m.LEASE_EXPIRED if ended_ms else m.LEASE_OPEN, ended_ms, 3)]
        sequences = self._some(queue_id)
        return [m.LeaseCalled(*key, len(known), 1, self.now_ms, sequences, sequences)]

    def _take_over(self, queue_id: int) -> list[m.Mutation]:
        self.term += 1
        return [m.TookOver(self.term, "n", self.now_ms, self.now_ms + 5)]


# --- laws --------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 32), script=st.lists(st.sampled_from("eeeebrfx"), min_size=5, max_size=40))
def test_what_is_loaded_is_what_was_committed(seed: int, script: list[str]) -> None:
    """e: an entry; b: a batch, entries taken while it is under way; f: one that fails; r: a restart; x: flush all."""
    history, connection, rows = History(seed), opened(), Rows()
    for step in script:
        if step == "e":
            rows.take(history.entry())
        elif step in "bf" and (batch := rows.begin()) is not None:
            rows.take(history.entry())
            if step == "f":
                rows.failed()
            else:
                run(connection, batch)
                rows.done()
        elif step == "x":
            flush(rows, connection)
        elif step == "r":
            rows = restarted(history, connection)
    restarted(history, connection)
    flush(rows, connection)
    restarted(history, connection)


def restarted(history: History, connection: sqlite3.Connection) -> Rows:
    """Load, compare with the model at that index, read every content, and take again what came after."""
    rows, index, view = loaded(connection)
    assert view == history.views[index]
    alive = history.alive_at[index]
    for queue_id in QUEUES:
        sequences = [sequence for queue, sequence in alive if queue == queue_id]
        messages = fetched(rows, connection, queue_id, sequences)
        assert {(queue_id, message.sequence): message for message in messages} == {
            key: message for key, message in alive.items() if key[0] == queue_id
        }
    for committed in history.entries[index:]:
        rows.take(deepcopy(committed))
    return rows


def test_newest_voters_and_the_renamed_cluster_come_back_with_the_applied_index() -> None:
    connection, rows = opened(), Rows()
    voters = (Voter("a-1", "127.0.0.1:1"), Voter("b-2"))
    rows.take(Committed(1, 1, 1, [m.ClusterFounded("c", b"key", 3)], (Voter("a-1"),)))
    rows.take(Committed(2, 1, 2, [created()], voters))
    flush(rows, connection)
    rows.take(Committed(3, 1, 3, [m.ClusterRenamed("d")]))
    flush(rows, connection)
    again = Rows()
    base, mutations = again.load(connection)
    assert base == Base(3, 1, 3, voters)
    assert view_of(mutations)[0] == m.ClusterFounded("d", b"key", 3)
    again.take(Committed(4, 2, 4, [m.ClusterRenamed("e")]))
    flush(again, connection)
    base, mutations = Rows().load(connection)
    assert base == Base(4, 2, 4, voters)
    assert view_of(mutations)[0] == m.ClusterFounded("e", b"key", 3)


def test_how_far_the_clock_was_advanced_comes_back_also_after_batches_that_do_not_tell() -> None:
    connection, rows = opened(), Rows()
    rows.take(Committed(1, 1, 1, [m.ClusterFounded("c", b"key", 3), m.ClockAdvanced(30_000)]))
    flush(rows, connection)
    for index in (2, 3):
        again = Rows()
        _, mutations = again.load(connection)
        assert m.ClockAdvanced(30_000) in list(mutations)
        again.take(Committed(index, 1, index, [created(index)]))
        flush(again, connection)


def test_id_of_a_queue_that_is_gone_is_not_forgotten() -> None:
    connection, rows = opened(), Rows()
    rows.take(Committed(1, 1, 1, [created(7), created(9), m.QueueDeleted(9, 1), m.QueueReclaimed(9)]))
    flush(rows, connection)
    for _ in range(2):
        state = State()
        for mutation in Rows().load(connection)[1]:
            apply(state, mutation)
        assert (state.last_queue_id, list(state.queues), state.deleted_queues, state.deleted_names) == (9, [7], {}, {})
        assert list(state.names) == [("000000000000", "q7")]


def test_rows_of_an_older_version_know_no_voters() -> None:
    connection = opened()
    filled(connection, 3)
    value = msgspec.msgpack.encode(msgspec.msgpack.decode(_applied(connection))[:6])
    crc = crc32(value, crc32(b"applied"))
    connection.execute("UPDATE meta SET value = ?, crc = ? WHERE name = 'applied'", (value, crc))
    rows = Rows()
    base, mutations = rows.load(connection)
    assert (base.index, base.voters, len(view_of(mutations)[3])) == (2, None, 3)
    rows.take(Committed(3, 1, 1, [m.QueueDeleted(7, 5), m.QueueReclaimed(7)], (Voter("a"),)))
    flush(rows, connection)
    base, mutations = Rows().load(connection)
    assert (base.voters, next(mutations)) == ((Voter("a"),), m.QueueCreated(7, "", "", {}, {}, 0))


def _applied(connection: sqlite3.Connection) -> bytes:
    (value,) = connection.execute("SELECT value FROM meta WHERE name = 'applied'").fetchone()
    return value


def test_message_that_comes_and_goes_between_two_batches_never_meets_the_disk() -> None:
    rows = Rows()
    rows.take(Committed(1, 1, 1, [created()]))
    rows.take(Committed(2, 1, 1, [stored(sequence) for sequence in range(1, 100)]))
    assert (rows.pending_messages, rows.pending_bytes, rows.pending_index) == (99, 99 * 256, 2)
    rows.take(Committed(3, 1, 1, [m.MessagesRemoved(7, list(range(1, 100)))]))
    assert (rows.pending_messages, rows.pending_bytes) == (0, 0)
    batch = rows.begin()
    assert batch is not None
    assert not [sql for sql, _ in batch.statements if "pages" in sql or "contents" in sql or "touched" in sql]
    connection = opened()
    run(connection, batch)
    rows.done()
    _, index, (_, _, queues, untouched, *_) = loaded(connection)
    assert (index, queues[0].last_sequence, untouched) == (3, 99, [])


def test_failed_batch_comes_again_before_newer_ones() -> None:
    rows = Rows()
    rows.take(Committed(1, 1, 1, [created(), stored(1)]))
    first = rows.begin()
    rows.take(Committed(2, 1, 2, [m.MessagesRemoved(7, [1])]))
    rows.failed()
    assert rows.begin() is first
    assert rows.done() == 1
    second = rows.begin()
    assert second is not None
    assert second.index == 2
    assert rows.done() == 2
    assert rows.begin() is None


def test_failed_transaction_leaves_the_disk_at_the_batch_before() -> None:
    connection = opened()
    rows = filled(connection, 10)
    rows.take(Committed(20, 1, 1, [stored(11), m.MessagesRemoved(7, [1])]))
    batch = rows.begin()
    assert batch is not None
    connection.execute("BEGIN")
    for sql, parameters in batch.statements:
        connection.executemany(sql, parameters)
    connection.execute("ROLLBACK")
    rows.failed()
    assert loaded(connection)[1] == 2
    flush(rows, connection)
    assert [sequence for _, sequence in loaded(connection)[2][3]] == list(range(2, 12))


@pytest.mark.parametrize("ending", [[m.QueuePurged(7, 40_001, 9)], [m.QueueDeleted(7, 9), m.QueueReclaimed(7)]])
def test_purged_and_deleted_messages_leave_the_disk_in_bounded_steps(
    ending: list[m.Mutation], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "RECLAIM_ROWS_MAX", 100)
    monkeypatch.setattr(batches, "FREE_PAGES_KEPT", 20)
    path = tmp_path / "rows.db"
    connection = opened(path)
    rows = filled(connection, 40_000, batch=20_000)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    size = path.stat().st_size
    rows.take(Committed(50_000, 1, 1, ending))
    batch = rows.begin()
    assert batch is not None
    assert sum(len(parameters) for sql, parameters in batch.statements if "FROM pages" in sql) == 100
    run(connection, batch)
    rows.done()
    rows, _, view = loaded(connection)  # a restart in the middle goes on with it
    assert view[3] == []
    assert flush(rows, connection) >= 2
    for table in ("pages", "contents", "touched"):
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert path.stat().st_size < size / 10


def test_invocations_older_than_the_window_go() -> None:
    connection, rows = opened(), Rows()
    rows.take(Committed(1, 1, 1_000, [created(), m.InvocationRecorded(b"a" * 16, 1_000, 7, 1)]))
    flush(rows, connection)
    rows.take(Committed(2, 1, 300_999, [m.InvocationRecorded(b"b" * 16, 300_999, 7, 2)]))
    flush(rows, connection)
    assert list(loaded(connection)[2][5]) == [b"a" * 16, b"b" * 16]
    rows.take(Committed(3, 1, 301_000, []))
    flush(rows, connection)
    assert list(loaded(connection)[2][5]) == [b"b" * 16]
    assert connection.execute("SELECT count(*) FROM invocations").fetchone() == (1,)


def test_takeovers_are_kept_as_far_as_they_are_restored() -> None:
    connection, rows = opened(), Rows()
    for term in range(1, 101):
        rows.take(Committed(term, term, 1, [m.TookOver(term, "n", 1, 2)]))
        flush(rows, connection)
    assert [takeover.term for takeover in loaded(connection)[2][1]] == list(range(37, 101))
