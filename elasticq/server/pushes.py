"""The delivery of notifications to web servers, which starts with the first subscription of a web server.

Its modules are imported then, outside the loop's thread. A server without such subscriptions never imports them.
"""

import asyncio
from asyncio import AbstractEventLoop
from importlib import import_module
from typing import TYPE_CHECKING, Final

from elasticq.push.addresses import Guard
from elasticq.server.member import Member
from elasticq.server.settings import Settings

if TYPE_CHECKING:
    from elasticq.push.pusher import Counts, Pusher
    from elasticq.push.signer import Signer

LOOK_S: Final = 0.2


class Pushes:
    """The deliveries of one started member. It never posts to the listeners of its own cluster."""

    def __init__(self, settings: Settings, member: Member, loop: AbstractEventLoop) -> None:
        self._settings = settings
        self._runtime = member.runtime
        self._loop = loop
        self._guard = Guard(settings.push.refused_networks, listeners=member.listeners)
        self._pusher: Pusher | None = None
        self._starting: asyncio.Task[None] | None = None
        self._signatures = member.signatures

    def start(self) -> None:
        self._starting = self._loop.create_task(self._start())

    async def _start(self) -> None:
        if self._settings.push.sign_queues:
            while not self._runtime.node.state.mac_key:
                await asyncio.sleep(LOOK_S)
            await asyncio.to_thread(self._signer)  # else the first publish would wait for it
        while not self._runtime.node.state.topics.pushed:
            await asyncio.sleep(LOOK_S)
        await self._loop.run_in_executor(None, import_module, "elasticq.push.pusher")
        from elasticq.push.post import Poster
        from elasticq.push.pusher import Pusher

        push = self._settings.push
        self._pusher = Pusher(
            self._runtime,
            Poster(self._guard, connections_max=push.connections, timeout_s=push.timeout_s),
            self._loop,
            signer=self._signer,
            timeout_s=push.timeout_s,
            region=self._settings.node.region,
        )
        self._pusher.start()

    async def stop(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        if self._pusher is not None:
            await self._pusher.stop()

    @property
    def counts(self) -> "dict[tuple[str, str], Counts]":
        """Return the counts of notifications, by owner and name of their topic."""
        return {} if self._pusher is None else self._pusher.counts

    @property
    def by_subscription(self) -> "dict[int, Counts]":
        """Return the counts of notifications, by the number of their subscription."""
        return {} if self._pusher is None else self._pusher.by_subscription

    async def certificate(self) -> bytes | None:
        """Return the certificate of this cluster's signatures, None while this member does not know its cluster."""
        if not self._runtime.node.state.mac_key:
            return None
        signer = await asyncio.to_thread(self._signer)
        return signer.pem

    def _signer(self) -> "Signer":
        """Return the signer of the cluster. Call it outside the loop's thread."""
        return self._signatures.signer(self._runtime.node.state.mac_key)
