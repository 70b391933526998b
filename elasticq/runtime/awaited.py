"""A ticket for those who are not on the hot path: its outcome is awaited."""

import asyncio

from elasticq.model.errors import SqsError
from elasticq.model.results import Result


class Awaited:
    """A ticket with a future. It may be released after whoever awaited that was cancelled: the outcome is dropped."""

    __slots__ = ("outcome",)

    def __init__(self) -> None:
        self.outcome: asyncio.Future[Result | SqsError] = asyncio.get_running_loop().create_future()

    def release(self, outcome: Result | SqsError) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)
