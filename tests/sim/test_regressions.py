"""Scenarios that once broke an invariant: clean now, and found again when their cure is taken away."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from elasticq.engine.actions import receive
from elasticq.engine.context import Outcome
from elasticq.engine.stored import mutations as m
from elasticq.model.commands import Call
from elasticq.model.results import ReceiveMessageResult
from elasticq.node.decision import Decision
from elasticq.node.executor import Executor
from elasticq.node.waits.undecided import Undecided
from elasticq.sim.faults import Scenario
from elasticq.sim.world import run
from tests.sim import planted, planted_groups

FOLDER = Path(__file__).parent / "regressions"


def _attempts_not_counted() -> AbstractContextManager[object]:
    def forget(executor: Executor, call: Call, decision: Decision) -> None:
        """The attempt that a client gave up may give back what its retry holds."""

    return patch.object(Executor, "_count_attempt", forget)


def _repetition_owned_what_it_got() -> AbstractContextManager[object]:
    """As if it had received its messages itself: an answer that is lost takes them from whoever has the first one."""
    honest = receive._attempt_repeated

    def owning(*arguments: Any) -> Outcome:
        result, mutations = honest(*arguments)
        assert isinstance(result, ReceiveMessageResult)
        assert result.request_attempt is not None
        received = mutations[0]
        assert isinstance(received, m.MessagesReceived)
        result.request_attempt = (result.request_attempt[0], received.received_ms)
        return result, mutations

    return patch.object(receive, "_attempt_repeated", owning)


def _majority_was_enough_for_a_former_master() -> AbstractContextManager[object]:
    """As if a send of mode all could be answered when its entry is committed."""
    return patch.object(Undecided, "_waits_for_all", lambda undecided, answer: False)


CURES = {
    "former_master_answered_a_send_that_one_voter_lacked": (
        _majority_was_enough_for_a_former_master,
        "reply_not_on_all",
    ),
    "abandoned_attempt_gave_messages_back": (_attempts_not_counted, "early"),
    "waiting_attempt_gave_messages_back": (_attempts_not_counted, "early"),
    "lost_repetition_gave_messages_back": (_repetition_owned_what_it_got, "early"),
    "retried_receive_kept_its_first_deadline": (planted.retried_receive_keeps_its_first_deadline, "early"),
    "lapsed_lease_came_back_with_a_takeover": (planted.lapsed_lease_comes_back_with_a_takeover, "early"),
    "older_handle_moved_what_a_lease_held": (planted.older_handle_acts_on_leased_messages, "early"),
    "dead_learner_became_a_voter": (planted.dead_learner_becomes_a_voter, "order_not_done"),
    "learner_forgot_its_cluster": (planted.learner_forgets_its_cluster, "left_behind"),
    "master_in_memory_had_no_snapshot_before_it_had_committed": (
        planted.memory_has_no_snapshot_before_all_is_committed,
        "no_progress",
    ),
    "worker_that_ended_during_its_start_was_not_started_anew": (
        planted_groups.worker_that_ended_stays_away,
        "not_held",
    ),
}


def _scenario(name: str) -> Scenario:
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Scenario)


def test_every_regression_names_its_cure() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CURES)


@pytest.mark.parametrize("name", CURES)
def test_regression_is_clean(name: str) -> None:
    assert run(_scenario(name)).findings == []


@pytest.mark.parametrize("name", CURES)
def test_regression_is_found_again_without_its_cure(name: str) -> None:
    without_cure, finding = CURES[name]
    with without_cure():
        assert finding in {found.name for found in run(_scenario(name)).findings}
