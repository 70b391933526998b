"""Memory goes back to the system: large blocks at once, and what is free inside the heap when the process is quiet."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from elasticq.server.allocator import LOOK_S, QUIET_CPU_S, WORKED_CPU_S, Trimmer

PROGRAM = """
import ctypes
from elasticq.server.allocator import return_large_blocks
if {told}:
    return_large_blocks()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
libc.free(libc.malloc(20 * 2**20))  # glibc learns from it to keep blocks of this size
blocks = [libc.malloc(10 * 2**20) for _ in range(3)]
maps = open("/proc/self/maps").read()
heap = [line.split()[0].split("-") for line in maps.splitlines() if "[heap]" in line]
print(any(int(low, 16) <= block < int(high, 16) for low, high in heap for block in blocks))
"""

BACKLOG = """
import ctypes, os
from elasticq.server.allocator import release_free_pages, return_large_blocks
return_large_blocks()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20
before = resident()
blocks = [libc.malloc(20_000) for _ in range(5_000)]
for block in blocks:
    ctypes.memset(block, 1, 20_000)
last = blocks.pop()
for block in blocks:
    libc.free(block)
kept = resident() - before
release_free_pages()
print(kept, resident() - before)
"""


def printed(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_large_blocks_are_the_systems_also_after_one_was_freed() -> None:
    assert printed(PROGRAM.format(told=False)) == "True", "what it is for"
    assert printed(PROGRAM.format(told=True)) == "False"


def test_a_small_block_that_lives_keeps_no_backlog_that_is_gone() -> None:
    kept_mb, left_mb = map(int, printed(BACKLOG).split())
    assert kept_mb > 80, "what it is for"
    assert left_mb < 20


class Clockwork:
    """A loop whose timers the test fires, and the CPU time of a process."""

    def __init__(self) -> None:
        self.cpu_s = 100.0
        self.trims = 0
        self._due: list[Callable[[], None]] = []

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> None:
        assert delay_s == LOOK_S
        self._due.append(callback)

    def run_in_executor(self, executor: None, function: Callable[[], None]) -> None:
        function()

    def trim(self) -> None:
        self.trims += 1

    def look(self, used_s: float) -> int:
        """Use so much CPU time until the next look; how often memory was given back so far."""
        self.cpu_s += used_s
        self._due.pop()()
        return self.trims


@pytest.fixture
def clockwork() -> Clockwork:
    made = Clockwork()
    Trimmer(made, made.trim, lambda: made.cpu_s).start()  # type: ignore[arg-type]
    return made


def test_memory_is_given_back_once_when_work_is_over(clockwork: Clockwork) -> None:
    assert [clockwork.look(used_s) for used_s in (4.0, 5.0, QUIET_CPU_S)] == [0, 0, 0], "it works"
    assert [clockwork.look(used_s) for used_s in (0.01, 0.01, 0.0)] == [1, 1, 1]
    assert [clockwork.look(used_s) for used_s in (3.0, 0.0, 0.0)] == [1, 2, 2]
    assert [clockwork.look(used_s) for used_s in (WORKED_CPU_S + 0.1, 0.0)] == [2, 3], "a busy machine"


def test_a_process_that_does_little_gives_back_seldom(clockwork: Clockwork) -> None:
    """Each time costs a few milliseconds: it is not done for a health check a second."""
    looks = [clockwork.look(0.01) for _ in range(100)]
    assert looks[-1] == pytest.approx(100 * 0.01 / WORKED_CPU_S, abs=1)
