"""A consumer of a group for asyncio, made from a Group.

The threads of the Group wait for the server. The event loop runs the callbacks, which are coroutines.

The calls block threads and not the loop, like those of ``wrap_async`` for a boto3 client. The rights of the consumer
depend on a clock and on answers in those threads. So a blocked loop delays callbacks, but ``is_held`` still returns
False in time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Self

from elasticq.client.group import Callback, Group
from elasticq.client.group_held import AsyncMessage, Held

AsyncCallback = Callable[[Held], Coroutine[Any, Any, object]]


class AsyncGroup:
    """A consumer of one group for one event loop, while its context is entered.

    on_assigned and on_revoked are coroutine functions, which run in the loop, one at a time. The calls of
    ``Held.client`` block, so use ``asyncio.to_thread`` for them.
    """

    def __init__(
        self,
        client: Any,
        name: str,
        *,
        on_assigned: AsyncCallback | None = None,
        on_revoked: AsyncCallback | None = None,
        **options: Any,
    ) -> None:
        """Prepare a consumer, which joins when the context is entered. The arguments are those of Group."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = asyncio.Event()
        self._callback: asyncio.Task[Any] | None = None  # the callback that runs now
        self._group = Group(
            client, name, on_assigned=self._in_loop(on_assigned), on_revoked=self._in_loop(on_revoked), **options
        )
        self._group.receivers.on_ready = self._wake

    @property
    def held(self) -> Mapping[str, Held]:
        """Return the resources that this consumer holds, as Group.held does."""
        return self._group.held

    @property
    def consumer_id(self) -> str:
        """Return the id that the server gave to this consumer, as Group.consumer_id does."""
        return self._group.consumer_id

    @property
    def generation(self) -> int:
        """Return how often the server had assigned the group's resources again, as of its last answer."""
        return self._group.generation

    async def wait(self) -> None:
        """Wait until the consumer has ended. Raise the error that ended it, if any."""
        while not self._group.wait(0):
            self._ready.clear()
            if not self._group.wait(0):
                await self._ready.wait()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        try:
            await asyncio.to_thread(self._group.join)
        except asyncio.CancelledError:  # the thread continues to join, so the consumer must be closed
            self._group.end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
        if failure is None:
            self._group.wait(0)

    async def close(self) -> None:
        """Close the consumer, as Group.close does. Wait for messages of other tasks; in a callback, return at once."""
        if self._callback is not None and asyncio.current_task() is self._callback:
            self._group.end()
            return
        self._group.receivers.let_go(asyncio.current_task())
        await asyncio.to_thread(self._group.close)

    def end(self) -> None:
        """Begin to end the consumer, as Group.end does."""
        self._group.end()

    async def __aiter__(self) -> AsyncIterator[AsyncMessage]:
        """Yield messages of all resources that are held, also later ones, until the consumer ends.

        A message is done when the next one is requested. Only one message of a resource is yielded at a time.
        """
        receivers = self._group.receivers
        receivers.start()
        while not receivers.is_closing:
            self._ready.clear()
            batch = receivers.take(asyncio.current_task())
            if batch is None:
                if not receivers.is_closing:
                    await self._ready.wait()
                continue
            try:
                if batch.held.is_held():
                    yield AsyncMessage(batch.held, batch.messages.popleft())
            finally:
                if batch.messages and not batch.held.is_held():  # put_down makes a call, which blocks
                    await asyncio.to_thread(receivers.put_down, batch)
                else:
                    receivers.put_down(batch)
        self._group.wait(0)

    def _wake(self) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._ready.set)

    def _in_loop(self, callback: AsyncCallback | None) -> Callback | None:
        if callback is None:
            return None
        wanted = callback

        def call(held: Held) -> None:
            assert self._loop is not None
            asyncio.run_coroutine_threadsafe(self._run(wanted, held), self._loop).result()

        return call

    async def _run(self, callback: AsyncCallback, held: Held) -> None:
        self._callback = asyncio.current_task()
        try:
            await callback(held)
        finally:
            self._callback = None
