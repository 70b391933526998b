"""A cluster that is gone for a while: patient clients see nothing, plain ones are told, and nothing appears later."""

import pytest

from tests.system.cluster.cluster import until
from tests.system.cluster.conftest import MakeCluster
from tests.system.cluster.outage import FRONT, Programs, Sent, ghosts_among, out_of_order, switch_off

OFF_S = 5


def test_judge_knows_a_ghost_from_what_was_refused_after_it_stood_in_a_log() -> None:
    dark_s = 10.0, 20.0
    in_the_dark = Sent("dark", 11, 12, 112_000, "503")
    too_early = Sent("early", 9, 12, 112_000, "503")
    answered = Sent("answered", 11, 12, 112_000, "")
    plain = [in_the_dark, too_early, answered]
    assert ghosts_among(plain, {}, dark_s) == []
    assert ghosts_among(plain, {"early": 111_000, "answered": 111_000}, dark_s) == []
    assert ghosts_among(plain, {"early": 113_000, "dark": 111_000}, dark_s) == ["dark", "early"]


def test_judge_knows_what_came_late_or_twice() -> None:
    assert out_of_order(["a-1", "b-1", "a-2", "b-3"]) == []
    assert out_of_order(["a-2", "a-1", "b-1", "b-1", "a-3"]) == ["a-1", "b-1"]


def test_cluster_that_was_off_is_waited_for_and_what_it_refused_never_appears(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(environment={"ELASTICQ_CLUSTER__HOLD_S": "1"}).start()
    with Programs(cluster) as programs:
        dark_s = switch_off(cluster, programs, OFF_S)
        refused = programs.refused_between(*dark_s)
        findings = programs.judge(dark_s)
    print(f"{len(programs.patient_sent)} patient sends, {len(refused)} of {len(programs.plain)} plain ones refused")
    print(programs.refused)
    assert findings.are_none, findings
    assert any("read-only: 1 of 3 members, 2 needed" in sent.error for sent in refused)
    assert any(sent.error == "EndpointConnectionError" for sent in refused)


@pytest.mark.chaos
def test_patient_clients_of_a_member_that_was_killed_go_to_another(make_cluster: MakeCluster) -> None:  # F4
    cluster = make_cluster().start()
    with Programs(cluster) as programs:
        programs.wait_for_more(20)
        cluster.kill9(FRONT)
        sent = len(programs.patient_sent)
        until(lambda: len(programs.patient_sent) >= sent + 40, f"40 more sends; {programs.exceptions}")
        cluster.restart(FRONT)
        cluster.wait_ready()
        programs.wait_for_more(20)
        findings = programs.judge((0, 0))
    assert findings.are_none, findings
    assert programs.refused, "plain clients lose theirs"
