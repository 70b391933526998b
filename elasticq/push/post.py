"""The HTTP client for requests to subscribers, with bounded time and memory."""

import socket
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver
from msgspec import Struct
from yarl import URL

from elasticq.push.addresses import AddressRefused, Guard

AGENT: Final = "Amazon Simple Notification Service Agent"
ANSWER_BYTES_MAX: Final = 65_536  # read from each response; after a shorter response the connection can be reused
_TOO_MANY_REQUESTS: Final = 429


class Outcome(Struct, frozen=True):
    """The outcome of one attempt. is_final: a retry would not help. reason: for the log, empty after success."""

    is_done: bool
    is_final: bool = False
    reason: str = ""


DONE: Final = Outcome(is_done=True)


class GuardedResolver(AbstractResolver):
    """A resolver that resolves names as aiohttp does and refuses names with a forbidden address."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._resolver = DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a name. Raise AddressRefused if any one of them is refused.

        One refused address is enough, because a harmless name would not have it.
        """
        found = await self._resolver.resolve(host, port, family)
        for each in found:
            self._guard.check(each["host"], port)
        return found

    async def close(self) -> None:
        await self._resolver.close()


class Poster:
    """A client that posts notifications.

    connections_max: connections open at the same time. timeout_s: for one post, from name resolution to response.
    """

    def __init__(self, guard: Guard, *, connections_max: int, timeout_s: float) -> None:
        self._guard = guard
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=GuardedResolver(guard),
                use_dns_cache=False,  # a name may change its addresses, so they are checked for each post
                limit=connections_max,
            ),
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={"User-Agent": AGENT, "Accept-Encoding": "gzip,deflate", "Connection": "Keep-Alive"},
            skip_auto_headers=["Accept"],  # AWS sends none
        )

    async def post(self, url: str, headers: dict[str, str], body: bytes) -> Outcome:
        """Post once and return the outcome. Do not follow redirects: a redirect is a permanent failure."""
        try:
            target = URL(url)
            if target.scheme not in ("http", "https") or not target.host:
                return Outcome(is_done=False, is_final=True, reason="the endpoint is not an HTTP or HTTPS URL")
            self._check_literal(target)
            async with self._session.post(target, data=body, headers=headers, allow_redirects=False) as answer:
                await answer.content.read(ANSWER_BYTES_MAX)
                return _outcome_of(answer.status)
        except AddressRefused as refused:
            return Outcome(is_done=False, is_final=True, reason=str(refused))
        except aiohttp.ClientConnectorError as error:  # aiohttp wraps the resolver's AddressRefused in this error
            cause = error.os_error
            return Outcome(is_done=False, is_final=isinstance(cause, AddressRefused), reason=str(cause))
        except ValueError:
            return Outcome(is_done=False, is_final=True, reason="the endpoint is not an HTTP or HTTPS URL")
        except (aiohttp.ClientError, OSError) as error:
            return Outcome(is_done=False, reason=f"{type(error).__name__}: {error}".rstrip(": "))

    def _check_literal(self, target: URL) -> None:
        """Raise AddressRefused if the host of the URL is an IP address that is refused. No resolver sees such a host.

        Check bare numbers such as 2852039166, too: aiohttp and the operating system accept them as addresses.
        """
        host = target.host or ""
        if ":" in host or host.replace(".", "").isdigit():
            self._guard.check(host, target.port or 0)

    async def close(self) -> None:
        await self._session.close()


def _outcome_of(status: int) -> Outcome:
    """Return the outcome for an HTTP status.

    Source: SNS developer guide. 5xx and 429 are retried. Every other status except 2xx is a permanent failure.
    """
    if 200 <= status < 300:
        return DONE
    is_final = status < 500 and status != _TOO_MANY_REQUESTS
    return Outcome(is_done=False, is_final=is_final, reason=f"the endpoint answered {status}")
