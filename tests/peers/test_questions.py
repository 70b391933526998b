"""Questions over a link: each gets the answer of the member that was meant, or a reason within its time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from elasticq.peers.frames import REPLY
from elasticq.peers.messages import Reply, encode
from elasticq.peers.questions import ASKED_MAX, ASKING_MAX, BODY_BYTES_MAX, Answer, NotAnswered
from tests.peers.community import PATIENCE_S, Member, running

SECRET = {"secret": b"open sesame"}


@asynccontextmanager
async def linked() -> AsyncIterator[tuple[Member, Member]]:
    """Yield two linked members."""
    first = Member("a", **SECRET)
    async with running(first):
        second = Member("b", seeds=(first.peers.address,), **SECRET)
        async with running(second):
            await asyncio.gather(first.until_linked(second), second.until_linked(first))
            yield first, second


async def test_both_ends_of_a_link_ask_and_answer() -> None:
    async with linked() as (first, second):
        assert await first.peers.ask(second.id, "cluster", b"1", PATIENCE_S) == (200, b"b cluster 1")
        assert await second.peers.ask(first.id, "order", b"2", PATIENCE_S) == (200, b"a order 2")
        assert (first.questions, second.questions) == ([("order", b"2")], [("cluster", b"1")])


async def test_answers_find_their_questions_whatever_their_order() -> None:
    async with linked() as (first, second):
        gate = asyncio.Event()

        async def later(kind: str, body: bytes) -> Answer:
            if body == b"slow":
                await gate.wait()
            return 200, body

        second.answer = later
        slow = asyncio.create_task(first.peers.ask(second.id, "cluster", b"slow", PATIENCE_S))
        assert await first.peers.ask(second.id, "cluster", b"quick", PATIENCE_S) == (200, b"quick")
        gate.set()
        assert await slow == (200, b"slow")


async def test_who_is_not_linked_or_does_not_answer_in_time_is_told() -> None:
    async with linked() as (first, second):
        with pytest.raises(NotAnswered, match="no link"):
            await first.peers.ask("c-0123456789abcdef", "cluster", b"", PATIENCE_S)

        async def never(kind: str, body: bytes) -> Answer:
            await asyncio.Event().wait()
            raise AssertionError

        second.answer = never
        with pytest.raises(NotAnswered, match=r"within 0\.05 s"):
            await first.peers.ask(second.id, "cluster", b"", 0.05)
        late = asyncio.create_task(first.peers.ask(second.id, "cluster", b"", PATIENCE_S))
        await second.until(lambda: len(second.questions) == 2)
        second.peers.cut(first.id, "the test says so")
        with pytest.raises(NotAnswered, match="the link to it broke"):
            await late


async def test_answer_that_nobody_waits_for_changes_nothing() -> None:
    async with linked() as (first, second):
        link = second.peers._links.live(first.id)
        assert link is not None
        link.connection.send(REPLY, encode(Reply(77, 200, b"unasked")))
        assert await first.peers.ask(second.id, "cluster", b"", PATIENCE_S) == (200, b"b cluster ")


async def test_questions_are_bounded_at_both_ends() -> None:
    async with linked() as (first, second):
        gate = asyncio.Event()

        async def wait(kind: str, body: bytes) -> Answer:
            await gate.wait()
            return 200, body

        second.answer = wait
        asking = [
            asyncio.create_task(first.peers.ask(second.id, "cluster", b"", PATIENCE_S)) for _ in range(ASKING_MAX)
        ]
        await asyncio.sleep(0)  # each has begun
        with pytest.raises(NotAnswered, match=f"{ASKING_MAX} questions wait"):
            await first.peers.ask(second.id, "cluster", b"", PATIENCE_S)
        refused = 0
        for done in asyncio.as_completed(asking):
            refused += (await done)[0] == 503
            if refused == ASKING_MAX - ASKED_MAX:
                gate.set()
        assert (refused, len(second.questions)) == (ASKING_MAX - ASKED_MAX, ASKED_MAX)


async def test_answer_that_does_not_fit_a_frame_is_an_error_and_the_link_stays() -> None:
    async with linked() as (first, second):

        async def long(kind: str, body: bytes) -> Answer:
            return 200, bytes(BODY_BYTES_MAX + (body == b"more"))

        second.answer = long
        assert (await first.peers.ask(second.id, "cluster", b"", PATIENCE_S))[0] == 200
        assert (await first.peers.ask(second.id, "cluster", b"more", PATIENCE_S))[0] == 500
        assert first.losts == []
