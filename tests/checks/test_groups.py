"""The rules for consumer groups on hand-made histories."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.checks.group_history import (
    Act,
    Added,
    Assigned,
    Event,
    Freed,
    Held,
    Joined,
    Left,
    Ordered,
    Removed,
    Renewed,
    Rest,
    Revoked,
    TookOver,
)
from elasticq.checks.groups import check, fewest_moves, shares
from elasticq.checks.queue_history import Jump

S = 1_000_000
SESSION_S = 10


def held(consumer: str, token: int, from_s: float, until_s: float | None = None, resource: str = "q") -> Held:
    return Held(consumer, resource, token, int(from_s * S), None if until_s is None else int(until_s * S))


def act(consumer: str, token: int, at_s: float, outcome: str = "ok") -> Act:
    return Act(consumer, "q", token, int(at_s * S), int((at_s + 0.1) * S), outcome)  # type: ignore[arg-type]


def names(
    *events: Event,
    jumps: tuple[Jump, ...] = (),
    rest: Rest | None = None,
) -> list[str]:
    return [finding.name for finding in check(events, SESSION_S * S, jumps=jumps, rest=rest)]


def at_rest(weights: dict[str, int], *resources: str, max_per_consumer: int = 0) -> Rest:
    return Rest(100 * S, weights, list(resources), max_per_consumer)


def even(*consumers: str, resources: int = 4) -> list[Event]:
    """Return the decisions that share the resources out among the consumers in turn."""
    made: list[Event] = [Joined(0, each) for each in consumers]
    for at in range(resources):
        made += [Added(0, f"r{at}"), Assigned(0, f"r{at}", consumers[at % len(consumers)], at + 1)]
    return made


# --- never two holders ------------------------------------------------------------------


def test_resource_handed_from_one_holder_to_the_next_is_clean() -> None:
    assert names(held("a", 1, 1, 5), act("a", 1, 2), held("b", 2, 5, 9), act("b", 2, 6), held("a", 3, 9)) == []


def test_two_holders_at_once_are_found() -> None:
    assert names(held("a", 1, 1, 5), held("b", 2, 4.9, 9)) == ["two_holders"]
    assert names(held("b", 2, 4.9), held("a", 1, 1)) == ["two_holders"]


def test_two_holders_of_two_resources_are_clean() -> None:
    assert names(held("a", 1, 1, 5), held("b", 2, 2, resource="other")) == []


def test_holder_that_begins_again_under_its_token_is_clean() -> None:
    assert names(held("a", 1, 1, 5), held("a", 1, 7, 9)) == []


def test_two_holders_where_the_clock_was_put_forward_are_excused() -> None:
    """Only where that may have ended the session of the older one."""
    both = held("a", 1, 1, 30), held("b", 2, 29)
    assert names(*both, jumps=(Jump(25 * S, 5_000),)) == []
    assert names(*both, jumps=(Jump(15 * S, 5_000),)) == ["two_holders"]
    assert names(*both, jumps=(Jump(31 * S, 5_000),)) == ["two_holders"]


# --- tokens -----------------------------------------------------------------------------


def test_token_that_does_not_grow_is_found() -> None:
    assert names(Assigned(1, "q", "a", 7), Freed(2, "q", 7), Assigned(3, "q", "b", 6)) == ["token_fell"]


def test_tokens_grow_over_all_resources() -> None:
    assert names(Assigned(1, "q", "a", 7), Assigned(2, "r", "b", 6)) == ["token_fell"]


def test_token_of_two_consumers_or_resources_is_found() -> None:
    assert names(held("a", 1, 1, 2), held("b", 1, 3)) == ["token_fell"]
    assert names(held("a", 1, 1, 2), held("a", 1, 3, resource="r")) == ["token_fell"]


def test_token_that_its_holder_has_from_its_assignment_is_clean() -> None:
    assert names(Assigned(1, "q", "a", 1), held("a", 1, 1, 2), Assigned(3 * S, "q", "b", 2), held("b", 2, 3)) == []


# --- acts -------------------------------------------------------------------------------


def test_act_with_an_older_token_that_succeeds_is_found() -> None:
    assert names(held("a", 1, 1, 5), held("b", 2, 6), act("a", 1, 7)) == ["stale_act"]
    assert names(act("b", 2, 6), act("a", 1, 7)) == ["stale_act"]


def test_act_with_an_older_token_that_is_refused_is_clean() -> None:
    assert names(held("a", 1, 1, 5), held("b", 2, 6), act("a", 1, 7, "fail"), act("a", 1, 8, "unknown")) == []


def test_act_that_began_before_the_newer_token_was_known_is_clean() -> None:
    assert names(held("a", 1, 1, 5), act("a", 1, 5.95), held("b", 2, 6)) == []


def test_clock_that_was_put_forward_excuses_no_act() -> None:
    told = names(held("a", 1, 1, 9), held("b", 2, 6, 20), act("a", 1, 7), jumps=(Jump(5 * S, 9_000),))
    assert told == ["stale_act"]


# --- at rest ----------------------------------------------------------------------------


def test_resources_that_are_held_evenly_are_clean() -> None:
    both = held("a", 1, 1), held("b", 2, 1, resource="r"), held("a", 3, 1, resource="s")
    assert names(*both, rest=at_rest({"a": 1, "b": 1}, "q", "r", "s")) == []
    assert names(*both, rest=at_rest({"a": 2, "b": 1}, "q", "r", "s")) == []
    assert names(*both, rest=at_rest({"a": 1, "b": 3}, "q", "r", "s")) == ["uneven"]


def test_resource_that_nobody_holds_is_found() -> None:
    assert names(held("a", 1, 1), rest=at_rest({"a": 1}, "q", "r")) == ["not_held"]
    assert names(held("a", 1, 1, 50), rest=at_rest({"a": 1}, "q")) == ["not_held"]


def test_holder_that_waits_for_an_answer_still_counts() -> None:
    """For a session, in which it has stopped by itself."""
    assert names(held("a", 1, 1, 95), rest=at_rest({"a": 1}, "q")) == []
    assert names(held("a", 1, 1, 89), rest=at_rest({"a": 1}, "q")) == ["not_held"]


def test_resource_that_a_consumer_holds_which_is_gone_is_found() -> None:
    assert names(held("gone", 1, 1), rest=at_rest({"a": 1}, "q")) == ["not_held"]


def test_nobody_needs_to_hold_anything_without_consumers() -> None:
    assert names(rest=at_rest({}, "q")) == []
    assert names(rest=at_rest({"a": 0}, "q")) == []


def test_bound_for_one_consumer_leaves_the_rest_alone() -> None:
    assert names(held("a", 1, 1), rest=at_rest({"a": 1}, "q", "r", max_per_consumer=1)) == []
    two = held("a", 1, 1), held("a", 2, 1, resource="r")
    assert names(*two, rest=at_rest({"a": 1}, "q", "r", max_per_consumer=1)) == ["uneven"]


def test_consumer_with_too_much_is_found() -> None:
    mine = [held("a", at, 1, resource=f"r{at}") for at in range(4)]
    assert names(*mine, rest=at_rest({"a": 1, "b": 1}, "r0", "r1", "r2", "r3")) == ["uneven"]


# --- moves ------------------------------------------------------------------------------


def test_join_may_take_its_share() -> None:
    assert names(*even("a", "b"), Joined(1, "c"), Revoked(1, "r0", 1)) == []


def test_join_that_takes_more_than_its_share_is_found() -> None:
    """Of 4 resources the third consumer needs one, as two of three may keep 2 and 1."""
    taken = Revoked(1, "r0", 1), Revoked(1, "r1", 2)
    assert names(*even("a", "b"), Joined(1, "c"), *taken) == ["needless_move"]


def test_move_where_nothing_changed_is_found() -> None:
    """As after a change of master that has another mind."""
    assert names(*even("a", "b"), Revoked(1, "r0", 1)) == ["needless_move"]


def test_resource_on_its_way_is_not_taken_twice() -> None:
    events = [*even("a", resources=2), Joined(1, "b"), Revoked(1, "r0", 1)]
    assert names(*events) == []
    assert names(*events, Revoked(2, "r1", 2)) == ["needless_move"]
    assert names(*events, Freed(2, "r0", 1), Assigned(2, "r0", "b", 3), Revoked(3, "r1", 2)) == ["needless_move"]


def test_what_is_freed_by_a_consumer_that_left_is_shared_out_without_a_move() -> None:
    events = [*even("a", "b"), Left(1, "b"), Assigned(2, "r1", "a", 5), Assigned(2, "r3", "a", 6)]
    assert names(*events) == []
    assert names(*events, Revoked(3, "r0", 1)) == ["needless_move"]


def test_consumer_with_weight_0_gives_everything_up() -> None:
    assert names(*even("a", "b"), Joined(1, "a", weight=0), Revoked(2, "r0", 1), Revoked(2, "r2", 3)) == []
    assert names(*even("a", "b"), Joined(1, "a", weight=0), Revoked(2, "r1", 2)) == []


def test_order_may_move_one_resource_and_another_one_back() -> None:
    ordered = [*even("a", "b"), Ordered(1, "r0", "b"), Revoked(2, "r0", 1, wanted_by="b")]
    assert names(*ordered, Revoked(2, "r1", 2)) == []
    assert names(*ordered, Revoked(2, "r1", 2), Revoked(2, "r3", 4)) == ["needless_move"]


def test_move_that_nobody_ordered_is_found() -> None:
    assert names(*even("a", "b"), Revoked(2, "r0", 1, wanted_by="b")) == ["needless_move"]
    assert names(*even("a", "b"), Ordered(1, "r1", "b"), Revoked(2, "r0", 1, wanted_by="b")) == ["needless_move"]


# Of five resources a and b hold two each and c one, which an operator moves to a. For it r0 goes back to c, but is
# deleted. One of the four that are left has to go to c instead, as a has two with the one that was moved to it.
MOVED = [
    *(Joined(0, each) for each in "abc"),
    *(Added(0, f"r{at}") for at in range(5)),
    *(Assigned(0, f"r{at}", holder, at + 1) for at, holder in enumerate("aabbc")),
    Ordered(1, "r4", "a"),
    Revoked(2, "r4", 5, wanted_by="a"),
    Revoked(2, "r0", 1),
    Removed(3, "r0"),
]


def test_resource_that_an_operator_moves_counts_for_the_consumer_who_gets_it() -> None:
    assert names(*MOVED, Revoked(3, "r2", 3)) == []
    assert names(*MOVED, Revoked(3, "r2", 3), Revoked(3, "r3", 4)) == ["needless_move"]


@pytest.mark.parametrize(
    "void",
    [
        [Ordered(3, "r4", "c"), Revoked(3, "r4", 5, wanted_by="c")],
        [Joined(3, "d", weight=0)],
        [Joined(3, "d", weight=0), Left(3, "d")],
        [Freed(3, "r4", 5)],
    ],
)
def test_resource_that_no_operator_moves_there_any_more_does_not_count(void: list[Event]) -> None:
    assert names(*MOVED, *void, Revoked(4, "r2", 3)) == ["needless_move"]


def test_queue_that_is_deleted_may_be_revoked_and_makes_others_move() -> None:
    gone: list[Event] = [Removed(1, "r0"), Revoked(1, "r0", 1), Removed(1, "r2"), Revoked(1, "r2", 3)]
    assert names(*even("a", "b"), *gone) == []
    assert names(*even("a", "b"), *gone, Revoked(2, "r1", 2)) == []
    assert names(*even("a", "b"), *gone, Revoked(2, "r1", 2), Revoked(2, "r3", 4)) == ["needless_move"]


def test_queue_that_is_made_anew_before_its_holder_is_asked_may_be_revoked() -> None:
    assert names(*even("a", "b"), Removed(1, "r0"), Added(2, "r0"), Revoked(3, "r0", 1)) == []


def test_call_that_makes_two_consumers_is_found() -> None:
    assert names(Joined(1, "a", call="x"), Joined(2, "a", weight=0, call="x"), Joined(3, "b", call="y")) == []
    assert names(Joined(1, "a", call="x"), Joined(2, "b", call="x")) == ["joined_twice"]
    assert names(Joined(1, "a"), Joined(2, "b")) == []


# --- sessions ---------------------------------------------------------------------------


def test_session_that_ends_in_time_is_clean() -> None:
    assert names(Renewed(0, "a", 1), Renewed(5 * S, "a", 5 * S + 9), Left(15 * S, "a", is_over=True)) == []


def test_session_that_ends_too_soon_is_found() -> None:
    assert names(Renewed(5 * S, "a", 5 * S + 9), Left(14 * S, "a", is_over=True)) == ["session_short"]


def test_consumer_may_leave_at_any_time() -> None:
    assert names(Renewed(5 * S, "a", 5 * S + 9), Left(6 * S, "a")) == []


def test_clock_that_was_put_forward_ends_sessions() -> None:
    events = Renewed(5 * S, "a", 5 * S + 9), Left(14 * S, "a", is_over=True)
    assert names(*events, jumps=(Jump(10 * S, 2_000),)) == []
    assert names(*events, jumps=(Jump(4 * S, 2_000),)) == ["session_short"]


def took_over(from_s: float, until_s: float) -> TookOver:
    return TookOver(0, int(from_s * S), int(until_s * S))


def test_session_that_would_end_without_a_master_lives_on() -> None:
    renewed, over = Renewed(5 * S, "a", 5 * S + 9), Left(16 * S, "a", is_over=True)
    assert names(renewed, over) == []
    assert names(renewed, took_over(14, 18), over) == ["session_short"]
    assert names(renewed, took_over(14, 15.5), took_over(15.4, 17), over) == ["session_short"]
    assert names(renewed, took_over(6, 14), took_over(15.5, 18), over) == []


def test_session_that_ended_before_the_next_master_came_is_clean() -> None:
    """Though that one's span begins before, as it does not know what the last one did then."""
    assert names(Renewed(5 * S, "a", 5 * S + 9), Left(16 * S, "a", is_over=True), took_over(14, 18)) == []


