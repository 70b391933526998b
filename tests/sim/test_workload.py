"""What is outstanding follows from what clients say before and after each operation."""

import pytest

from elasticq.checks.history import Receive, Send, SentMessage
from elasticq.sim.faults import scenario
from elasticq.sim.workload import Workload
from elasticq.sim.world import World


def _workload(*features: str) -> Workload:
    made = scenario(1, 3, kinds=("cut",), background=(), count=1, features=features, mode="majority", volatile=())
    return World(made).workload


def _sent(workload: Workload, message: SentMessage, outcome: str = "ok") -> None:
    queue = workload.sources[-1]
    workload.naming(queue, [message])
    event = Send(client="p", queue=queue.name, invoke_us=0, messages=[message])
    event.outcome = outcome  # type: ignore[assignment]
    workload.finished(event)


def test_message_is_outstanding_from_its_acknowledgement_until_somebody_deletes_it() -> None:
    workload = _workload()
    _sent(workload, SentMessage("refused"), "fail")
    _sent(workload, SentMessage("of unknown outcome"), "unknown")
    assert not workload.outstanding
    _sent(workload, SentMessage("one"))
    assert workload.outstanding == {("one",)}
    workload.deleting("one")
    assert not workload.outstanding


def test_message_that_was_deleted_before_its_send_was_answered_is_not_outstanding() -> None:
    workload = _workload()
    message = SentMessage("quick")
    workload.naming(workload.sources[0], [message])
    workload.deleting("quick")
    _sent(workload, message)
    assert not workload.outstanding


def test_sends_with_one_deduplication_id_are_one_message() -> None:
    workload = _workload("all_fifo")
    _sent(workload, SentMessage("first", group="red", deduplication_id="id"))
    _sent(workload, SentMessage("second", group="red", deduplication_id="id"))
    assert len(workload.outstanding) == 1
    workload.deleting("second")
    assert not workload.outstanding


def test_first_write_after_the_faults_is_noted_once_and_receives_are_none() -> None:
    workload = _workload()
    _sent(workload, SentMessage("before"))
    assert workload.first_write_after_heal_us is None
    workload.cluster.is_healed = True
    workload.scheduler.run_until(90)
    received = Receive(client="c", queue="orders", invoke_us=0, visibility_ms=1_000)
    received.outcome = "ok"
    workload.finished(received)
    assert workload.first_write_after_heal_us is None
    _sent(workload, SentMessage("after"))
    assert workload.first_write_after_heal_us == 90


def test_drain_begins_now() -> None:
    workload = _workload()
    workload.scheduler.schedule(70, workload.drain)
    workload.scheduler.run_until(70)
    assert (workload.is_draining, workload.drain_us, workload.last_message_us) == (True, 70, 70)


@pytest.mark.parametrize("seed", [1, 2])
def test_drain_leaves_no_partition_to_chance(seed: int) -> None:
    """Asking for random partitions, too few receives once left a partition out, and what was in it was called lost."""
    features = ("all_fifo", "partitions")
    world = World(scenario(seed, 3, kinds=("cut",), background=(), count=1, features=features, duration_ms=16_000))
    assert world.run().findings == []
    workload = world.workload
    queue = workload.sources[0]
    asked = {
        event.partition
        for event in workload.history
        if isinstance(event, Receive)
        and event.queue == queue.name
        and event.client.startswith("consumer")
        and event.invoke_us > workload.drain_us
    }
    assert asked == (set(range(queue.partitions)) if workload.drains_by_partition else {None})
