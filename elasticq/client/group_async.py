"""A consumer of a group for asyncio: a Group whose threads do the waiting, and whose callbacks are coroutines.

The calls block threads and not the loop, as those of ``wrap_async`` for a boto3 client do. What a consumer may do is
decided by a clock and by answers that come in those threads: a loop that stands still delays callbacks, and
``is_held`` of what is held says no in time all the same.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Self

from elasticq.client.group import Callback, Group
from elasticq.client.group_held import AsyncMessage, Held

AsyncCallback = Callable[[Held], Coroutine[Any, Any, object]]


class AsyncGroup:
    """A consumer of one group, from entering the context to leaving it: a Group for one event loop.

    on_assigned and on_revoked are coroutine functions, and are run in the loop, one at a time. The calls of
    ``Held.client`` block: ``asyncio.to_thread`` makes them.
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
        """client and options: as of Group."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = asyncio.Event()
        self._callback: asyncio.Task[Any] | None = None  # the callback that runs now
        self._group = Group(
            client, name, on_assigned=self._in_loop(on_assigned), on_revoked=self._in_loop(on_revoked), **options
        )
        self._group.receivers.on_ready = self._wake

    @property
    def held(self) -> Mapping[str, Held]:
        """As Group.held."""
        return self._group.held

    @property
    def consumer_id(self) -> str:
        """As Group.consumer_id."""
        return self._group.consumer_id

    @property
    def generation(self) -> int:
        """As Group.generation."""
        return self._group.generation

    async def wait(self) -> None:
        """Wait until the consumer has ended. Raises what ended it."""
        while not self._group.wait(0):
            self._ready.clear()
            if not self._group.wait(0):
                await self._ready.wait()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        try:
            await asyncio.to_thread(self._group.join)
        except asyncio.CancelledError:  # the thread goes on, and nobody would close what it joins
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
        """As Group.close: waits for what other tasks have in hand, and in a callback returns at once."""
        if self._callback is not None and asyncio.current_task() is self._callback:
            self._group.end()
            return
        self._group.receivers.let_go(asyncio.current_task())
        await asyncio.to_thread(self._group.close)

    def end(self) -> None:
        """As Group.end."""
        self._group.end()

    async def __aiter__(self) -> AsyncIterator[AsyncMessage]:
        """Receive from all that is held, also from what comes later, until the consumer ends.

        A message is done when the next one is asked for. Of one resource one message at a time is given out.
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
                if batch.messages and not batch.held.is_held():  # these go back by a call, which blocks
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
