"""Sends to one message group come one after the other; a send to several groups waits for its turn in all of them."""

import pytest
from botocore.exceptions import ClientError

from elasticq.client.lines import NOT_TRIED, Lines, Place, place_for

QUEUE = "http://127.0.0.1:9324/000000000000/orders.fifo"


def place(*groups: str) -> Place:
    entries = [{"Id": str(at), "MessageBody": "b", "MessageGroupId": group} for at, group in enumerate(groups)]
    made = place_for("send_message_batch", {"QueueUrl": QUEUE, "Entries": entries})
    assert made is not None
    return made


def joined(lines: Lines, *places: Place) -> None:
    for each in places:
        lines.join(each)


def turns(*places: Place) -> list[bool]:
    return [each.turn.done() for each in places]


def test_only_sends_to_fifo_queues_have_a_place() -> None:
    send = {"QueueUrl": QUEUE, "MessageBody": "b", "MessageGroupId": "g"}
    found = place_for("send_message", send)
    assert found is not None
    assert [group for _, group in found.groups] == ["g"]
    assert place_for("receive_message", send) is None
    assert place_for("send_message", send | {"QueueUrl": QUEUE.removesuffix(".fifo")}) is None


@pytest.mark.parametrize(
    "members", [{}, {"QueueUrl": None}, *({"QueueUrl": QUEUE, "Entries": entries} for entries in (None, [], 7, ["x"]))]
)
def test_what_botocore_will_refuse_has_no_place(members: dict[str, object]) -> None:
    assert place_for("send_message_batch", members) is None


def test_turns_come_in_the_order_of_joining() -> None:
    lines, first, second, third = Lines(), place("g"), place("g"), place("g")
    joined(lines, first, second, third)
    assert turns(first, second, third) == [True, False, False]
    lines.leave(first)
    assert turns(second, third) == [True, False]


def test_groups_do_not_wait_for_each_other() -> None:
    lines, one, other = Lines(), place("g"), place("h")
    joined(lines, one, other)
    assert turns(one, other) == [True, True]


def test_send_to_several_groups_waits_for_all_and_is_waited_for_in_all() -> None:
    lines, one, other, both, behind = Lines(), place("g"), place("h"), place("g", "h"), place("h")
    joined(lines, one, other, both, behind)
    lines.leave(one)
    assert turns(both, behind) == [False, False]
    lines.leave(other)
    assert turns(both, behind) == [True, False]
    lines.leave(both)
    assert turns(behind) == [True]


def test_who_leaves_before_its_turn_frees_nobody_else() -> None:
    lines, first, second, third = Lines(), place("g"), place("g"), place("g")
    joined(lines, first, second, third)
    lines.leave(second)
    assert turns(third) == [False]
    lines.leave(first)
    assert turns(third) == [True]
    lines.leave(third)
    lines.leave(third)
    again = place("g")
    lines.join(again)
    assert turns(again) == [True], "a line that was empty begins anew"


def given_up() -> ClientError:
    return ClientError({"Error": {"Code": "ServiceUnavailable"}}, "SendMessage")


def test_who_gives_up_fails_all_behind_it_and_those_behind_them() -> None:
    lines, first, both, behind, before, apart = Lines(), place("g"), place("g", "h"), place("h"), place("h"), place("i")
    joined(lines, before, first, both, behind, apart)
    failure = given_up()
    lines.leave(first, failure)
    for each in (both, behind):
        met = each.turn.exception()
        assert isinstance(met, ClientError)
        assert met is not failure
        assert (met.response, met.__cause__, met.__notes__) == (failure.response, failure, [NOT_TRIED])
    assert [each.turn.exception() for each in (before, apart)] == [None, None]


def test_who_joins_after_one_gave_up_is_not_behind_those_that_it_failed() -> None:
    """The caller of the first may send it again before the threads of the others have noticed anything."""
    lines, first, second, again, then = Lines(), place("g"), place("g"), place("g"), place("g")
    joined(lines, first, second)
    lines.leave(first, given_up())
    joined(lines, again, then)
    assert turns(again, then) == [True, False]
    lines.leave(second)
    assert turns(again, then) == [True, False]
    assert again.turn.exception() is None


def test_who_is_cancelled_or_refused_fails_nobody() -> None:
    lines, first, second = Lines(), place("g"), place("g")
    joined(lines, first, second)
    lines.leave(first)
    assert second.turn.exception() is None


def test_turn_cannot_be_cancelled_by_who_waits_for_it() -> None:
    lines, first, second = Lines(), place("g"), place("g")
    joined(lines, first, second)
    assert not second.turn.cancel()
    lines.leave(first)
    assert turns(second) == [True]


def test_queue_is_the_same_one_at_all_members() -> None:
    lines, here = Lines(), place("g")
    send = {"QueueUrl": QUEUE.replace("127.0.0.1", "127.0.0.2"), "MessageBody": "b", "MessageGroupId": "g"}
    there = place_for("send_message", send)
    assert there is not None
    joined(lines, here, there)
    assert turns(here, there) == [True, False]
