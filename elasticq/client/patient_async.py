"""A wrapper for SQS clients in asyncio: their calls wait while a server or a whole cluster is away for minutes.

It promises the same as ``wrap`` for a boto3 client. Only the waiting differs (patience.py). It wraps two kinds of
clients: those of aiobotocore and aioboto3, whose operations are coroutines, and boto3 clients, whose calls then block
threads and not the loop.

aiobotocore is better: a call needs no thread, and a cancelled call ends at the server as well. But each version needs
one older botocore, so a program with a newer boto3 cannot install it. Such a program uses threads.
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

    threads: 0 for a client of aiobotocore or aioboto3. For a boto3 client, the number of threads: each makes one call
    at a time, and further calls wait for a thread. endpoints, admin, verify: as for ``wrap``.

    If the task that awaits a call is cancelled, the call is not tried again. A try in a thread continues to its end,
    and a later send to its message group waits for that.
    """
    known = Endpoints(client.meta.endpoint_url, endpoints, admin, verify)
    return _AsyncPatient(client, Patience(client, known, max_wait_s), threads)


class _AsyncPatient:
    def __init__(self, client: Any, patience: Patience, threads: int) -> None:
        self._client = client
        self._patience = patience
        self._pool = ThreadPoolExecutor(threads, "elasticq-client") if threads else None
        if threads:  # aiobotocore needs no check, as aiohttp compares the lengths
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
                else:  # after a cancelled task, the try may still run
                    made.running.add_done_callback(lambda _: made.leave(lines))

        return call

    def get_paginator(self, operation_name: str) -> Any:
        """Return the client's paginator. It fetches pages with the methods of its ``self``: the patient ones.

        Raise NotImplementedError for a boto3 client, whose paginators cannot await.
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
            raise TypeError("The calls of this client block: set threads of wrap_async to how many threads make them.")
        return await answer
