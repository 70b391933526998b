"""Actions on consumer groups, one at a time: what they answer, refuse and repeat."""

import pytest

from elasticq.engine.stored.consumer_group_rows import LAST_TOKEN, TOKENS
from elasticq.model import commands as c
from elasticq.model import group_commands as g
from elasticq.model import limits
from elasticq.model.errors import (
    ElasticqGroupDoesNotExist,
    ElasticqUnknownConsumer,
    InvalidParameterValue,
    MissingParameter,
    OverLimit,
)
from elasticq.model.extensions import DeleteAllQueues
from elasticq.model.group_results import FREE, HELD, REVOKING, GroupChangedResult, GroupsResult
from elasticq.model.results import EmptyResult
from tests.engine.group_desk import GroupDesk, names

OTHER_ACCOUNT = "111111111111"
NOBODY = "0" * 16


@pytest.fixture
def desk() -> GroupDesk:
    made = GroupDesk()
    made.group()
    made.queues(4)
    return made


# --- settings ----------------------------------------------------------------------------


def test_a_group_is_made_changed_and_keeps_what_is_not_given(desk: GroupDesk) -> None:
    desk.do(g.ElasticqSetGroup("g", session_timeout_ms=4_000, max_per_consumer=3))
    desk.do(g.ElasticqSetGroup("g", rebalance_delay_ms=50))
    shown = desk.shown()
    assert (shown.session_timeout_ms, shown.max_per_consumer, shown.rebalance_delay_ms) == (4_000, 3, 50)
    assert (shown.queue_name_prefix, shown.queue_names, shown.partitions_of) == ("q-", [], None)
    before = shown.generation
    assert desk.do(g.ElasticqSetGroup("g")) == GroupChangedResult("g", before)
    assert desk.do(g.ElasticqSetGroup("g", queue_names=["q-00000", "q-00000", "later"])).generation == before + 1
    assert desk.shown().queue_names == ["q-00000", "later"]
    assert desk.shown().queue_name_prefix is None


@pytest.mark.parametrize(
    "command",
    [
        g.ElasticqSetGroup("new"),
        g.ElasticqSetGroup("new", queue_names=["a"], queue_name_prefix="b"),
        g.ElasticqSetGroup("new", queue_name_prefix="a", partitions_of="b"),
        g.ElasticqSetGroup("no/name", queue_names=["a"]),
        g.ElasticqSetGroup("n" * 81, queue_names=["a"]),
        g.ElasticqSetGroup("new", queue_names=["a b"]),
        g.ElasticqSetGroup("new", queue_names=[""]),
        g.ElasticqSetGroup("new", queue_name_prefix="*"),
        g.ElasticqSetGroup("new", queue_names=["a"], session_timeout_ms=1_999),
        g.ElasticqSetGroup("new", queue_names=["a"], session_timeout_ms=3_600_001),
        g.ElasticqSetGroup("new", queue_names=["a"], rebalance_delay_ms=60_001),
        g.ElasticqSetGroup("new", queue_names=["a"], max_per_consumer=-1),
        g.ElasticqJoinGroup("g", weight=1_001),
        g.ElasticqJoinGroup("g", weight=-1),
        g.ElasticqJoinGroup("g", consumer_name="line\nbreak"),
        g.ElasticqJoinGroup("g", consumer_name="\ud800"),
        g.ElasticqDescribeGroups(max_results=0),
        g.ElasticqDescribeGroups(next_token="x"),
    ],
)
def test_what_is_not_allowed_is_refused_and_changes_nothing(desk: GroupDesk, command: c.Command) -> None:
    before = len(desk.log)
    with pytest.raises(InvalidParameterValue):
        desk.do(command)
    assert len(desk.log) == before


@pytest.mark.parametrize(
    "command",
    [
        g.ElasticqSetGroup(queue_names=["a"]),
        g.ElasticqDeleteGroup(),
        g.ElasticqJoinGroup(),
        g.ElasticqHeartbeat(consumer_id=NOBODY),
        g.ElasticqHeartbeat("g"),
        g.ElasticqLeaveGroup("g"),
        g.ElasticqMoveResource("g", consumer_id=NOBODY),
        g.ElasticqMoveResource("g", "q-00000"),
        g.ElasticqDrainConsumer("g"),
    ],
)
def test_what_is_missing_is_told(desk: GroupDesk, command: c.Command) -> None:
    with pytest.raises(MissingParameter):
        desk.do(command)