def test_session_that_may_have_ended_behind_the_silence_is_clean() -> None:
    """The call may have renewed it late, so that it ended when there was a master again."""
    assert names(Renewed(5 * S, "a", 8 * S), took_over(14, 17), Left(17 * S + S // 2, "a", is_over=True)) == []


# --- the arithmetic ---------------------------------------------------------------------


def test_shares_follow_the_weights() -> None:
    assert shares({"a": 1, "b": 2, "c": 0}, 6) == {"a": 2, "b": 4, "c": 0}
    assert shares({"a": 1, "b": 1}, 3) == {"a": Fraction(3, 2), "b": Fraction(3, 2)}


def test_who_is_full_leaves_the_rest_to_the_others() -> None:
    assert shares({"a": 8, "b": 1, "c": 1}, 6, 3) == {"a": 3, "b": Fraction(3, 2), "c": Fraction(3, 2)}
    assert shares({"a": 1, "b": 1}, 9, 2) == {"a": 2, "b": 2}


@pytest.mark.parametrize(
    ("counts", "moves"),
    [
        ({"a": 4, "b": 0}, 2),
        ({"a": 3, "b": 1}, 1),
        ({"a": 2, "b": 2, "c": 0}, 1),
        ({"a": 2, "b": 1, "c": 1}, 0),
        ({"a": 1, "b": 1}, 0),
        ({"a": 0, "b": 0, "c": 0, "d": 4}, 3),
    ],
)
def test_fewest_moves_of_four_resources(counts: dict[str, int], moves: int) -> None:
    assert fewest_moves(counts, shares(dict.fromkeys(counts, 1), 4)) == moves


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=4), st.integers(0, 3))
def test_fewest_moves_are_those_of_the_best_of_all_sharings(rows: list[tuple[int, int]], free: int) -> None:
    """Found by trying all."""
    weights = {str(at): weight for at, (weight, _) in enumerate(rows)}
    counts = {str(at): count for at, (_, count) in enumerate(rows)}
    wanted = shares(weights, sum(counts.values()) + free)
    best = {0: 0}
    for name, share in wanted.items():
        fitting = [number for number in range(int(share), int(share) + 2) if abs(number - share) < 1]
        grown: dict[int, int] = {}
        for out, stay in best.items():
            for number in fitting:
                grown[out + number] = max(grown.get(out + number, 0), stay + min(number, counts[name]))
        best = grown
    assert fewest_moves(counts, wanted) == sum(counts.values()) - best[int(sum(wanted.values()))]
