"""A consumer of a group in an event loop."""

import asyncio
from collections.abc import Iterator

import pytest

from elasticq.client import AsyncGroup, Held, SqsError
from tests.client.grouped import GROUP, Workplace, holds, workplace
from tests.system.cluster.cluster import until

NAMES = ("work-0", "work-1")


@pytest.fixture
def work() -> Iterator[Workplace]:
    with workplace(len(NAMES)) as made:
        yield made


async def until_holds(group: AsyncGroup, *names: str) -> None:
    await asyncio.to_thread(until, holds(group, *names), f"{names} are held")


async def test_callbacks_run_in_the_loop_and_messages_come(work: Workplace) -> None:
    loops, calls = set(), []

    async def assigned(held: Held) -> None:
        loops.add(asyncio.get_running_loop())
        calls.append(("assigned", held.resource))

    async def revoked(held: Held) -> None:
        loops.add(asyncio.get_running_loop())
        calls.append(("revoked", held.resource))

    work.send("a", "b")
    async with AsyncGroup(work.sqs, GROUP, on_assigned=assigned, on_revoked=revoked, consumer_name="me") as group:
        await until_holds(group, *NAMES)
        bodies = []
        async for message in group:
            bodies.append(message.body)
            await message.delete()
            if len(bodies) == 2:
                break
        assert bodies == ["a", "b"]
        assert work.group()["Consumers"][0]["ConsumerId"] == group.consumer_id
        assert work.group()["Generation"] == group.generation
    assert loops == {asyncio.get_running_loop()}
    assert sorted(calls) == sorted((kind, name) for kind in ("assigned", "revoked") for name in NAMES)
    assert work.group()["Consumers"] == []


async def test_tasks_share_the_messages_and_end_with_the_group(work: Workplace) -> None:
    for name in NAMES:
        work.send(*"abcd", queue=name)
    done: list[str] = []

    async def read(group: AsyncGroup) -> None:
        async for message in group:
            done.append(message.body)
            await message.delete()
            if len(done) == 8:
                await group.close()

    async with AsyncGroup(work.sqs, GROUP) as group:
        await asyncio.gather(*(read(group) for _ in range(3)), group.wait())
    assert sorted(done) == sorted("abcd" * 2)


async def test_what_is_left_of_a_batch_goes_back_when_the_queue_is_revoked(work: Workplace) -> None:
    work.send("a", "b", "c")
    async with AsyncGroup(work.sqs, GROUP) as first:
        messages = aiter(first)
        await anext(messages)
        async with AsyncGroup(work.sqs, GROUP, weight=1000) as second:
            work.sqs.drain_consumer(GroupName=GROUP, ConsumerId=first.consumer_id)
            await until_holds(second, "work-1")
            await messages.aclose()
            await until_holds(second, *NAMES)
            assert work.visible() == ["b", "c"]


async def test_what_ends_a_consumer_is_raised(work: Workplace) -> None:
    async def assigned(held: Held) -> None:
        raise LookupError(held.resource)

    with pytest.raises(LookupError, match="work-"):
        async with AsyncGroup(work.sqs, GROUP, on_assigned=assigned) as group:
            await group.wait()
    group = AsyncGroup(work.sqs, GROUP, on_assigned=assigned)
    with pytest.raises(LookupError, match="work-"):
        async with group:
            assert [message async for message in group] == []
    with pytest.raises(SqsError, match="ElasticqGroupDoesNotExist"):
        async with AsyncGroup(work.sqs, "none"):
            raise AssertionError


async def test_close_in_a_callback_ends_the_consumer(work: Workplace) -> None:
    async def assigned(held: Held) -> None:
        await group.close()

    group = AsyncGroup(work.sqs, GROUP, on_assigned=assigned)
    async with group:
        await group.wait()
    assert work.group()["Consumers"] == []


async def test_a_task_that_a_callback_waits_for_can_end_the_consumer(work: Workplace) -> None:
    async def end() -> None:
        group.end()

    async def assigned(held: Held) -> None:
        await asyncio.create_task(end())

    group = AsyncGroup(work.sqs, GROUP, on_assigned=assigned)
    async with group:
        await group.wait()


async def test_a_join_that_is_cancelled_leaves_no_consumer_behind(work: Workplace) -> None:
    group = AsyncGroup(work.sqs, GROUP)
    with work.server.fault("ElasticqJoinGroup") as fault:
        joining = asyncio.create_task(group.__aenter__())
        await asyncio.to_thread(until, lambda: fault.struck > 0, "it tries to join")
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining
    assert await asyncio.to_thread(group._group.wait, 60)
    assert group.held == {}