@pytest.mark.parametrize("consumer_id", [NOBODY, "x", "0x1", "g" * 16, "-" + "0" * 15, "٣" * 16])
def test_a_consumer_that_is_not_there_is_told_apart_from_a_group(desk: GroupDesk, consumer_id: str) -> None:
    for kind in (g.ElasticqHeartbeat, g.ElasticqLeaveGroup, g.ElasticqDrainConsumer):
        with pytest.raises(ElasticqUnknownConsumer):
            desk.do(kind("g", consumer_id))
        with pytest.raises(ElasticqGroupDoesNotExist):
            desk.do(kind("h", consumer_id))
    with pytest.raises(ElasticqUnknownConsumer):
        desk.do(g.ElasticqMoveResource("g", "q-00000", consumer_id))


def test_groups_are_their_account_s_own(desk: GroupDesk) -> None:
    with pytest.raises(ElasticqGroupDoesNotExist):
        desk.do(g.ElasticqJoinGroup("g"), account=OTHER_ACCOUNT)
    desk.do(g.ElasticqSetGroup("g", queue_name_prefix="q-"), account=OTHER_ACCOUNT)
    assert desk.do(g.ElasticqJoinGroup("g"), account=OTHER_ACCOUNT).assigned == []
    assert len(desk.join().assigned) == 4


