"""Virtual time: order of actions, where a run ends, and chance that depends on the seed and the name only."""

from elasticq.sim.scheduler import LATENCY_US, Scheduler


def test_actions_run_in_the_order_of_their_moments_and_then_of_their_calls() -> None:
    scheduler, seen = Scheduler(1), list[tuple[str, int]]()
    for name, delay_us in (("late", 20), ("first", 10), ("second", 10)):
        scheduler.schedule(delay_us, lambda name=name: seen.append((name, scheduler.now_us)))  # type: ignore[misc]
    scheduler.run_until(100)
    assert seen == [("first", 10), ("second", 10), ("late", 20)]
    assert (scheduler.now_us, scheduler.events) == (100, 3)


def test_what_is_due_later_waits_for_the_next_run() -> None:
    scheduler, seen = Scheduler(1), list[int]()
    scheduler.schedule(50, lambda: seen.append(scheduler.now_us))
    scheduler.run_until(49)
    assert (seen, scheduler.now_us) == ([], 49)
    scheduler.run_until(50)
    assert seen == [50]


def test_what_is_due_at_a_moment_that_is_over_runs_now() -> None:
    scheduler, seen = Scheduler(1), list[int]()
    scheduler.run_until(30)
    for at_us in (40, 20):
        scheduler.schedule_at(at_us, lambda: seen.append(scheduler.now_us))
    scheduler.run_until(100)
    assert seen == [30, 40]


def test_action_may_schedule_another_of_the_same_moment() -> None:
    scheduler, seen = Scheduler(1), list[int]()
    scheduler.schedule(5, lambda: scheduler.schedule(0, lambda: seen.append(scheduler.now_us)))
    scheduler.run_until(5)
    assert seen == [5]


def test_nothing_runs_after_a_stop_and_time_stands_still() -> None:
    scheduler, seen = Scheduler(1), list[int]()
    scheduler.schedule(10, scheduler.stop)
    scheduler.schedule(10, lambda: seen.append(scheduler.now_us))
    scheduler.run_until(100)
    assert (seen, scheduler.now_us, scheduler.events) == ([], 10, 1)


def test_each_name_has_a_stream_of_its_own_that_other_streams_do_not_move() -> None:
    one, other = Scheduler(7), Scheduler(7)
    other.random("faults").random()
    assert one.random("links").random() == other.random("links").random() != one.random("disk").random()
    assert one.random("links").random() != Scheduler(8).random("links").random()


def test_latency_lies_within_its_bounds_and_arguments_arrive() -> None:
    scheduler, seen = Scheduler(3), list[tuple[int, str]]()
    for _ in range(50):
        scheduler.after_latency(lambda text: seen.append((scheduler.now_us, text)), "hello")
    scheduler.run_until(LATENCY_US[1])
    assert len(seen) == 50
    assert all(at_us >= LATENCY_US[0] and text == "hello" for at_us, text in seen)
