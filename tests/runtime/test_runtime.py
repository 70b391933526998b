"""The runtime does what the node asks for, in the order it must be done."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import pytest

from elasticq.engine.stored.mutations import MessageStored
from elasticq.model.commands import Call, CreateQueue, ListQueues, ReceiveMessage, SendMessage
from elasticq.model.errors import InternalFailure, SqsError
from elasticq.model.results import EmptyResult, ReceiveMessageResult, Result, SendMessageResult
from elasticq.node.call_holder import MOVED_AT_ONCE
from elasticq.node.effects import Effects
from elasticq.node.node import Node
from elasticq.node.outputs import Committed, Fetch, Frame
from elasticq.node.reply import Reply
from elasticq.node.settings import NodeSettings
from elasticq.replication.records import Durable, Record, Vote
from elasticq.runtime.clock import boot_ms, wall_ms
from elasticq.runtime.runtime import Runtime, RuntimeStopped
from elasticq.storage.interface import Loaded, OnFetched, OnStored, OnSynced, Storage
from elasticq.storage.memory import MemoryStorage


class Client:
    def __init__(self) -> None:
        self.outcomes: list[Result | SqsError] = []

    def release(self, outcome: Result | SqsError) -> None:
        self.outcomes.append(outcome)


class ScriptedNode:
    """Gives out what the test puts into ``effects``, and notes what it was told."""

    def __init__(self) -> None:
        self.effects = Effects()
        self.told: list[tuple[Any, ...]] = []
        self.on_submit: Callable[[Any], None] = lambda ticket: None

    def submit(self, call: Call, ticket: Any, now_ms: int) -> None:
        self.on_submit(ticket)

    def synced(self, token: int, now_ms: int) -> None:
        self.told.append(("synced", token))

    def stored(self, index: int, now_ms: int) -> None:
        self.told.append(("stored", index))
        self.effects.log_floor = index

    def fetched(self, fetch: Fetch, contents: list[MessageStored], now_ms: int) -> None:
        self.told.append(("fetched", fetch.ticket, contents))

    def set_full(self, reason: str | None, now_ms: int) -> None:
        self.told.append(("full", reason))

    def cancel(self, ticket: Any, now_ms: int) -> None:
        self.told.append(("cancel", ticket))

    def undelivered(self, result: Result, now_ms: int) -> None:
        self.told.append(("undelivered", result))

    def close_waiters(self, now_ms: int) -> None:
        self.told.append(("close_waiters",))

    def tick(self, now_ms: int) -> None:
        self.told.append(("tick", now_ms))
        self.effects.wake_at_ms = None


class SlowStorage(Storage):
    volatile = False

    def __init__(self) -> None:
        self.appended: list[tuple[list[Record], int]] = []
        self.sync: OnSynced = lambda token: None
        self.committed: list[Committed] = []
        self.store: OnStored = lambda index: None
        self.fetches: list[tuple[Fetch, OnFetched]] = []
        self.forgotten: list[int] = []
        self.closed = False

    def load(self) -> Loaded:
        return Loaded(Durable(Vote(0, None), []), iter(()))

    def append(self, records: list[Record], token: int, on_synced: OnSynced) -> None:
        self.appended.append((records.copy(), token))
        self.sync = on_synced

    def rows(self, committed: list[Committed], on_stored: OnStored) -> None:
        self.committed += committed
        self.store = on_stored

    def fetch(self, fetch: Fetch, on_fetched: OnFetched) -> None:
        self.fetches.append((fetch, on_fetched))

    def forget_log(self, index: int) -> None:
        self.forgotten.append(index)

    def close(self) -> None:
        self.closed = True


def call(command: Any = None) -> Call:
    return Call(command or ListQueues(), "anonymous", "000000000000", "http://h")


def scripted(storage: Storage, sent: list[Frame], clock: Callable[[], int] = boot_ms) -> tuple[ScriptedNode, Runtime]:
    node = ScriptedNode()
    runtime = Runtime(cast(Node, node), storage, asyncio.get_running_loop(), _unexpected, send=sent.extend, clock=clock)
    return node, runtime


def _unexpected(failure: BaseException) -> None:
    raise AssertionError("the node failed") from failure


def real(failures: list[BaseException]) -> Runtime:
    storage = MemoryStorage()
    node = Node(NodeSettings(member_id="a", voters=("a",), volatile=True), storage.load().durable, bytes(32))
    runtime = Runtime(node, storage, asyncio.get_running_loop(), failures.append)
    runtime.start()
    return runtime


@pytest.mark.pure
async def test_records_go_to_storage_and_frames_wait_for_their_sync() -> None:
    sent: list[Frame] = []
    storage = SlowStorage()
    node, runtime = scripted(storage, sent)
    vote, heartbeat, promise = Vote(1, "a"), Frame("b", b"now", 0), Frame("b", b"later", 7)

    def on_submit(ticket: Any) -> None:
        node.effects.records.append(vote)
        node.effects.frames += [promise, heartbeat]
        node.effects.token = 7

    node.on_submit = on_submit
    runtime.submit(call(), Client())
    assert storage.appended == [([vote], 7)]
    assert sent == [heartbeat]
    assert node.effects.records == node.effects.frames == []
    storage.sync(7)
    assert node.told == [("synced", 7)]
    assert sent == [heartbeat, promise]


@pytest.mark.pure
async def test_committed_entries_and_fetches_go_to_the_rows() -> None:
    storage = SlowStorage()
    node, runtime = scripted(storage, [])
    committed, fetch = Committed(1, 1, 0, []), Fetch(4, 1, [5])

    def on_submit(ticket: Any) -> None:
        node.effects.committed.append(committed)
        node.effects.fetches.append(fetch)
        node.effects.replies.append(Reply(ticket, EmptyResult(), 1))

    node.on_submit = on_submit
    runtime.submit(call(), Client())
    assert storage.committed == [committed]
    assert node.effects.committed == node.effects.fetches == []
    ((asked, on_fetched),) = storage.fetches
    assert asked == fetch
    on_fetched(fetch, [])
    storage.store(1)
    storage.store(1)
    assert node.told == [("fetched", 4, []), ("stored", 1), ("stored", 1)]
    assert storage.forgotten == [1]


@pytest.mark.pure
async def test_a_full_disk_is_told_to_the_node() -> None:
    node, runtime = scripted(SlowStorage(), [])
    runtime.set_full("full")
    runtime.set_full(None)
    assert node.told == [("full", "full"), ("full", None)]


@pytest.mark.pure
async def test_a_failed_disk_stops_the_member_once() -> None:
    failures: list[BaseException] = []
    storage = SlowStorage()
    runtime = Runtime(cast(Node, ScriptedNode()), storage, asyncio.get_running_loop(), failures.append)
    runtime.fail(OSError("broken"))
    runtime.fail(OSError("again"))
    assert [str(failure) for failure in failures] == ["broken"]
    with pytest.raises(RuntimeStopped):
        runtime.submit(call(), Client())


@pytest.mark.pure
async def test_a_volatile_member_sends_at_once() -> None:
    sent: list[Frame] = []
    node, runtime = scripted(MemoryStorage(), sent)
    frame = Frame("b", b"", 9)
    node.on_submit = lambda ticket: node.effects.frames.append(frame)
    runtime.submit(call(), Client())
    assert sent == [frame]


@pytest.mark.pure
async def test_each_ticket_gets_its_reply_once() -> None:
    node, runtime = scripted(MemoryStorage(), [])
    clients = [Client() for _ in range(3)]
    results = [EmptyResult() for _ in clients]
    node.on_submit = lambda ticket: node.effects.replies.extend(map(Reply, clients, results, [1, 2, 3]))
    runtime.submit(call(), clients[0])
    node.on_submit = lambda ticket: None
    runtime.submit(call(), clients[0])
    assert [client.outcomes for client in clients] == [[result] for result in results]


@pytest.mark.pure
async def test_the_timer_follows_the_earliest_wake_up() -> None:
    now = [1_000]
    node, runtime = scripted(MemoryStorage(), [], lambda: now[0])
    woken = asyncio.Event()

    def tick(now_ms: int) -> None:
        node.told.append(("tick", now_ms))
        node.effects.wake_at_ms = None
        woken.set()

    node.tick = tick  # type: ignore[method-assign]
    node.effects.wake_at_ms = 1_000_000
    runtime.submit(call(), Client())
    node.effects.wake_at_ms = 1_001
    runtime.submit(call(), Client())
    now[0] = 1_001
    await asyncio.wait_for(woken.wait(), 10)
    assert node.told == [("tick", 1_001)]


@pytest.mark.pure
async def test_a_timer_that_fires_early_looks_again() -> None:
    now = [1_000]
    node, runtime = scripted(MemoryStorage(), [], lambda: now[0])
    node.effects.wake_at_ms = 1_001
    runtime.submit(call(), Client())
    runtime._wake()
    assert node.told == []
    assert runtime._armed_at_ms == 1_001
    now[0] = 1_001
    runtime._wake()
    assert node.told == [("tick", 1_001)]


async def test_a_long_poll_of_a_real_node_ends_by_the_timer() -> None:
    runtime = real([])
    runtime.submit(call(CreateQueue(queue_name="orders")), Client())
    client, answered = Client(), asyncio.Event()
    client.release = lambda outcome: (client.outcomes.append(outcome), answered.set())  # type: ignore[method-assign, assignment]
    runtime.submit(call(ReceiveMessage(queue_url="orders", wait_time_seconds=1)), client)
    assert client.outcomes == []
    started_ms = boot_ms()
    await asyncio.wait_for(answered.wait(), 10)
    assert client.outcomes == [ReceiveMessageResult()]
    assert boot_ms() - started_ms >= 990
    runtime.close()


async def test_cancelled_and_undelivered_receives_lose_nothing() -> None:
    runtime = real([])
    runtime.submit(call(CreateQueue(queue_name="orders")), Client())
    gone, sender, other = Client(), Client(), Client()
    poll = ReceiveMessage(queue_url="orders", wait_time_seconds=20)
    runtime.submit(call(poll), gone)
    runtime.cancel(gone)
    runtime.submit(call(SendMessage(queue_url="orders", message_body="kept")), sender)
    runtime.submit(call(poll), gone)
    (first,) = gone.outcomes
    assert isinstance(first, ReceiveMessageResult)
    runtime.undelivered(first)
    runtime.submit(call(poll), other)
    (second,) = other.outcomes
    assert isinstance(second, ReceiveMessageResult)
    assert [message.body for message in second.messages] == ["kept"]
    runtime.close()


async def test_close_waiters_answers_long_polls_empty() -> None:
    runtime = real([])
    runtime.submit(call(CreateQueue(queue_name="orders")), Client())
    client = Client()
    runtime.submit(call(ReceiveMessage(queue_url="orders", wait_time_seconds=20)), client)
    runtime.close_waiters()
    assert client.outcomes == [ReceiveMessageResult()]
    runtime.close()


@pytest.mark.pure
async def test_a_failed_invariant_stops_the_member() -> None:
    failures: list[BaseException] = []
    node = ScriptedNode()
    storage = SlowStorage()
    runtime = Runtime(cast(Node, node), storage, asyncio.get_running_loop(), failures.append)

    def fail(ticket: Any) -> None:
        node.effects.replies.append(Reply(ticket, EmptyResult(), 1))
        raise AssertionError("terms never fall")

    node.on_submit = fail
    client = Client()
    with pytest.raises(RuntimeStopped):
        runtime.submit(call(), client)
    assert [str(failure) for failure in failures] == ["terms never fall"]
    assert client.outcomes == []
    with pytest.raises(RuntimeStopped):
        runtime.submit(call(), client)
    runtime.cancel(client)
    runtime.undelivered(EmptyResult())
    runtime.close_waiters()
    runtime._synced(1)
    runtime._wake()
    assert node.told == []
    runtime.close()
    assert storage.closed


@pytest.mark.pure
async def test_a_failed_command_is_answered_and_told_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log says what and where, and nothing of the request; the member goes on."""
    failures: list[BaseException] = []
    runtime = real(failures)
    runtime.submit(call(CreateQueue(queue_name="orders")), Client())

    sent = "the body of a message"

    def failing(*arguments: object, **named: object) -> None:
        raise KeyError(sent)

    failed, other = Client(), Client()
    with monkeypatch.context() as patch:
        patch.setattr("elasticq.engine.actions.send._Sender.stored", failing)
        runtime.submit(call(SendMessage(queue_url="orders", message_body=sent)), failed)
    runtime.submit(call(SendMessage(queue_url="orders", message_body="y")), other)
    assert [type(outcome) for outcome in failed.outcomes] == [InternalFailure]
    assert [type(outcome) for outcome in other.outcomes] == [SendMessageResult]
    assert failures == []
    assert not runtime.stopped
    (record,) = caplog.records
    text = record.getMessage()
    assert text.startswith("command_failed SendMessage KeyError")
    assert "in failing" in text
    assert sent not in text
    runtime.close()


def test_clocks_are_whole_milliseconds() -> None:
    assert boot_ms() > 0
    assert wall_ms() > 1_700_000_000_000


async def test_calls_of_a_replaced_node_go_on_in_turns() -> None:
    def node() -> Node:
        settings = NodeSettings(member_id="a", voters=("a", "b", "c"), volatile=True, hold_ms=25_000)
        return Node(settings, MemoryStorage().load().durable, bytes(32))

    runtime = Runtime(node(), MemoryStorage(), asyncio.get_running_loop(), pytest.fail)
    runtime.start()
    clients = [Client() for _ in range(3 * MOVED_AT_ONCE)]
    for client in clients:
        runtime.submit(Call(ListQueues(), "x", "0" * 12, "http://x"), client)
    assert runtime.status().held_calls == len(clients)
    runtime.replace(node())
    runtime.cancel(clients[-1])
    turns = [runtime.status().held_calls]
    while len(turns) < 9:
        await asyncio.sleep(0)
        turns.append(runtime.status().held_calls)
    assert turns[0] == MOVED_AT_ONCE
    assert all(after - before <= MOVED_AT_ONCE for before, after in pairwise(turns))
    assert turns[-1] == len(clients) - 1, "one client has left"
    runtime.close()
