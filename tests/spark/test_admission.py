"""How much a batch may take."""

from elasticq.spark.admission import Admission, Tasks, divided, tasks_of
from elasticq.spark.offsets import Part
from elasticq.spark.options import Read
from elasticq.spark.queues import Backlog


class Time:
    now_s = 100.0


def admission(**options: object) -> tuple[Admission, Time]:
    time = Time()
    return Admission(Read(**options), lambda: time.now_s), time  # type: ignore[arg-type]


def waiting(visible: int, in_flight: int = 0) -> list[Backlog]:
    return [Backlog(visible, in_flight, 0)]


def test_a_batch_takes_what_waits_up_to_the_limit() -> None:
    planner, _ = admission()
    assert planner.amount(waiting(50), 20, False) == 20
    assert planner.amount(waiting(50), None, False) == 50
    assert planner.amount(waiting(0), 20, False) == 0


def test_few_messages_wait_for_more_but_not_for_ever() -> None:
    planner, time = admission(min_messages_per_trigger=10, max_trigger_delay=60.0)
    assert planner.amount(waiting(9), 20, False) == 0
    assert planner.amount(waiting(10), 20, False) == 10
    time.now_s += 60
    assert planner.amount(waiting(9), 20, False) == 9


def test_a_rate_holds_on_average() -> None:
    planner, time = admission(max_rate_per_second=10)
    assert planner.amount(waiting(500), None, False) == 10
    planner.admitted(10, waiting(500))
    time.now_s += 0.05
    assert planner.amount(waiting(490), None, False) == 0
    time.now_s += 5
    assert planner.amount(waiting(490), None, False) == 50
    time.now_s += 10_000
    assert planner.amount(waiting(10_000), None, False) == 600


def test_available_now_ends_while_others_send() -> None:
    planner, _ = admission(min_messages_per_trigger=100)
    planner.until(waiting(30))
    assert planner.amount(waiting(40), 20, False) == 20
    planner.admitted(20, waiting(40))
    assert planner.amount(waiting(45), 20, False) == 10
    planner.admitted(10, waiting(45))
    assert planner.amount(waiting(60), 20, False) == 0


def test_available_now_reads_locked_groups_to_their_end() -> None:
    planner, _ = admission()
    planner.until(waiting(30))
    assert planner.amount(waiting(30), None, True) == 30
    planner.admitted(30, waiting(30))
    assert planner.amount(waiting(20), None, True) == 20  # ten left the queue: the others were locked
    planner.admitted(20, waiting(20))
    assert planner.amount(waiting(0), None, True) == 0


def test_a_batch_takes_no_more_than_may_be_in_flight() -> None:
    planner, _ = admission()
    planner.until(waiting(150_000))
    assert planner.amount(waiting(150_000, 10), None, False) == 119_990
    planner.admitted(119_990, waiting(150_000))
    assert planner.amount(waiting(30_010), None, False) == 30_010
    assert divided([("a", Backlog(150_000, 10, 0))], 119_990, Tasks(2, 2), 20_000) == (Part("a", 6, 119_990),)


def test_a_batch_is_divided_by_what_waits() -> None:
    backlogs = [("a", Backlog(90, 0, 0)), ("b", Backlog(10, 0, 0)), ("c", Backlog(0, 5, 0))]
    assert divided(backlogs, 50, Tasks(4, 1), 1000) == (Part("a", 4, 45), Part("b", 1, 5))


def test_no_share_is_larger_than_its_bound() -> None:
    (part,) = divided([("a", Backlog(100_000, 0, 0))], 90_000, Tasks(2, 1), 20_000)
    assert part == Part("a", 5, 90_000)


def test_no_more_tasks_than_messages() -> None:
    assert divided([("a", Backlog(2, 0, 0))], 2, Tasks(4, 1), 1000) == (Part("a", 2, 2),)


def test_a_fifo_queue_has_one_task_unless_more_are_wanted() -> None:
    backlogs = [("a.fifo", Backlog(1_000, 0, 0))]
    assert divided(backlogs, 1_000, tasks_of(Read(), 1_000), 20_000) == (Part("a.fifo", 1, 1_000),)
    assert divided(backlogs, 1_000, tasks_of(Read(min_partitions=3), 1_000), 20_000) == (Part("a.fifo", 3, 1_000),)
    assert divided(backlogs, 30_000, tasks_of(Read(), 30_000), 20_000) == (Part("a.fifo", 2, 30_000),)


def test_more_messages_get_more_tasks() -> None:
    assert [tasks_of(Read(), messages).count for messages in (1, 5_000, 5_001, 100_000)] == [1, 1, 2, 20]
    assert tasks_of(Read(min_partitions=6), 100).count == 6
    assert tasks_of(Read(min_partitions=6), 100_000).count == 20
    assert tasks_of(Read(partitions=3), 100_000).count == 3
