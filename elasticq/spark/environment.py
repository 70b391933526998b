"""What a reader needs from outside: clients, clock, log files, threads. The tests replace it by a model.

Spark sends it to every task. Therefore functions import what a task of mode=lease does not use.
"""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from elasticq.spark import clients
from elasticq.spark.offsets import Offset
from elasticq.spark.options import Connection

if TYPE_CHECKING:
    from elasticq.spark.heartbeat import Heartbeat
    from elasticq.spark.stores import Store

CALLS_AT_ONCE: Final = 8
T = TypeVar("T")


def random_part() -> str:
    """Return 12 random hex digits, for the name of a stream."""
    return os.urandom(6).hex()


def in_threads(call: Callable[[T], Any], items: Iterable[T]) -> list[Any]:
    """Call ``call`` for each item, eight at a time, and return the results in order. Raise the first error."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
        return list(pool.map(call, items))


def open_store(location: str) -> "Store":
    """Return the store at a path or URL. Raise OptionError as ``stores.open_store`` does."""
    from elasticq.spark import stores

    return stores.open_store(location)


def heartbeat(interval_s: float, renew: Callable[[Offset], None]) -> "Heartbeat":
    """Return a heartbeat that calls ``renew`` every ``interval_s`` seconds while it covers a batch."""
    from elasticq.spark.heartbeat import Heartbeat

    return Heartbeat(interval_s, renew)


@dataclass(frozen=True)
class Environment:
    """The functions that a reader calls; by default the real ones. All can be pickled for executors."""

    connect: Callable[[Connection], clients.Client] = clients.connect
    on_elasticq: Callable[[Connection], bool] = clients.on_elasticq
    now_s: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    open_store: "Callable[[str], Store]" = open_store
    random_part: Callable[[], str] = random_part
    for_each: Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]] = in_threads
    heartbeat: "Callable[[float, Callable[[Offset], None]], Heartbeat]" = heartbeat
