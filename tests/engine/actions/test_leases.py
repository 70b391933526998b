"""Leases as their readers see them: exact replay, one deadline, a seal, one commit, and an end that lasts."""

import pytest

from elasticq.engine import sweep
from elasticq.engine.actions import leases
from elasticq.engine.actions import receive as receive_action
from elasticq.engine.actions.receive import returned
from elasticq.engine.apply import apply
from elasticq.engine.execute import seal_or_answer
from elasticq.engine.ordering import leases as lease_table
from elasticq.engine.redrive.mover import Mover
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.sweep import Sweeper
from elasticq.engine.views.digest import state_digest
from elasticq.engine.views.dump import dump
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import commands as c
from elasticq.model import limits
from elasticq.model.errors import (
    InvalidParameterValue,
    LeaseExpired,
    OverLimit,
    ReceiptHandleIsInvalid,
    SqsError,
)
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION, queue_arn
from elasticq.model.results import EmptyResult, ReceivedMessage, ReceiveMessageResult, Result
from tests.engine.desk import ENDPOINT, Desk

URL, FIFO_URL = "jobs", "jobs.fifo"
LEASE_S = 600
DAY_S = 86_400


def arn_of(name: str) -> str:
    return queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, name)


class LeaseDesk(Desk):
    """A standard and a FIFO queue, and the calls of a reader."""

    def __init__(self) -> None:
        super().__init__()
        self.create(URL)
        self.create(FIFO_URL, FifoQueue="true", ContentBasedDeduplication="true")

    def ask(self, attempt_id: str, limit: int = 10, url: str = URL, lease_s: int | None = LEASE_S) -> Result | SqsError:
        """As a receive that does not wait is answered in the end."""
        command = c.ReceiveMessage(url, None, ["All"], None, limit, lease_s, None, attempt_id)
        result = self.do(command)
        if isinstance(result, ReceiveMessageResult) and not result.messages and not result.leased:
            call = c.Call(command, "anonymous", DEFAULT_ACCOUNT, ENDPOINT)
            result, mutations = seal_or_answer(self.state, call, self.context)
            self.write(mutations)
        return result

    def take(self, attempt_id: str, limit: int = 10, url: str = URL, lease_s: int | None = LEASE_S) -> list[str]:
        """Bodies."""
        return [message.body for message in self.messages(attempt_id, limit, url, lease_s)]

    def messages(
        self, attempt_id: str, limit: int = 10, url: str = URL, lease_s: int | None = LEASE_S
    ) -> list[ReceivedMessage]:
        result = self.ask(attempt_id, limit, url, lease_s)
        assert isinstance(result, ReceiveMessageResult), result
        assert result.leased
        return result.messages

    def is_over(self, attempt_id: str, url: str = URL) -> bool:
        """LeaseExpired, raised or given back with what makes it last."""
        try:
            result = self.ask(attempt_id, url=url)
        except LeaseExpired:
            return True
        return isinstance(result, LeaseExpired)

    def delete(self, handle: str, url: str = URL) -> Result | SqsError:
        return self.do(c.DeleteMessage(url, handle))

    def change(self, handle: str, seconds: int, url: str = URL) -> Result | SqsError:
        return self.do(c.ChangeMessageVisibility(url, handle, seconds))

    def fill(self, count: int, url: str = URL, group: str | None = None) -> None:
        for number in range(count):
            body = f"{group or 'm'}{len(self.log)}-{number}"
            self.do(c.SendMessage(queue_url=url, message_body=body, message_group_id=group))

    def visible(self, url: str = URL) -> int:
        return self.queue(url).order.counts(self.context.now_ms).visible

    def copied(self) -> bytes:
        """The digest of a member that was given a dump."""
        state = State()
        for chunk in dump(self.state):
            for mutation in chunk:
                apply(state, mutation)
        return state_digest(state)


@pytest.fixture
def desk() -> LeaseDesk:
    return LeaseDesk()


# --- replay ---------------------------------------------------------------------------------


def test_same_id_answers_the_same_messages_with_the_same_handles(desk: LeaseDesk) -> None:
    desk.fill(5)
    first = desk.messages("q/1/0/0", limit=3)
    desk.wait(LEASE_S / 2)
    log = len(desk.log)
    assert desk.messages("q/1/0/0", limit=3) == first
    assert desk.messages("q/1/0/0", limit=1) == first
    assert len(desk.log) == log, "a replay changes nothing"
    assert len(desk.messages("q/1/0/1")) == 2


