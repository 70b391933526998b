"""Replays a log from stdin and prints the rows' digest; the process's clocks say what argv says.

Run by test_apply in processes with different hash seeds: what ``apply`` reads
besides its arguments would show.
"""

import sys
import time

import msgspec

from elasticq.engine.apply import apply
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from elasticq.replication.records import Entry


def main() -> None:
    clock_s = float(sys.argv[1])
    for name in ("time", "monotonic", "perf_counter"):
        setattr(time, name, lambda: clock_s)
    for name in ("time_ns", "monotonic_ns", "perf_counter_ns"):
        setattr(time, name, lambda: int(clock_s) * 10**9)
    state = State()
    for entry in msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[Entry]):
        for mutation in m.decode(entry.payload):
            apply(state, mutation)
    print(state_digest(state).hex())


if __name__ == "__main__":
    main()