@pytest.mark.pure
def test_bounds(desk: GroupDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONSUMERS_MAX", 2)
    monkeypatch.setattr(limits, "CONSUMER_GROUPS_MAX", 2)
    monkeypatch.setattr(limits, "CONSUMERS_TOTAL_MAX", 3)
    desk.join()
    desk.join()
    with pytest.raises(OverLimit, match="The group has 2 consumers already"):
        desk.join()
    desk.group("h")
    desk.join("h")
    with pytest.raises(OverLimit, match="There are 3 consumers of groups already"):
        desk.join("h")
    with pytest.raises(OverLimit, match="There are 2 consumer groups already"):
        desk.group("i")


# --- sessions ----------------------------------------------------------------------------


def test_a_join_that_is_repeated_is_one_consumer(desk: GroupDesk) -> None:
    first = desk.join(invocation=b"j" * 16)
    assert desk.join(invocation=b"j" * 16) == first
    assert len(desk.shown().consumers) == 1
    desk.leave(first)
    with pytest.raises(ElasticqUnknownConsumer):
        desk.join(invocation=b"j" * 16)


def test_a_leave_that_is_repeated_is_no_error(desk: GroupDesk) -> None:
    view = desk.join()
    command = g.ElasticqLeaveGroup("g", view.consumer_id)
    for _ in range(2):
        assert desk.do(command, invocation=b"l" * 16) == EmptyResult()
    with pytest.raises(ElasticqUnknownConsumer):
        desk.do(command)


def test_settings_that_are_repeated_answer_as_before(desk: GroupDesk) -> None:
    command = g.ElasticqSetGroup("g", max_per_consumer=2)
    first = desk.do(command, invocation=b"s" * 16)
    desk.do(g.ElasticqSetGroup("g", max_per_consumer=1))
    assert desk.do(command, invocation=b"s" * 16) == first
    assert desk.shown().max_per_consumer == 1


def test_a_heartbeat_is_not_remembered_and_renews_the_session(desk: GroupDesk) -> None:
    view = desk.join()
    for _ in range(3):
        desk.wait(9.9)
        view = desk.do(g.ElasticqHeartbeat("g", view.consumer_id), invocation=b"h" * 16)
    assert desk.state.invocations.get(b"h" * 16, desk.context.now_ms) is None
    assert len(view.assigned) == 4
    assert (view.hold_ms, view.heartbeat_ms, view.session_timeout_ms) == (6_666, 2_500, 10_000)


def test_a_heartbeat_that_comes_too_late_ends_the_session(desk: GroupDesk) -> None:
    first, second = desk.join(), desk.join()
    desk.wait(5)
    desk.beat(second)
    desk.wait(5)
    late = desk.do(g.ElasticqHeartbeat("g", first.consumer_id))
    assert isinstance(late, ElasticqUnknownConsumer), "what it rests on is written down"
    assert len(desk.shown().consumers) == 1
    assert len(desk.beat(second).assigned) == 4, "the others got what it held in the same entry"


def test_what_is_released_goes_to_others_at_once(desk: GroupDesk) -> None:
    first, second = desk.join(), desk.join()
    first = desk.beat(first)
    tokens = [each.token for each in first.revoking]
    first = desk.beat(first, *tokens, *tokens, 12_345, -1)
    assert first.revoking == []
    assert len(desk.beat(second).assigned) == 2
    assert desk.beat(first, *tokens).version == first.version, "said twice it changes nothing"


def test_others_tokens_cannot_be_released(desk: GroupDesk) -> None:
    first, second = desk.join(), desk.join()
    desk.beat(second, *(each.token for each in desk.beat(first).revoking))
    assert desk.beat(second).assigned == []


# --- orders of an operator ---------------------------------------------------------------


def test_a_resource_moves_when_it_was_given_back_and_stays_until_consumers_change(desk: GroupDesk) -> None:
    first, second = desk.join(), desk.join()
    first = desk.give_back(first)
    moved = first.assigned[0]
    generation = desk.do(g.ElasticqMoveResource("g", moved.resource, second.consumer_id)).generation
    assert generation == desk.shown().generation
    first, second = desk.beat(first), desk.beat(second)
    assert [each.resource for each in first.revoking] == [moved.resource]
    assert moved.resource not in names(second)
    first, second = desk.give_back(first), desk.give_back(second)
    assert moved.resource in names(second)
    first, second = desk.give_back(first), desk.give_back(second)
    assert (len(first.assigned), len(second.assigned)) == (2, 2), "the shares stay even"
    assert moved.resource in names(second)
    desk.sweep_groups()
    assert desk.beat(first).version == first.version, "it is at rest"


def test_a_free_resource_moves_at_once_and_a_move_to_its_holder_keeps_it(desk: GroupDesk) -> None:
    desk.do(g.ElasticqSetGroup("g", max_per_consumer=1))
    view = desk.join()
    free = next(each.resource for each in desk.shown().resources if each.state == FREE)
    desk.do(g.ElasticqMoveResource("g", free, view.consumer_id))
    view = desk.give_back(view)
    assert names(view) == [free]
    desk.do(g.ElasticqMoveResource("g", free, view.consumer_id))
    assert names(desk.beat(view)) == [free]


@pytest.mark.parametrize("resource", ["nothing", "q-00000/0", "q-00000/x", "/", "q-00000/"])
def test_only_what_the_group_has_can_be_moved(desk: GroupDesk, resource: str) -> None:
    view = desk.join()
    with pytest.raises(InvalidParameterValue, match="no such resource"):
        desk.do(g.ElasticqMoveResource("g", resource, view.consumer_id))


def test_a_drained_consumer_gives_all_back_and_gets_nothing(desk: GroupDesk) -> None:
    first, second = desk.join(), desk.join()
    first = desk.give_back(first)
    desk.do(g.ElasticqDrainConsumer("g", first.consumer_id))
    assert len(desk.beat(first).revoking) == 2
    first = desk.give_back(first)
    assert (len(first.assigned), len(desk.beat(second).assigned)) == (0, 4)
    before = len(desk.log)
    assert desk.do(g.ElasticqDrainConsumer("g", first.consumer_id)).generation == desk.shown().generation
    assert len(desk.log) == before
    with pytest.raises(InvalidParameterValue, match="weight 0"):
        desk.do(g.ElasticqMoveResource("g", "q-00000", first.consumer_id))


def test_newest_assignments_move_first(desk: GroupDesk) -> None:
    """ADR 0031. A consumer keeps the resources that it has held for the longest time."""
    desk.group("h", queue_name_prefix="h-")
    view = desk.join("h")
    for name in ("h-3", "h-1", "h-2", "h-0"):  # assigned one by one, so their tokens are in this order
        desk.create(name)
        desk.sweep_groups()
    desk.join("h")
    view = desk.beat(view)
    assert [each.resource for each in view.assigned] == ["h-3", "h-1"]
    assert {each.resource for each in view.revoking} == {"h-2", "h-0"}


def test_a_delay_gathers_joins_into_one_sharing_out(desk: GroupDesk) -> None:
    desk.do(g.ElasticqSetGroup("g", rebalance_delay_ms=3_000))
    desk.wait(3)
    desk.sweep_groups()
    first = desk.join()
    assert first.assigned == []
    desk.wait(2)
    second = desk.join()
    desk.sweep_groups()
    assert desk.beat(first).assigned == []
    desk.wait(1)
    desk.sweep_groups()
    assert (len(desk.beat(first).assigned), len(desk.beat(second).assigned)) == (2, 2)
    assert (desk.shown().moves, desk.shown().rebalanced_ms) == (0, 3_000)


def test_what_an_operator_moves_during_a_delay_is_handed_over_at_once(desk: GroupDesk) -> None:
    """Its holder gives it back before the sharing out: whom it was for would be forgotten by then."""
    first, second = desk.join(), desk.join()
    first, second = desk.give_back(first), desk.beat(second)
    desk.do(g.ElasticqSetGroup("g", rebalance_delay_ms=3_000))
    desk.wait(3)
    desk.sweep_groups()
    third = desk.join()
    moved = desk.beat(first).assigned[0].resource
    desk.do(g.ElasticqMoveResource("g", moved, second.consumer_id))
    first = desk.give_back(first)
    assert moved not in names(first)
    assert moved in names(desk.beat(second))
    assert desk.beat(third).assigned == [], "the others wait until the delay is over"
    desk.wait(3)
    desk.sweep_groups()
    first, second = desk.give_back(first), desk.give_back(second)
    assert moved in names(second)
    assert sorted(len(desk.beat(each).assigned) for each in (first, second, third)) == [1, 1, 2]


def test_a_group_that_is_deleted_is_gone_with_all_it_had(desk: GroupDesk) -> None:
    view = desk.join()
    desk.do(g.ElasticqDeleteGroup("g"))
    with pytest.raises(ElasticqGroupDoesNotExist):
        desk.beat(view)
    assert not desk.state.groups
    assert not desk.state.groups.consumers
    assert not desk.state.groups.assignments
    last = max(each.token for each in view.assigned)
    desk.group()
    assert min(each.token for each in desk.join().assigned) > last, "tokens go on growing"


def test_a_reset_takes_the_groups_of_its_account_and_no_others(desk: GroupDesk) -> None:
    desk.join()
    desk.do(g.ElasticqSetGroup("g", queue_name_prefix="q-"), account=OTHER_ACCOUNT)
    desk.do(DeleteAllQueues("000000000000"))
    assert [account for account, _ in desk.state.groups.names] == [OTHER_ACCOUNT]
    desk.do(DeleteAllQueues())
    assert not desk.state.groups
    assert not desk.state.groups.assignments


# --- what groups look like ---------------------------------------------------------------


def test_a_group_is_described_with_all_that_it_has(desk: GroupDesk) -> None:
    first = desk.join(consumer_name="one", weight=2)
    desk.join(consumer_name="two")
    shown = desk.shown()
    assert [(each.consumer_name, each.weight) for each in shown.consumers] == [("one", 2), ("two", 1)]
    assert {each.state for each in shown.resources} == {HELD, REVOKING}
    assert all(each.consumer_id == first.consumer_id for each in shown.resources)
    assert shown.moves == 1


@pytest.mark.pure
def test_groups_are_described_in_pages(desk: GroupDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("c", "a", "b"):
        desk.group(name)
    found, token = [], None
    while True:
        page = desk.do(g.ElasticqDescribeGroups(max_results=2, next_token=token))
        assert isinstance(page, GroupsResult)
        found.append([each.group_name for each in page.groups])
        token = page.next_token
        if token is None:
            break
    assert found == [["a", "b"], ["c", "g"]]
    monkeypatch.setattr(limits, "DESCRIBED_ITEMS_MAX", 7)
    page = desk.do(g.ElasticqDescribeGroups())
    assert ([each.group_name for each in page.groups], page.next_token is None) == (["a"], False)
    with pytest.raises(ElasticqGroupDoesNotExist):
        desk.do(g.ElasticqDescribeGroups(["a", "none"]))


def test_no_token_that_is_held_is_given_again_where_a_repair_lost_their_counter() -> None:
    desk = GroupDesk()
    desk.group()
    desk.queues(3)
    held = desk.join()
    del desk.state.tables[TOKENS.name][LAST_TOKEN]
    desk.group("other")
    second = desk.join("other")
    tokens = [each.token for view in (desk.beat(held), second) for each in view.assigned]
    assert len(set(tokens)) == 6
    assert second.version > held.version
