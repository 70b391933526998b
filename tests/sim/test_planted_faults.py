"""Faults planted in the real code are caught by name; the same seeds are clean without them."""

import sys
from functools import cache

import pytest
from msgspec import Struct
from msgspec.structs import replace

from elasticq.checks.dead_letters import COPIED, MOVED_TWICE, RECEIVED_TOO_OFTEN
from elasticq.checks.fifo import ATTEMPT_DIFFERS, MISORDERED, NOT_DEDUPLICATED, OVERTAKEN
from elasticq.checks.groups import (
    JOINED_TWICE,
    NEEDLESS_MOVE,
    NOT_HELD,
    SESSION_SHORT,
    STALE_ACT,
    TOKEN_FELL,
    TWO_HOLDERS,
    UNEVEN,
)
from elasticq.checks.leases import LEASE_DIFFERS, LEASE_REVIVED, LEASE_SHORT, LEASE_UNSEALED
from elasticq.checks.partitions import MISROUTED
from elasticq.checks.priorities import MISPRIORITISED
from elasticq.checks.queue import DUPLICATED, EARLY, LOST, RESURRECTED
from elasticq.sim import invariants as rule
from elasticq.sim import topics
from elasticq.sim.client import HANDLE_REFUSED
from elasticq.sim.faults import Scenario, scenario
from elasticq.sim.repeats import REPLY_WITHDRAWN, TWO_EFFECTS
from elasticq.sim.world import run
from tests.sim import planted, planted_groups, planted_topics

SEEDS = range(1, 21)
DURATION_MS = 24_000
AT_REST_MS = 40_000  # where the group is left in peace for long enough at the end
FAULTS = 10

CRASHES = ("crash_master", "crash_all", "crash", "crash_next_voter")
LOST_TAILS = ("isolate_appending_master", "crash_appending_master", "crash_master", "restart")
FAILOVERS = ("crash_master", "isolate_master", "pause_master", "restart")
LATE_FRAMES = ("duplicates", "stragglers")
COMERS = ("wipe", "join", "isolate", "crash")
SPLITS = ("isolate_master", "cut_master_from_majority", "bridge", "flap")
LEASES = ("leases",)
SHARES = ("shares",)
URGENT = ("priorities",)
LANES = ("all_fifo", "partitions")
FIFO, DEAD = ("all_fifo",), ("all_fifo", "dead_letters")
TOPICS = ("topics",)
GROUPS = ("groups",)
MILD = ("restart", "transfer")  # where the consumers' own faults count
ADVANCES = ("advance", "advance", "crash_master", "restart")
SLOW_COMMITS = ("slow_disk", "loss_burst", "isolate_master", "crash_master")


class Case(Struct, frozen=True):
    """A fault, the names under which it may be found, and the faults of the world that provoke it."""

    planted: planted.Planted
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    background: tuple[str, ...] = ()
    members: int = 3
    volatile: tuple[int, ...] = ()
    features: tuple[str, ...] = ()
    lost_reply_share: float | None = None  # else as the seed has it
    proxies: int = 0  # with them members and proxies hold calls, half of which have no id
    duration_ms: int = DURATION_MS


