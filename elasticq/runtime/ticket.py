"""A ticket whose outcome a coroutine of this process awaits."""

import asyncio

from elasticq.model.errors import SqsError
from elasticq.model.results import Result


class Awaited:
    """A ticket with a future, of the loop that runs; it may be released after whoever awaits the future is cancelled.

    What such a release brings is dropped: messages become visible again by themselves.
    """

    def __init__(self) -> None:
        self.outcome: asyncio.Future[Result | SqsError] = asyncio.get_running_loop().create_future()

    def release(self, outcome: Result | SqsError) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)
