"""The asynchronous view of ``async with ElasticQ() as server``. Its methods are those of View and block no loop."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from elasticq.testing.clock import Clock
from elasticq.testing.view import Fault, Queue, Topic, View


class AsyncView:
    """A View with coroutines. sync: the View that it uses."""

    def __init__(self, view: View) -> None:
        self.sync = view
        self.account = view.account
        self.endpoint_url = view.endpoint_url
        self.region = view.region
        self.credentials = view.credentials
        self.environment = view.environment
        self.clock = AsyncClock(view.clock)

    def client(self, service: str = "sqs", **settings: Any) -> Any:
        """Return a boto3 client, whose calls block. For aioboto3 use ``endpoint_url`` and ``credentials``."""
        return self.sync.client(service, **settings)

    def queue(self, name: str) -> AsyncQueue:
        return AsyncQueue(self.sync.queue(name))

    def topic(self, name: str) -> AsyncTopic:
        return AsyncTopic(self.sync.topic(name))

    async def topics(self) -> list[str]:
        return await to_thread(self.sync.topics)

    async def queues(self) -> list[str]:
        return await to_thread(self.sync.queues)

    async def reset(self) -> int:
        return await to_thread(self.sync.reset)

    @asynccontextmanager
    async def fault(self, action: str = "*", kind: str = "error503", **settings: Any) -> AsyncIterator[AsyncFault]:
        context = self.sync.fault(action, kind, **settings)
        fault = await to_thread(context.__enter__)
        try:
            yield AsyncFault(fault)
        finally:
            await to_thread(context.__exit__, None, None, None)


class AsyncClock:
    """A Clock with coroutines."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def advance(self, seconds: float) -> float:
        return await to_thread(self._clock.advance, seconds)

    async def now(self) -> float:
        return await to_thread(self._clock.now)


class AsyncFault:
    """A Fault with coroutines."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault

    async def struck(self) -> int:
        return await to_thread(lambda: self._fault.struck)


class AsyncQueue:
    """A Queue with coroutines. sync: the Queue that it uses."""

    def __init__(self, queue: Queue) -> None:
        self.sync = queue
        self.name = queue.name
        self.url = queue.url
        self.arn = queue.arn

    async def create(self, **attributes: Any) -> AsyncQueue:
        await to_thread(self.sync.create, **attributes)
        return self

    async def send(self, body: str, **members: Any) -> str:
        return await to_thread(self.sync.send, body, **members)

    async def attributes(self) -> dict[str, str]:
        return await to_thread(self.sync.attributes)

    async def counts(self) -> dict[str, int]:
        return await to_thread(self.sync.counts)

    async def visible(self) -> int:
        return await to_thread(self.sync.visible)

    async def in_flight(self) -> int:
        return await to_thread(self.sync.in_flight)

    async def delayed(self) -> int:
        return await to_thread(self.sync.delayed)

    async def peek(self, limit: int = 100, **filters: Any) -> list[dict[str, Any]]:
        return await to_thread(self.sync.peek, limit, **filters)

    async def wait_until_empty(self, timeout_s: float = 10.0) -> None:
        await to_thread(self.sync.wait_until_empty, timeout_s)

    async def purge(self) -> None:
        await to_thread(self.sync.purge)

    async def delete(self) -> None:
        await to_thread(self.sync.delete)


class AsyncTopic:
    """A Topic with coroutines. sync: the Topic that it uses."""

    def __init__(self, topic: Topic) -> None:
        self.sync = topic
        self.name = topic.name
        self.arn = topic.arn

    async def create(self, **attributes: Any) -> AsyncTopic:
        await to_thread(self.sync.create, **attributes)
        return self

    async def subscribe(self, endpoint: AsyncQueue | Queue | str, *, raw: bool = False, **attributes: Any) -> str:
        to = endpoint.sync if isinstance(endpoint, AsyncQueue) else endpoint
        return await to_thread(self.sync.subscribe, to, raw=raw, **attributes)

    async def publish(self, message: str, **members: Any) -> str:
        return await to_thread(self.sync.publish, message, **members)

    async def attributes(self) -> dict[str, str]:
        return await to_thread(self.sync.attributes)

    async def subscriptions(self) -> list[dict[str, str]]:
        return await to_thread(self.sync.subscriptions)

    async def delete(self) -> None:
        await to_thread(self.sync.delete)
