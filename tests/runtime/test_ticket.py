"""A ticket that a coroutine awaits."""

from elasticq.model.errors import QueueDoesNotExist
from elasticq.model.results import EmptyResult
from elasticq.runtime.ticket import Awaited


async def test_an_outcome_is_what_is_awaited_be_it_an_error() -> None:
    for outcome in (EmptyResult(), QueueDoesNotExist()):
        ticket = Awaited()
        ticket.release(outcome)
        assert await ticket.outcome is outcome


async def test_an_outcome_after_the_end_of_the_wait_is_dropped() -> None:
    ticket = Awaited()
    ticket.outcome.cancel()
    ticket.release(EmptyResult())
    assert ticket.outcome.cancelled()
