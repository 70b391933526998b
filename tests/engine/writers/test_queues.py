"""Queues that come, go and come again, also when the log that says so is replayed."""

from elasticq.engine.views.digest import state_digest
from elasticq.model import commands as c
from tests.engine.desk import Desk, replayed
from tests.engine.driver import NAMES, Driver, digest


def test_log_that_deletes_and_recreates_a_name_may_be_replayed() -> None:
    """The replayed first queue must not take the name from the one that has it now."""
    desk = Desk()
    desk.create()
    desk.do(c.DeleteQueue(queue_url="jobs"))
    desk.create()
    desk.send()
    state = replayed([*desk.log, *desk.log])
    assert [queue.id for queue in state.names.values()] == [desk.queue().id]
    assert state_digest(state, desk.context.now_ms) == digest(desk)


def test_log_that_reclaims_a_deleted_queue_may_be_replayed() -> None:
    driver = Driver()
    driver.run([("send", 0, 1), ("drop", 0, 0), ("sweep", 0, 0), ("wait", 0, 6), ("sweep", 0, 0), ("create", 0, 0)])
    state = replayed([*driver.desk.log, *driver.desk.log])
    assert state_digest(state, driver.desk.context.now_ms) == digest(driver.desk)
    assert len(state.queues) == len(NAMES)
    assert not state.deleted_queues


def test_deleted_queue_holds_no_message_any_more() -> None:
    desk = Desk()
    desk.create()
    desk.send()
    queue = desk.queue()
    desk.do(c.DeleteQueue(queue_url="jobs"))
    assert (queue.count, queue.contents, desk.state.contents_bytes) == (0, {}, 0)
