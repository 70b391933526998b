"""What consumer groups cost the master's CPU, without sockets, disk or other members.

One group of 1,000 consumers and 10,000 queues: a join (decided, encoded, applied), the answers to those whose
resources it takes, a leave, and a heartbeat. Run: python scripts/bench_groups.py [CONSUMERS QUEUES]
"""

import statistics
import sys
import time
from collections.abc import Callable

from elasticq.engine.apply import apply, apply_all
from elasticq.engine.consumer_groups import sweep as group_sweep
from elasticq.engine.context import ExecutionContext
from elasticq.engine.execute import execute
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.consumer_group_rows import ConsumerSet
from elasticq.model.commands import Call, Command
from elasticq.model.group_commands import (
    ElasticqHeartbeat,
    ElasticqJoinGroup,
    ElasticqLeaveGroup,
    ElasticqSetGroup,
)
from elasticq.model.group_results import GroupViewResult

ACCOUNT, ENDPOINT = "000000000000", "http://localhost:9324"


class Master:
    """A state and the clock of who decides for it; ``spent_s``: the CPU time of the last command."""

    def __init__(self) -> None:
        self.state = State()
        self.context = ExecutionContext(1_700_000_000_000, 1, "us-east-1", sixty_second_rules=False)
        self.spent_s = 0.0
        for mutation in (m.ClusterFounded("c", b"k" * 32, 1), m.TookOver(1, "a", 0, 0)):
            apply(self.state, mutation)

    def do(self, command: Command) -> object:
        began_s = time.process_time()
        result, mutations = execute(self.state, Call(command, "x", ACCOUNT, ENDPOINT), self.context)
        if mutations:
            m.encode(mutations)
            apply_all(self.state, mutations, [])
        self.spent_s = time.process_time() - began_s
        return result

    def work(self) -> None:
        while (step := group_sweep.step(self.state, self.context.now_ms)).mutations:
            apply_all(self.state, step.mutations, [])

    def give_back(self) -> None:
        for number, consumer in list(self.state.groups.consumers.items()):
            if consumer.revoking:
                self.do(ElasticqHeartbeat("g", f"{number:016x}", list(consumer.revoking)))


def timed(count: int, what: Callable[[], float]) -> str:
    spent_ms = sorted(what() * 1_000 for _ in range(count))
    return f"median {statistics.median(spent_ms):.3f} ms, worst {spent_ms[-1]:.3f} ms of {count}"


def main() -> None:
    consumers, queues = (int(text) for text in sys.argv[1:3]) if len(sys.argv) > 2 else (1_000, 10_000)
    master = Master()
    master.do(ElasticqSetGroup("g", queue_name_prefix="q-", session_timeout_ms=3_600_000))
    for number in range(queues):
        created = m.QueueCreated(1 << 40 | number + 1, ACCOUNT, f"q-{number:05}", {}, {}, master.context.now_ms)
        apply(master.state, created)
    group, now_ms = next(iter(master.state.groups.by_number)), master.context.now_ms
    for number in range(1, consumers - 19):
        apply(master.state, ConsumerSet(number, group, f"c{number}", 1, now_ms, now_ms + 3_600_000, 0))
    master.work()
    ids = [f"{number:016x}" for number in master.state.groups.consumers]
    print(f"{len(ids)} consumers, {queues} queues")

    def join() -> float:
        view = master.do(ElasticqJoinGroup("g", "late"))
        spent_s = master.spent_s
        assert isinstance(view, GroupViewResult)
        ids.append(view.consumer_id)
        moves = sum(len(each.revoking) for each in master.state.groups.consumers.values())
        assert moves <= -(-queues // len(ids)), moves
        master.give_back()
        return spent_s

    def beat() -> float:
        began_s = time.process_time()
        for consumer_id in ids[:500]:
            master.do(ElasticqHeartbeat("g", consumer_id, known_version=1, wait_time_seconds=1))
        return (time.process_time() - began_s) / len(ids[:500])

    def leave() -> float:
        master.do(ElasticqLeaveGroup("g", ids.pop()))
        return master.spent_s

    print(f"a join        {timed(20, join)}")
    print(f"a heartbeat   {timed(9, beat)}")
    print(f"a leave       {timed(20, leave)}")


if __name__ == "__main__":
    main()
