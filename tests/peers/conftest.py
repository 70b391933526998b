"""The room's log lines, to be waited for."""

import asyncio
import logging
from collections.abc import Callable, Iterator

import pytest

from tests.peers.community import PATIENCE_S


class LogLines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._news = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self._news.set()

    def having(self, *words: str) -> list[str]:
        return [line for line in self.lines if all(word in line for word in words)]

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._news.clear()
                await self._news.wait()


@pytest.fixture
def log() -> Iterator[LogLines]:
    lines = LogLines()
    logger = logging.getLogger("elasticq.peers")
    level = logger.level
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)
    yield lines
    logger.removeHandler(lines)
    logger.setLevel(level)
