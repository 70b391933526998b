"""Large blocks go back to the system: what a flood of large messages took is not kept."""

import subprocess
import sys

PROGRAM = """
import ctypes
from elasticq.server.allocator import give_back_large_blocks
if {told}:
    give_back_large_blocks()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
libc.free(libc.malloc(20 * 2**20))  # glibc learns from it to keep blocks of this size
blocks = [libc.malloc(10 * 2**20) for _ in range(3)]
maps = open("/proc/self/maps").read()
heap = [line.split()[0].split("-") for line in maps.splitlines() if "[heap]" in line]
print(any(int(low, 16) <= block < int(high, 16) for low, high in heap for block in blocks))
"""


def in_heap(told: bool) -> bool:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(told=told)], capture_output=True, text=True, check=True)
    return done.stdout.strip() == "True"


def test_large_blocks_are_the_systems_also_after_one_was_freed() -> None:
    assert in_heap(told=False), "what it is for"
    assert not in_heap(told=True)
