"""The dialler: it dials each known address until the member there is linked, with growing random pauses."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable

PAUSE_MIN_S = 0.05
PAUSE_MAX_S = 1.0
STEADY_S = 1.0  # after a link that lasted longer than this, the pauses start again at PAUSE_MIN_S
OWN_S = 60.0  # the pause before dialling an address again that led to this process itself


class Target:
    """An address to dial.

    member_id: the member that it last led to, empty if none. is_own: the last attempt reached this process itself.
    failure: why the last attempt made no link, empty if it made one.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.member_id = ""
        self.is_own = False
        self.failure = ""
        self.wanted = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class Dialler:
    """A task per target that dials it while its member is not linked.

    dial: makes one attempt, and stores in the target which member answered, or why none did.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        dial: Callable[[Target], Awaitable[None]],
        is_linked: Callable[[str], bool],
    ) -> None:
        self._loop = loop
        self._dial = dial
        self._is_linked = is_linked
        self._targets: dict[str, Target] = {}

    def follow(self, addresses: Iterable[str]) -> None:
        """Dial these addresses from now on, and stop dialling all others."""
        wanted = set(addresses)
        for address in self._targets.keys() - wanted:
            self._forget(self._targets.pop(address))
        for address in wanted - self._targets.keys():
            self._targets[address] = target = Target(address)
            target.wanted.set()
            target.task = self._loop.create_task(self._keep(target))

    def linked(self, member_id: str, address: str) -> None:
        """Record that this member is linked and has this address, and stop dialling it."""
        for target in self._targets.values():
            if target.address == address:
                target.member_id = member_id
            if target.member_id == member_id:
                target.wanted.clear()
                target.failure = ""

    def lost(self, member_id: str) -> None:
        """Dial a member again after its link ended."""
        for target in self._targets.values():
            if target.member_id == member_id:
                target.wanted.set()

    def failures(self) -> dict[str, str]:
        """Return, by address, why the last attempt made no link."""
        return {
            target.address: target.failure
            for target in self._targets.values()
            if target.failure and target.wanted.is_set()
        }

    async def stop(self) -> None:
        tasks = [target.task for target in self._targets.values() if target.task]
        for target in self._targets.values():
            self._forget(target)
        self._targets.clear()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, target: Target) -> None:
        if target.task is not None:
            target.task.cancel()

    async def _keep(self, target: Target) -> None:
        failures = 0
        while True:
            await target.wanted.wait()
            await self._dial(target)
            if self._is_linked(target.member_id):
                linked_s = self._loop.time()
                target.wanted.clear()
                await target.wanted.wait()
                if self._loop.time() - linked_s > STEADY_S:
                    failures = 0
            pause_s = OWN_S if target.is_own else min(PAUSE_MAX_S, PAUSE_MIN_S * 2 ** min(failures, 10))
            failures += 1
            target.is_own = False
            await asyncio.sleep(pause_s * random.uniform(0.5, 1))