CASES = {
    case.planted.__name__: case
    for case in (
        Case(
            planted.one_sync_removed,
            (rule.ACK_NOT_DURABLE, rule.VOTE_NOT_DURABLE, rule.REPLY_NOT_ON_MAJORITY),  # whichever record it was
            CRASHES,
        ),
        Case(planted.vote_not_persisted, (rule.VOTE_NOT_DURABLE, rule.VOTED_TWICE), CRASHES),
        Case(planted.vote_for_a_stale_log, (rule.VOTE_FOR_STALE_LOG, rule.COMMITTED_MISSING), LOST_TAILS, ("loss",)),
        Case(planted.reply_before_commit, (rule.REPLY_NOT_ON_MAJORITY,), FAILOVERS),
        Case(planted.dedup_hit_before_commit, (rule.REPLY_NOT_ON_MAJORITY, rule.IDENTITY_UNKNOWN, EARLY), SLOW_COMMITS),
        Case(planted.sequence_without_term, (rule.IDENTITY_REUSED,), LOST_TAILS),
        Case(planted.old_term_committed_by_counting, (rule.OLD_TERM_COMMITTED,), LOST_TAILS),
        Case(planted.truncate_without_conflict, (rule.TRUNCATED_WITHOUT_CONFLICT,), FAILOVERS, LATE_FRAMES),
        Case(planted.serving_before_takeover, (rule.SERVING_BEFORE_TAKEOVER,), FAILOVERS),
        Case(planted.restarted_member_raises_its_term, (rule.TERM_RAISED_AT_RESTART,), CRASHES),
        Case(planted.wall_clock_stamps, (rule.CLOCK_AHEAD, rule.CLOCK_JUMPED), FAILOVERS, ("wild_clock",)),
        Case(planted.rows_without_removals, (rule.ROWS_DIFFER, RESURRECTED), CRASHES),
        Case(planted.rows_without_the_guid_table, (rule.ROWS_DIFFER, DUPLICATED, TWO_EFFECTS), CRASHES),
        Case(planted.apply_that_reads_a_clock, (rule.ROWS_DIFFER,), FAILOVERS),
        Case(planted.acknowledging_above_the_snapshot, (rule.ACK_NOT_DURABLE,), COMERS),
        Case(planted.random_receipt_handle, (rule.IDENTITY_UNKNOWN, HANDLE_REFUSED), ("crash", "pause")),
        Case(planted.guid_table_missing_in_the_snapshot, (rule.ROWS_DIFFER, DUPLICATED, TWO_EFFECTS), COMERS),
        Case(
            planted.history_aged_by_the_wall_clock,
            (TWO_EFFECTS, DUPLICATED),
            ("crash_master", "restart", "loss_burst"),
            ("wild_clock",),
            lost_reply_share=0.3,
        ),
        Case(
            planted.history_read_after_the_state,
            (REPLY_WITHDRAWN,),
            FAILOVERS,
            features=(*DEAD, "move_tasks"),
            lost_reply_share=0.3,
        ),
        Case(
            planted.quorum_by_who_is_seen,  # both halves go on
            (rule.REPLY_NOT_ON_MAJORITY, rule.COMMITTED_CHANGED, rule.COMMITTED_MISSING, rule.WRITE_BELOW_QUORUM),
            SPLITS,
        ),
        Case(
            planted.memory_member_keeps_its_id,
            (rule.TERM_FELL, rule.VOTED_TWICE, rule.COMMITTED_MISSING),
            ("crash", "crash_master", "crash_all", "restart"),
            volatile=(0,),
        ),
        Case(planted.two_changes_of_voters_at_once, (rule.VOTERS_JUMPED, rule.VOTERS_CHANGED_TWICE), COMERS),
        Case(planted.fifo_order_forgotten_at_takeover, (OVERTAKEN, MISORDERED), FAILOVERS, features=FIFO),
        Case(planted.priorities_lost_in_the_snapshot, (rule.ROWS_DIFFER, MISPRIORITISED), COMERS, features=URGENT),
        Case(planted.priorities_forgotten_at_takeover, (rule.ROWS_DIFFER, MISPRIORITISED), FAILOVERS, features=URGENT),
        Case(planted.partition_gives_what_is_next_in_the_queue, (MISROUTED,), FAILOVERS, features=LANES),
        Case(planted.partition_forgets_what_came_back, (LOST,), FAILOVERS, features=LANES),
        Case(planted.group_served_past_its_first_in_flight, (OVERTAKEN,), FAILOVERS, features=FIFO),
        Case(planted.dedup_ids_only_of_this_term, (NOT_DEDUPLICATED, TWO_EFFECTS), FAILOVERS, features=FIFO),
        Case(
            planted.dedup_table_missing_in_the_snapshot,
            (NOT_DEDUPLICATED, DUPLICATED, TWO_EFFECTS),
            ("wipe", "transfer"),  # who has it by a snapshot becomes the master
            features=FIFO,
            lost_reply_share=0.3,
        ),
        Case(planted.attempt_forgets_what_it_got, (ATTEMPT_DIFFERS,), FAILOVERS, features=(*FIFO, "attempts")),
        Case(
            planted.dead_letter_forgets_its_source_removal,
            (MOVED_TWICE, RESURRECTED, EARLY, COPIED),
            FAILOVERS,
            features=DEAD,
        ),
        Case(planted.dead_letter_one_receive_too_late, (RECEIVED_TOO_OFTEN,), FAILOVERS, features=("dead_letters",)),
        Case(planted.dead_letter_only_removed, (LOST,), FAILOVERS, features=DEAD),
        Case(
            planted.move_task_leaves_what_it_moved,
            (COPIED, DUPLICATED, NOT_DEDUPLICATED),
            FAILOVERS,
            features=(*DEAD, "move_tasks"),
        ),
        Case(
            planted_topics.copies_in_two_entries,
            (topics.PARTIAL, topics.LOST, topics.DOUBLED),
            FAILOVERS,
            features=TOPICS,
        ),
        Case(planted_topics.cursor_in_memory_only, (topics.DOUBLED, topics.PARTIAL), FAILOVERS, features=TOPICS),
        Case(planted_topics.filter_asked_at_the_delivery, (topics.PARTIAL, topics.LOST), FAILOVERS, features=TOPICS),
        Case(planted_topics.retried_publish_is_another, (topics.DOUBLED, topics.PARTIAL), FAILOVERS, features=TOPICS),
        Case(
            planted.advance_that_one_member_forgets,
            (rule.ROWS_DIFFER, rule.CLOCK_AHEAD, rule.CLOCK_JUMPED),
            ADVANCES,
        ),
        Case(planted.rows_without_the_advances, (rule.ROWS_DIFFER, rule.CLOCK_AHEAD), ADVANCES),
        Case(planted.advance_in_heartbeats, (rule.CLOCK_AHEAD, rule.CLOCK_JUMPED), ADVANCES),
        Case(
            planted.lease_expires_call_by_call,
            (LEASE_REVIVED, LEASE_UNSEALED, LEASE_SHORT),
            FAILOVERS,
            features=LEASES,
        ),
        Case(
            planted.id_of_an_expired_lease_receives_anew,
            (LEASE_REVIVED, LEASE_DIFFERS, LEASE_UNSEALED, RESURRECTED, EARLY),
            FAILOVERS,
            features=LEASES,
        ),
        Case(
            planted.lease_is_sealed_in_words_only,
            (LEASE_UNSEALED, LEASE_DIFFERS, LEASE_REVIVED, LOST),  # lost: committed, and nobody was told of it
            FAILOVERS,
            features=LEASES,
        ),
        Case(planted.committed_lease_keeps_its_messages, (RESURRECTED,), FAILOVERS, features=LEASES),
        Case(planted.proxy_names_a_call_anew, (DUPLICATED,), LOST_TAILS, ("loss",), proxies=2),
        Case(planted.time_of_any_earlier_master, (rule.CLOCK_JUMPED,), FAILOVERS),
        Case(planted.follower_links_its_clock_ahead, (rule.CLOCK_JUMPED,), FAILOVERS),
        Case(
            planted.leases_missing_in_the_rows,
            (rule.ROWS_DIFFER, LEASE_SHORT, LEASE_DIFFERS, LOST),
            CRASHES,
            features=LEASES,
        ),
        Case(planted.slot_is_not_given_back_on_time_out, (rule.TURNS_DIFFER, LOST), FAILOVERS, features=SHARES),
        Case(planted.turns_by_a_random_number_of_ones_own, (rule.TURNS_DIFFER,), FAILOVERS, features=SHARES),
        Case(planted.due_time_by_the_wall_clock, (rule.DELIVERED_EARLY,), FAILOVERS, features=("schedules",)),
        Case(planted.turns_missing_in_the_rows, (rule.ROWS_DIFFER,), CRASHES, features=SHARES),
        Case(
            planted_groups.resource_assigned_before_it_is_given_back,
            (TWO_HOLDERS, STALE_ACT),
            FAILOVERS,
            features=GROUPS,
        ),
        Case(planted_groups.resource_freed_with_its_queue, (TWO_HOLDERS,), MILD, features=GROUPS),
        Case(planted_groups.sessions_without_grace, (SESSION_SHORT,), FAILOVERS, features=GROUPS),
        Case(planted_groups.client_that_waits_to_be_told, (TWO_HOLDERS,), MILD, features=GROUPS),
        Case(planted_groups.tokens_missing_in_the_rows, (rule.ROWS_DIFFER, TOKEN_FELL), CRASHES, features=GROUPS),
        Case(
            planted_groups.consumer_counted_twice,
            (NOT_HELD, UNEVEN, NEEDLESS_MOVE),
            FAILOVERS,
            features=GROUPS,
            duration_ms=AT_REST_MS,
        ),
        Case(
            planted_groups.retried_join_is_another,
            (JOINED_TWICE,),
            FAILOVERS,
            features=GROUPS,
            lost_reply_share=0.3,
        ),
        Case(planted_groups.shares_without_memory, (NEEDLESS_MOVE, UNEVEN), FAILOVERS, features=GROUPS),
        Case(planted_groups.fence_that_is_open, (STALE_ACT,), MILD, features=GROUPS),
    )
}