def test_other_partition_batch_and_name_get_other_messages(desk: LeaseDesk) -> None:
    desk.fill(8)
    ids = ("q/1/0/0", "q/1/1/0", "q/2/0/0", "r/1/0/0")
    bodies = [body for attempt_id in ids for body in desk.take(attempt_id, limit=2)]
    assert len(set(bodies)) == 8
    assert desk.take("q/1/0/0") == bodies[:2]


def test_messages_of_one_lease_share_the_deadline_of_its_first_call(desk: LeaseDesk) -> None:
    desk.fill(2)
    desk.take("q/1/0/0", limit=1)
    desk.wait(LEASE_S - 1)
    desk.take("q/1/0/1", limit=1)
    assert desk.visible() == 0
    desk.wait(1)
    assert desk.visible() == 2
    assert desk.is_over("q/1/0/0")
    assert desk.is_over("q/1/0/1")


def test_empty_answer_seals_the_lease_for_ever(desk: LeaseDesk) -> None:
    desk.fill(1)
    desk.take("q/1/0/0")
    assert desk.take("q/1/0/1") == []
    desk.fill(3)
    assert desk.take("q/1/0/1") == desk.take("q/1/0/2") == desk.take("q/1/0/9") == []
    assert len(desk.take("q/1/0/0")) == 1
    assert desk.visible() == 3
    (lease,) = desk.state.leases.living.values()
    assert (lease.state, lease.messages) == (m.LEASE_SEALED, 1)


def test_lease_of_an_empty_queue_is_sealed_and_dies_like_any_other(desk: LeaseDesk) -> None:
    assert desk.take("q/1/0/0") == []
    desk.fill(1)
    assert desk.take("q/1/0/0") == []
    desk.wait(LEASE_S)
    assert desk.is_over("q/1/0/0")


def test_empty_receive_that_may_wait_records_nothing(desk: LeaseDesk) -> None:
    result = desk.do(c.ReceiveMessage(URL, receive_request_attempt_id="q/1/0/0", wait_time_seconds=5))
    assert result == ReceiveMessageResult()
    assert not len(desk.state.leases)
    desk.fill(1)
    assert len(desk.take("q/1/0/0")) == 1


def test_ordinary_attempt_id_of_a_standard_queue_is_still_ignored(desk: LeaseDesk) -> None:
    desk.fill(2)
    command = c.ReceiveMessage(URL, receive_request_attempt_id="try-1")
    assert desk.do(command).messages != desk.do(command).messages
    assert not len(desk.state.leases)


def test_answer_of_a_lease_is_never_given_back(desk: LeaseDesk) -> None:
    desk.fill(1)
    result = desk.ask("q/1/0/0")
    assert isinstance(result, ReceiveMessageResult)
    assert returned(desk.state, result, desk.context.now_ms) == []


def test_leased_receive_leaves_no_row_in_the_guid_history(desk: LeaseDesk) -> None:
    desk.fill(1)
    command = c.ReceiveMessage(URL, receive_request_attempt_id="q/1/0/0", visibility_timeout=LEASE_S)
    first = desk.do(command, invocation=b"g" * 16)
    assert desk.do(command, invocation=b"g" * 16) == first
    assert desk.state.invocations.count == 0


def test_receives_under_a_lease_count_towards_dead_letters(desk: LeaseDesk) -> None:
    desk.create("dead")
    arn = queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, "dead")
    desk.create("work", RedrivePolicy=f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 2}}')
    desk.fill(1, "work")
    for batch in range(2):
        assert len(desk.take(f"q/{batch}/0/0", url="work")) == 1
        assert desk.take(f"q/{batch}/0/0", url="work"), "a replay is not a receive"
        desk.change(f"lease:q/{batch}/", 0, "work")
    desk.ask("q/2/0/0", url="work")
    assert (desk.queue("work").count, desk.queue("dead").count) == (0, 1)


