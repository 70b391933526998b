"""What a target of the fuzz is, and the bounds within which each of its inputs is judged."""

import resource
from collections.abc import Callable, Iterable
from time import process_time
from typing import Final, NamedTuple

CPU_S_MAX: Final = 0.5
"""Of one input. What a stranger sends holds all others up for that long."""
MEMORY_KB_MAX: Final = 200_000
"""By how much one input may make the process larger than it ever was."""


class Target(NamedTuple):
    """judge: raises whatever it raises if an input is handled wrongly, and returns for all others.

    seeds: inputs that mean something, from which a fuzz begins; tokens: words that its parser knows; bytes_max: of an
    input.
    """

    judge: Callable[[bytes], None]
    seeds: Iterable[bytes] = ()
    tokens: Iterable[str] = ()
    bytes_max: int = 4_096


class TooExpensive(AssertionError):
    """An input that is handled rightly, and at too high a price."""


def check_told(refusal: Exception) -> None:
    """A refusal says why."""
    assert str(refusal), "a refusal that says nothing"


def judge(target: Target, data: bytes) -> None:
    """Judge one input within the bounds. What is slow is tried again, as the machine may have been busy."""
    memory_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = _timed(target, data)
    if seconds > CPU_S_MAX:
        seconds = min(seconds, _timed(target, data), _timed(target, data))
        if seconds > CPU_S_MAX:
            raise TooExpensive(f"an input takes more than {CPU_S_MAX} s of CPU")
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_kb > MEMORY_KB_MAX:
        raise TooExpensive(f"an input takes more than {MEMORY_KB_MAX} KB of memory")


def _timed(target: Target, data: bytes) -> float:
    began_s = process_time()
    target.judge(data)
    return process_time() - began_s
