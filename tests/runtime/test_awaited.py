"""A ticket whose outcome is awaited."""

import asyncio

import pytest

from elasticq.model.results import EmptyResult
from elasticq.runtime.awaited import Awaited


async def test_outcome_is_awaited() -> None:
    ticket, outcome = Awaited(), EmptyResult()
    asyncio.get_running_loop().call_soon(ticket.release, outcome)
    assert await ticket.outcome is outcome


async def test_release_after_the_wait_was_cancelled_is_dropped() -> None:
    ticket = Awaited()

    async def wait() -> None:
        await ticket.outcome

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    ticket.release(EmptyResult())
    assert ticket.outcome.cancelled()