@pytest.mark.parametrize("lease_s", [0, -1, 43_201])
def test_lease_time_outside_of_its_bounds_is_refused(desk: LeaseDesk, lease_s: int) -> None:
    with pytest.raises(InvalidParameterValue):
        desk.ask("q/1/0/0", lease_s=lease_s)


def test_lease_time_is_the_queues_timeout_if_none_is_given(desk: LeaseDesk) -> None:
    desk.fill(1)
    desk.take("q/1/0/0", lease_s=None)
    desk.wait(29.999)
    assert not desk.is_over("q/1/0/0")
    desk.wait(0.001)
    assert desk.is_over("q/1/0/0")


@pytest.mark.pure
def test_full_lease_answers_like_an_empty_queue(desk: LeaseDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LEASE_MESSAGES_MAX", 12)
    desk.fill(20)
    assert len(desk.take("q/1/0/0")) == 10
    assert len(desk.take("q/1/0/1")) == 2
    command = c.ReceiveMessage(URL, receive_request_attempt_id="q/1/0/2", wait_time_seconds=5, max_number_of_messages=9)
    assert desk.do(command) == ReceiveMessageResult(leased=True), "it does not wait"
    assert desk.take("q/1/0/3") == []
    assert desk.visible() == 8


@pytest.mark.pure
def test_more_leases_than_the_bound_are_refused(desk: LeaseDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LEASES_MAX", 2)
    desk.take("q/1/0/0")
    desk.take("q/1/1/0")
    with pytest.raises(OverLimit):
        desk.ask("q/1/2/0")
    assert desk.take("q/1/1/0") == []


def test_page_of_a_lease_ends_at_four_mebibytes(desk: LeaseDesk) -> None:
    for _ in range(12):
        desk.do(c.SendMessage(queue_url=URL, message_body="x" * 500_000))
    command = c.ReceiveMessage(
        URL, visibility_timeout=LEASE_S, receive_request_attempt_id="q/1/0/0", elasticq_page_size=1_000
    )
    first = desk.do(command).messages
    assert len(first) == limits.ANSWER_BYTES_MAX // 500_000
    assert desk.do(command).messages == first
    assert len(desk.messages("q/1/0/1")) == 12 - len(first)


# --- the end --------------------------------------------------------------------------------


def test_commit_removes_all_messages_in_one_entry_and_may_be_repeated(desk: LeaseDesk) -> None:
    desk.fill(5)
    desk.take("q/1/0/0", limit=2)
    desk.take("q/1/1/0", limit=2)
    steps = len(desk.steps)
    assert desk.delete("lease:q/1/") == EmptyResult()
    assert len(desk.steps) == steps + 1
    assert desk.queue().count == 1
    assert desk.delete("lease:q/1/") == desk.delete("lease:q/1/0") == EmptyResult()
    assert len(desk.log) == len([x for step in desk.steps[: steps + 1] for x in step]), "nothing more was written"
    assert desk.is_over("q/1/0/0")
    assert desk.is_over("q/1/1/5")
    assert not desk.is_over("q/2/0/0")


def test_commit_of_one_partition_leaves_the_others(desk: LeaseDesk) -> None:
    desk.fill(4)
    desk.take("q/1/0/0", limit=2)
    kept = desk.take("q/1/1/0", limit=2)
    desk.delete("lease:q/1/0")
    assert desk.take("q/1/1/0") == kept
    assert desk.queue().count == 2


def test_commit_takes_only_what_the_lease_still_holds(desk: LeaseDesk) -> None:
    desk.fill(3)
    first, second, _ = desk.messages("q/1/0/0")
    desk.do(c.DeleteMessage(URL, first.receipt_handle))
    desk.do(c.ChangeMessageVisibility(URL, second.receipt_handle, 0))
    assert desk.delete("lease:q/1/") == EmptyResult()
    assert [message.body for message in desk.do(c.ReceiveMessage(URL)).messages] == [second.body]


def test_renewal_moves_the_deadline_of_the_whole(desk: LeaseDesk) -> None:
    desk.fill(3)
    desk.take("q/1/0/0", limit=2)
    desk.wait(LEASE_S - 1)
    assert desk.change("lease:q/1/", 1_000) == EmptyResult()
    desk.take("q/1/0/1", limit=1)
    desk.wait(999)
    assert desk.visible() == 0
    assert len(desk.take("q/1/0/0")) == 2
    desk.wait(1)
    assert desk.visible() == 3
    assert desk.is_over("q/1/0/0")


def test_lease_may_be_renewed_beyond_twelve_hours(desk: LeaseDesk) -> None:
    desk.fill(1)
    desk.take("q/1/0/0")
    for _ in range(3):
        assert desk.change("lease:q/1/0", 43_200) == EmptyResult()
        desk.wait(43_199)
    assert len(desk.take("q/1/0/0")) == 1


def test_giving_back_shows_all_at_once_and_ends_the_lease(desk: LeaseDesk) -> None:
    desk.fill(3)
    desk.take("q/1/0/0")
    assert desk.change("lease:q/1/", 0) == EmptyResult()
    assert desk.visible() == 3
    assert desk.is_over("q/1/0/0")
    assert isinstance(desk.delete("lease:q/1/"), LeaseExpired)
    assert isinstance(desk.change("lease:q/1/", 10), LeaseExpired)
    assert desk.queue().count == 3


def test_expired_lease_deletes_and_renews_nothing(desk: LeaseDesk) -> None:
    desk.fill(2)
    desk.take("q/1/0/0", lease_s=5)
    desk.wait(5)
    assert isinstance(desk.delete("lease:q/1/"), LeaseExpired)
    assert isinstance(desk.change("lease:q/1/0", 10), LeaseExpired)
    assert isinstance(desk.change("lease:q/1/0", 0), LeaseExpired)
    assert desk.visible() == 2


def test_expired_partition_does_not_keep_the_others_from_being_committed(desk: LeaseDesk) -> None:
    desk.fill(2)
    desk.take("q/1/0/0", limit=1, lease_s=5)
    desk.take("q/1/1/0", limit=1)
    desk.wait(5)
    assert isinstance(desk.delete("lease:q/1/"), LeaseExpired)
    assert desk.queue().count == 1
    assert desk.delete("lease:q/1/1") == EmptyResult()


def test_batch_without_leases_has_nothing_to_do(desk: LeaseDesk) -> None:
    assert desk.delete("lease:q/1/") == desk.delete("lease:q/1/0") == desk.change("lease:q/1/", 10) == EmptyResult()


def test_lease_that_is_not_there_cannot_be_renewed(desk: LeaseDesk) -> None:
    assert isinstance(desk.change("lease:q/1/0", 10), LeaseExpired)


def test_lease_given_back_before_it_was_opened_never_opens(desk: LeaseDesk) -> None:
    desk.fill(1)
    assert desk.change("lease:q/1/0", 0) == EmptyResult()
    assert desk.is_over("q/1/0/0")
    assert desk.visible() == 1


@pytest.mark.parametrize(
    "handle", ["lease:", "lease:q", "lease:q/1", "lease:q/01/", "lease:q/1/0/0", "lease:" + "x" * 50]
)
def test_lease_handle_that_is_none_is_invalid(desk: LeaseDesk, handle: str) -> None:
    with pytest.raises(ReceiptHandleIsInvalid):
        desk.delete(handle)
    with pytest.raises(ReceiptHandleIsInvalid):
        desk.change(handle, 10)


def test_lease_handle_is_not_for_batches_of_deletes(desk: LeaseDesk) -> None:
    entry = c.DeleteMessageBatchEntry("a", "lease:q/1/")
    assert desk.do(c.DeleteMessageBatch(URL, [entry])).failed[0].code == "ReceiptHandleIsInvalid"


def test_message_gone_from_a_call_ends_the_whole_lease(desk: LeaseDesk) -> None:
    """A shorter answer would let the reader commit what it never saw."""
    desk.fill(4)
    first = desk.messages("q/1/0/0", limit=2)
    desk.take("q/1/0/1", limit=2)
    desk.do(c.DeleteMessage(URL, first[0].receipt_handle))
    assert len(desk.take("q/1/0/1")) == 2
    assert desk.is_over("q/1/0/0")
    assert desk.is_over("q/1/0/1")
    assert desk.visible() == 3, "what is left comes at once"


def test_purged_messages_end_the_lease(desk: LeaseDesk) -> None:
    desk.fill(2)
    desk.take("q/1/0/0")
    desk.do(c.PurgeQueue(URL))
    assert desk.is_over("q/1/0/0")


def test_who_was_told_that_a_lease_has_expired_is_told_so_after_a_takeover(desk: LeaseDesk) -> None:
    desk.fill(2)
    desk.take("q/1/0/0", limit=1, lease_s=5)
    desk.take("q/2/0/0", limit=1, lease_s=5)
    desk.wait(5)
    assert desk.is_over("q/1/0/0")
    desk.write([m.TookOver(2, "b", desk.context.now_ms - 1_000, desk.context.now_ms + 2_000)])
    assert desk.is_over("q/1/0/0")
    assert len(desk.take("q/2/0/0")) == 1, "nobody was told that this one has expired: it has its grace"
    assert desk.change("lease:q/2/", 60) == EmptyResult()
    desk.wait(30)
    assert len(desk.take("q/2/0/0")) == 1


def take_over(desk: LeaseDesk, term: int) -> None:
    """A new master, whose grace prolongs what ended in the last second by two."""
    desk.write([m.TookOver(term, "b", desk.context.now_ms - 1_000, desk.context.now_ms + 2_000)])
    desk.context.term = term


@pytest.mark.parametrize("url", [URL, FIFO_URL])
def test_lease_of_which_another_has_a_message_does_not_come_back_with_a_takeover(desk: LeaseDesk, url: str) -> None:
    desk.fill(2, url, group="g" if url == FIFO_URL else None)
    held = desk.messages("q/1/0/0", url=url, lease_s=5)
    desk.wait(5)
    (other,) = desk.receive(1, url=url, visibility_s=600)
    assert other.message_id in {message.message_id for message in held}
    take_over(desk, 2)
    assert desk.is_over("q/1/0/0", url)
    assert isinstance(desk.change("lease:q/1/0", 60, url), LeaseExpired)
    assert isinstance(desk.delete("lease:q/1/0", url), LeaseExpired), "or its reader takes for done what another has"
    desk.wait(601)
    assert len(desk.receive(10, url=url)) == 2, "nothing was deleted"


def test_lease_whose_message_went_to_another_lease_does_not_come_back_with_a_takeover(desk: LeaseDesk) -> None:
    desk.fill(1)
    desk.take("q/1/0/0", lease_s=5)
    desk.wait(5)
    assert len(desk.take("q/2/0/0")) == 1
    take_over(desk, 2)
    assert isinstance(desk.delete("lease:q/1/"), LeaseExpired)
    assert len(desk.take("q/2/0/0")) == 1


def test_lease_whose_message_became_a_dead_letter_does_not_come_back_with_a_takeover(desk: LeaseDesk) -> None:
    desk.create("dead")
    arn = queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, "dead")
    policy = f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 1}}'
    desk.do(c.SetQueueAttributes(URL, {"RedrivePolicy": policy}))
    desk.fill(1)
    desk.take("q/1/0/0", lease_s=5)
    desk.wait(5)
    assert desk.receive() == []
    assert desk.visible("dead") == 1
    take_over(desk, 2)
    assert isinstance(desk.delete("lease:q/1/"), LeaseExpired)


