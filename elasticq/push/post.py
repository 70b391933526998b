"""One request to a subscriber, in bounded time and memory."""

import socket
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver
from msgspec import Struct
from yarl import URL

from elasticq.push.addresses import AddressRefused, Guard

AGENT: Final = "Amazon Simple Notification Service Agent"
ANSWER_BYTES_MAX: Final = 65_536  # that are read of an answer, so that its connection may be used again
_TOO_MANY_REQUESTS: Final = 429


class Outcome(Struct, frozen=True):
    """How an attempt ended. is_final: a retry would not help; reason: for the log, empty for success."""

    is_done: bool
    is_final: bool = False
    reason: str = ""


DONE: Final = Outcome(is_done=True)


class GuardedResolver(AbstractResolver):
    """Resolves names as aiohttp does, and gives back only addresses that may be connected to."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._resolver = DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Raises AddressRefused if one of the addresses is refused, as a name with such an address is a trap."""
        found = await self._resolver.resolve(host, port, family)
        for each in found:
            self._guard.check(each["host"], port)
        return found

    async def close(self) -> None:
        await self._resolver.close()


class Poster:
    """Posts notifications. connections_max: open at once; timeout_s: from the resolving of the name to the answer."""

    def __init__(self, guard: Guard, *, connections_max: int, timeout_s: float) -> None:
        self._guard = guard
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=GuardedResolver(guard),
                use_dns_cache=False,  # what a name means is judged each time
                limit=connections_max,
            ),
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={"User-Agent": AGENT, "Accept-Encoding": "gzip,deflate"},
        )

    async def post(self, url: str, headers: dict[str, str], body: bytes) -> Outcome:
        """Post once; a redirect is an answer like any other that is not 2xx, and final."""
        try:
            target = URL(url)
            if target.scheme not in ("http", "https") or not target.host:
                return Outcome(is_done=False, is_final=True, reason="the endpoint is no URL of a web server")
            self._check_literal(target)
            async with self._session.post(target, data=body, headers=headers, allow_redirects=False) as answer:
                await answer.content.read(ANSWER_BYTES_MAX)
                return _judged(answer.status)
        except AddressRefused as refused:
            return Outcome(is_done=False, is_final=True, reason=str(refused))
        except aiohttp.ClientConnectorError as error:  # an address that was resolved and refused comes in this
            cause = error.os_error
            return Outcome(is_done=False, is_final=isinstance(cause, AddressRefused), reason=str(cause))
        except ValueError:
            return Outcome(is_done=False, is_final=True, reason="the endpoint is no URL of a web server")
        except (aiohttp.ClientError, OSError) as error:
            return Outcome(is_done=False, reason=f"{type(error).__name__}: {error}".rstrip(": "))

    def _check_literal(self, target: URL) -> None:
        """Judge an address that stands in the URL, which no resolver sees. Raises AddressRefused.

        aiohttp takes 2852039166 and the like for addresses, and the operating system would read them.
        """
        host = target.host or ""
        if ":" in host or host.replace(".", "").isdigit():
            self._guard.check(host, target.port or 0)

    async def close(self) -> None:
        await self._session.close()


def _judged(status: int) -> Outcome:
    """SNS developer guide: 5xx and 429 are retried; whatever else is no success is permanent."""
    if 200 <= status < 300:
        return DONE
    is_final = status < 500 and status != _TOO_MANY_REQUESTS
    return Outcome(is_done=False, is_final=is_final, reason=f"it answered {status}")
