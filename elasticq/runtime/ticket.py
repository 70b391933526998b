"""A ticket whose outcome a coroutine of this process awaits."""

import asyncio

from elasticq.model.errors import SqsError
from elasticq.model.results import Result


class Awaited:
    """A ticket with a future of the running loop. It may be released after the coroutine that awaits it was cancelled.

    The outcome of such a release is dropped. Received messages become visible again after their timeout.
    """

    def __init__(self) -> None:
        self.outcome: asyncio.Future[Result | SqsError] = asyncio.get_running_loop().create_future()

    def release(self, outcome: Result | SqsError) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)
