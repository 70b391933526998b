"""Wraps an SQS client for asyncio so that calls wait out a server or a whole cluster that is gone for minutes.

What it promises is what ``wrap`` promises for a boto3 client; how a call waits is all that differs (patience.py). Two
kinds of clients are wrapped: those whose operations are coroutines, which are aiobotocore's and aioboto3's, and plain
boto3 clients, whose calls then block threads instead of the loop. aiobotocore is the better one: a call costs no
thread, and one that is cancelled ends at the server as well. But it is always for one older botocore, so that a program
whose boto3 is newer cannot install it; threads are for such a program.
"""

from asyncio import sleep, to_thread, wrap_future
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial, wraps
from inspect import isawaitable
from typing import Any, TypeVar, cast, overload

from elasticq.client.endpoints import Endpoints
from elasticq.client.patience import Call, Patience, check_length

Client = TypeVar("Client", bound=Any)


@overload
def wrap_async(
    client: Client,
    *,
    endpoints: Iterable[str] = (),
    admin: Iterable[str] = (),
    max_wait_s: float = 600,
    verify: bool | str = True,
) -> Client: ...


@overload
def wrap_async(
    client: Any,
    *,
    endpoints: Iterable[str] = (),
    admin: Iterable[str] = (),
    max_wait_s: float = 600,
    verify: bool | str = True,
    threads: int,
) -> Any: ...


def wrap_async(
    client: Any,
    *,
    endpoints: Iterable[str] = (),
    admin: Iterable[str] = (),
    max_wait_s: float = 600,
    verify: bool | str = True,
    threads: int = 0,
) -> Any:
    """Return an object with the methods of ``client``, as coroutines that wait for up to ``max_wait_s`` for an answer.

    threads: 0 for a client of aiobotocore or aioboto3; for one of boto3 how many calls are under way at a time, each in
    a thread, and the others wait for one; endpoints, admin, verify: as of ``wrap``.

    To cancel the task that awaits a call ends its tries. In a thread the try that is under way goes on to its end; a
    later send to its message group waits for that.
    """
    known = Endpoints(client.meta.endpoint_url, endpoints, admin, verify)
    return _AsyncPatient(client, Patience(client, known, max_wait_s), threads)


class _AsyncPatient:
    def __init__(self, client: Any, patience: Patience, threads: int) -> None:
        self._client = client
        self._patience = patience
        self._pool = ThreadPoolExecutor(threads, "elasticq-client") if threads else None
        if threads:  # aiohttp compares lengths itself
            client.meta.events.register("after-call.sqs", check_length, unique_id="elasticq-check-length")

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name not in self._patience.operations:
            return found

        @wraps(found)
        async def call(**members: Any) -> Any:
            made, lines = Call(self._patience, name, members), self._patience.lines
            try:
                if made.place is not None:
                    lines.join(made.place)
                    if not made.place.turn.done():
                        await wrap_future(made.place.turn)
                    made.place.turn.result()
                return await self._until_answered(found, made)
            finally:
                if made.running is None:
                    made.leave(lines)
                else:  # done, but where this task was cancelled
                    made.running.add_done_callback(lambda _: made.leave(lines))

        return call

    def get_paginator(self, operation_name: str) -> Any:
        """The client's paginator, which takes pages by what it finds in its ``self``: the patient methods.

        Raises NotImplementedError for a client of boto3, whose paginators cannot await.
        """
        if self._pool is not None:
            raise NotImplementedError(
                "A paginator of boto3 cannot await: pass each answer's NextToken to the next call."
            )
        return cast(Any, type(self._client)).get_paginator(self, operation_name)

    async def _until_answered(self, method: Callable[..., Any], call: Call) -> Any:
        endpoints = self._patience.endpoints
        if endpoints.is_new:
            await to_thread(endpoints.learn)
        while True:
            try:
                with call.attempt():
                    answer = await self._try(method, call)
            except Exception as failure:
                pause_s = call.failed(failure)
            else:
                pause_s = call.answered(answer)
            if pause_s is None:
                return call.answer
            if endpoints.is_due:
                await to_thread(endpoints.learn)
            endpoints.leave(call.endpoint)
            await sleep(pause_s)

    async def _try(self, method: Callable[..., Any], call: Call) -> Any:
        if self._pool is not None:
            call.running = self._pool.submit(copy_context().run, partial(method, **call.members))
            return await wrap_future(call.running)
        answer = method(**call.members)
        if not isawaitable(answer):
            raise TypeError("The calls of this client block: tell wrap_async how many threads may make them.")
        return await answer