def test_lease_whose_message_was_moved_does_not_come_back_with_a_takeover(desk: LeaseDesk) -> None:
    desk.create("dead")
    desk.create("source", RedrivePolicy=f'{{"deadLetterTargetArn": "{arn_of("dead")}", "maxReceiveCount": 1}}')
    desk.send("poison", url="source")
    for _ in range(2):
        desk.receive(url="source", visibility_s=1)
        desk.wait(1)
    assert len(desk.take("q/1/0/0", url="dead", lease_s=5)) == 1
    desk.wait(5)
    desk.do(c.StartMessageMoveTask(arn_of("dead")))
    desk.write(Mover().step(desk.state, desk.context.now_ms, desk.context.term).mutations)
    assert desk.visible("source") == 1
    take_over(desk, 2)
    assert isinstance(desk.delete("lease:q/1/", "dead"), LeaseExpired)


@pytest.mark.pure
def test_more_leases_than_one_command_ends_are_all_over_before_a_message_goes(
    desk: LeaseDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (lease_table, receive_action, leases):
        monkeypatch.setattr(module, "ENDED_AT_ONCE_MAX", 2)
    desk.fill(5)
    for batch in range(5):
        desk.take(f"q/{batch}/0/0", limit=1, lease_s=5)
    desk.wait(5)
    asked = c.ReceiveMessage(URL, max_number_of_messages=10)
    taken = []
    while not taken:
        assert len(desk.steps) < 20
        taken = desk.do(asked).messages
        living = sum(lease.lives(desk.state.grace, 0) for lease in desk.state.leases.living.values())
        assert not taken or not living
    assert len(taken) == 5


def test_handle_of_an_earlier_receive_moves_nothing_that_a_lease_holds(desk: LeaseDesk) -> None:
    desk.fill(2)
    (earlier,) = desk.receive(1, visibility_s=1)
    desk.wait(1)
    assert len(desk.take("q/1/0/0")) == 2
    assert desk.change(earlier.receipt_handle, 0) == EmptyResult()
    assert desk.delete(earlier.receipt_handle) == EmptyResult()
    assert desk.visible() == 0
    assert len(desk.take("q/1/0/0")) == 2, "the lease answers as before"


def test_ended_lease_is_forgotten_after_a_day_in_bounded_steps(
    desk: LeaseDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "LEASES_A_STEP", 2)
    for batch in range(5):
        desk.take(f"q/{batch}/0/0", lease_s=5)
    desk.delete("lease:q/4/")
    desk.wait(5)
    sweeper = Sweeper()
    for _ in range(4):
        desk.write(sweeper.step(desk.state, desk.context.now_ms)[0])
    assert [lease.state for lease in desk.state.leases.ended.values()] == [m.LEASE_COMMITTED, *[m.LEASE_EXPIRED] * 4]
    desk.wait(DAY_S)
    found, is_more = sweeper.step(desk.state, desk.context.now_ms)
    assert (len(found), is_more) == (2, True)
    while found:
        desk.write(found)
        found, _ = sweeper.step(desk.state, desk.context.now_ms)
    assert not len(desk.state.leases)
    assert desk.delete("lease:q/4/") == EmptyResult()


@pytest.mark.pure
def test_crowd_of_ended_leases_goes_early_but_not_at_once(desk: LeaseDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "LEASES_MAX", 4)
    for batch in range(4):
        desk.take(f"q/{batch}/0/0")
        desk.delete(f"lease:q/{batch}/")
    sweeper = Sweeper()
    assert sweeper.step(desk.state, desk.context.now_ms) == ([], False)
    desk.wait(300)
    desk.write(sweeper.step(desk.state, desk.context.now_ms)[0])
    assert [key[2] for key in desk.state.leases.ended] == [2, 3]
    assert sweeper.step(desk.state, desk.context.now_ms) == ([], False)


# --- FIFO -----------------------------------------------------------------------------------


def test_lease_goes_on_in_groups_that_are_all_its_own(desk: LeaseDesk) -> None:
    desk.fill(4, FIFO_URL, "a")
    desk.fill(4, FIFO_URL, "b")
    got = [desk.take(f"q/1/0/{call}", 3, FIFO_URL) for call in range(4)]
    assert [body[0] for call in got for body in call] == ["a"] * 3 + ["b"] * 3 + ["a", "b"]
    for group in "ab":
        numbers = [body for call in got for body in call if body[0] == group]
        assert numbers == sorted(numbers, key=lambda body: int(body[1:].split("-")[0]))
    assert got[3] == []


def test_nobody_else_gets_messages_of_a_leased_group(desk: LeaseDesk) -> None:
    desk.fill(4, FIFO_URL, "a")
    desk.take("q/1/0/0", 2, FIFO_URL)
    assert desk.do(c.ReceiveMessage(FIFO_URL, max_number_of_messages=10)).messages == []
    assert desk.take("q/1/1/0", 10, FIFO_URL) == []
    desk.delete("lease:q/1/0", FIFO_URL)
    assert len(desk.do(c.ReceiveMessage(FIFO_URL, max_number_of_messages=10)).messages) == 2


def test_lease_gets_no_more_of_a_group_once_a_message_of_it_went_to_somebody_else(desk: LeaseDesk) -> None:
    desk.fill(4, FIFO_URL, "a")
    first, _ = desk.messages("q/1/0/0", 2, FIFO_URL)
    desk.do(c.ChangeMessageVisibility(FIFO_URL, first.receipt_handle, 0))
    (again,) = desk.do(c.ReceiveMessage(FIFO_URL, max_number_of_messages=10)).messages
    assert again.body == first.body
    assert desk.take("q/1/0/1", 10, FIFO_URL) == []


def test_lease_takes_no_message_behind_one_that_came_back_by_itself(desk: LeaseDesk) -> None:
    """What it remembers of a group holds until anything in it changes, time included."""
    desk.fill(6, FIFO_URL, "a")
    first = desk.messages("q/1/0/0", 2, FIFO_URL)
    assert len(desk.take("q/1/0/1", 2, FIFO_URL)) == 2
    desk.do(c.ChangeMessageVisibility(FIFO_URL, first[0].receipt_handle, 5))
    desk.wait(5)
    assert desk.take("q/1/0/2", 10, FIFO_URL) == [first[0].body]
    assert len(desk.take("q/1/0/3", 10, FIFO_URL)) == 2


def test_expired_lease_gives_its_groups_back_in_order(desk: LeaseDesk) -> None:
    desk.fill(3, FIFO_URL, "a")
    first = desk.take("q/1/0/0", 2, FIFO_URL, lease_s=5)
    desk.wait(5)
    again = [message.body for message in desk.do(c.ReceiveMessage(FIFO_URL, max_number_of_messages=10)).messages]
    assert (again[:2], len(again)) == (first, 3)
    assert desk.is_over("q/1/0/0", FIFO_URL)


# --- state ----------------------------------------------------------------------------------


def _story(desk: LeaseDesk, undo: Undo | None = None) -> None:
    """Every change of a lease."""

    def do(command: c.Command) -> None:
        desk.do(command, undo=undo)

    for batch in range(4):
        for call in range(2):
            command = c.ReceiveMessage(
                URL, None, None, None, 2, LEASE_S, None, receive_request_attempt_id=f"q/{batch}/0/{call}"
            )
            do(command)
    call = c.Call(c.ReceiveMessage(URL, receive_request_attempt_id="q/3/0/2"), "anonymous", DEFAULT_ACCOUNT, ENDPOINT)
    _, mutations = leases.seal_or_answer_lease(desk.state, call, desk.context)
    desk.write(mutations, undo)
    do(c.DeleteMessage(URL, "lease:q/0/"))
    do(c.ChangeMessageVisibility(URL, "lease:q/1/", 0))
    do(c.ChangeMessageVisibility(URL, "lease:q/2/", 3_000))
    desk.write([m.LeaseForgotten(desk.queue().id, "q", 1, 0)], undo)


def test_leases_are_rolled_back_to_what_was(desk: LeaseDesk) -> None:
    desk.fill(14)
    desk.take("q/9/0/0", 1)
    before = state_digest(desk.state)
    undo: Undo = []
    _story(desk, undo)
    assert state_digest(desk.state) != before
    roll_back(undo)
    assert state_digest(desk.state) == before
    _story(desk)
    assert len(desk.take("q/9/0/0", 1)) == 1


def test_log_applied_twice_changes_nothing_more(desk: LeaseDesk) -> None:
    desk.fill(16)
    _story(desk)
    once = state_digest(desk.state)
    state = State()
    for mutation in [*desk.log, *desk.log]:
        apply(state, mutation)
    assert state_digest(state) == once


def test_dump_holds_the_leases(desk: LeaseDesk) -> None:
    desk.fill(16)
    _story(desk)
    assert desk.copied() == state_digest(desk.state)


def test_no_mutation_of_a_large_lease_touches_more_rows_than_allowed(
    desk: LeaseDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(m, "MUTATION_ROWS_MAX", 7)
    desk.fill(20)
    for call in range(2):
        desk.take(f"q/1/0/{call}")
    desk.change("lease:q/1/", 60)
    assert [len(x.sequences) for x in desk.steps[-1] if isinstance(x, m.VisibilityChanged)] == [7, 7, 6]
    desk.delete("lease:q/1/")
    assert [len(x.sequences) for x in desk.steps[-1] if isinstance(x, m.MessagesRemoved)] == [7, 7, 6]
    assert desk.queue().count == 0
