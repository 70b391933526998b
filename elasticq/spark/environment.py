"""What a reader needs from outside: clients, clock, log files, threads. The tests put a model in its place."""

import secrets
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from elasticq.spark import clients, stores
from elasticq.spark.heartbeat import Heartbeat
from elasticq.spark.offsets import Offset
from elasticq.spark.options import Connection

CALLS_AT_ONCE: Final = 8
T = TypeVar("T")


def random_part() -> str:
    """Returns a random part for the name of a stream."""
    return secrets.token_hex(6)


def in_threads(call: Callable[[T], Any], items: Iterable[T]) -> list[Any]:
    """Returns what the call returns for each item, in threads; raises the first error."""
    with ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
        return list(pool.map(call, items))


@dataclass(frozen=True)
class Environment:
    """The real environment by default. It is pickled for executors, so it holds only functions of modules."""

    connect: Callable[[Connection], clients.Client] = clients.connect
    on_elasticq: Callable[[Connection], bool] = clients.on_elasticq
    now_s: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    open_store: Callable[[str], stores.Store] = stores.open_store
    random_part: Callable[[], str] = random_part
    for_each: Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]] = in_threads
    heartbeat: Callable[[float, Callable[[Offset], None]], Heartbeat] = Heartbeat