PATCHES_COMPILED = frozenset(
    (
        "vote_not_persisted", "reply_before_commit", "dedup_hit_before_commit", "sequence_without_term",
        "old_term_committed_by_counting", "truncate_without_conflict", "serving_before_takeover",
        "restarted_member_raises_its_term", "wall_clock_stamps", "apply_that_reads_a_clock",
        "acknowledging_above_the_snapshot", "quorum_by_who_is_seen", "two_changes_of_voters_at_once",
        "fifo_order_forgotten_at_takeover", "advance_that_one_member_forgets", "time_of_any_earlier_master",
        "slot_is_not_given_back_on_time_out", "due_time_by_the_wall_clock", "turns_by_a_random_number_of_ones_own",
        "copies_in_two_entries", "retried_publish_is_another",
        "follower_links_its_clock_ahead", "history_aged_by_the_wall_clock", "history_read_after_the_state",
        "proxy_names_a_call_anew", "priorities_forgotten_at_takeover",
        "resource_assigned_before_it_is_given_back", "resource_freed_with_its_queue", "sessions_without_grace",
        "consumer_counted_twice", "retried_join_is_another", "shares_without_memory", "fence_that_is_open",
        "partition_gives_what_is_next_in_the_queue", "partition_forgets_what_came_back",
        "group_served_past_its_first_in_flight", "dead_letter_forgets_its_source_removal",
        "dead_letter_one_receive_too_late", "dead_letter_only_removed",
    )
)  # fmt: skip
"""Faults in methods and functions that are bound when they are compiled: nothing is broken by patching them then.

The other faults are in what is never compiled, as disk, storage and elections, and are caught both ways.
"""
NAMES = [pytest.param(name, marks=pytest.mark.pure if name in PATCHES_COMPILED else ()) for name in CASES]


def _scenario(case: Case, seed: int) -> Scenario:
    chosen = scenario(
        seed,
        case.members,
        kinds=case.kinds,
        background=case.background,
        count=FAULTS,
        duration_ms=case.duration_ms,
        mode="majority",
        volatile=case.volatile,
        features=case.features,
        proxies=case.proxies,
    )
    if case.proxies:
        chosen = replace(chosen, hold_ms=25_000, nameless_share=0.5)
    return chosen if case.lost_reply_share is None else replace(chosen, lost_reply_share=case.lost_reply_share)


@cache
def _clean_findings(chosen: Scenario) -> list[str]:
    """Cases share profiles, and so the clean runs of them."""
    return [finding.name for finding in run(chosen).findings]


def _names_found(case: Case, seed: int) -> set[str]:
    """Under which the planted fault is found in the run of this seed."""
    with case.planted():
        return {finding.name for finding in run(_scenario(case, seed)).findings}


def _names_of_modules() -> dict[tuple[str, str], object]:
    """Return what each name of each module of elasticq means now, by module and name."""
    modules = [(title, module) for title, module in sys.modules.items() if title.startswith("elasticq.")]
    return {(title, name): value for title, module in modules for name, value in vars(module).items()}


@pytest.mark.parametrize("plant", [case.planted for case in CASES.values()])
def test_planted_fault_leaves_its_module_no_second_name_for_the_honest_code(plant: planted.Planted) -> None:
    """A module that reads the second name would run the honest code, and no seed could find the fault."""
    before = _names_of_modules()
    with plant():
        during = _names_of_modules()
    replaced = {
        (title, id(before[title, name])) for title, name in before if during[title, name] is not before[title, name]
    }
    assert not [key for key, value in during.items() if (key[0], id(value)) in replaced]


@pytest.mark.parametrize("name", NAMES)
def test_planted_fault_is_caught_by_name(name: str) -> None:
    """By the first seed that meets it, which is clean without it."""
    case = CASES[name]
    for seed in SEEDS:
        if found := _names_found(case, seed):
            print(f"{name}: caught by seed {seed}, findings {sorted(found)}")
            assert found <= set(case.names)
            assert not _clean_findings(_scenario(case, seed))
            return
    pytest.fail(f"none of {len(SEEDS)} seeds met it")


@pytest.mark.chaos
@pytest.mark.parametrize("name", NAMES)
def test_planted_fault_is_caught_by_no_other_name_in_any_seed(name: str) -> None:
    case = CASES[name]
    found = [_names_found(case, seed) for seed in SEEDS]
    print(f"{name}: caught in {sum(map(bool, found))} of {len(SEEDS)} seeds, findings {sorted(set().union(*found))}")
    assert any(found)
    assert all(names <= set(case.names) for names in found), found


@pytest.mark.chaos
@pytest.mark.parametrize("name", CASES)
def test_the_same_seeds_are_clean_without_the_fault(name: str) -> None:
    case = CASES[name]
    findings = {seed: _clean_findings(_scenario(case, seed)) for seed in SEEDS}
    assert not any(findings.values()), findings
