"""The simulator's clients ask for nothing that may fail: a command that fails all the same is a finding."""

import pytest

from elasticq.engine.actions import send
from elasticq.engine.stored.mutations import MessageStored
from elasticq.node.executor import Executor
from elasticq.sim import many
from elasticq.sim.faults import scenario
from elasticq.sim.process import NODE_FAILED
from elasticq.sim.world import run


def test_a_command_that_fails_is_found_although_the_member_would_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    stored, left = send._Sender.stored, [5]

    def failing(*arguments: object, **named: object) -> MessageStored:
        left[0] -= 1
        assert left[0] != 0, "planted"
        return stored(*arguments, **named)  # type: ignore[arg-type]

    chosen = scenario(1, 3, kinds=(), count=0, duration_ms=12_000)
    assert run(chosen).findings == []
    monkeypatch.setattr(send._Sender, "stored", failing)
    (finding,) = run(chosen).findings
    assert finding.name == NODE_FAILED
    assert "planted" in finding.evidence


def test_a_member_that_does_not_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(executor: Executor, now_ms: int) -> None:
        while now_ms:
            pass

    monkeypatch.setattr(Executor, "serve_due", endless)
    monkeypatch.setattr(many, "RUN_CPU_S", 0.2)
    (finding,) = many.judged(scenario(1, 3, kinds=(), count=0, duration_ms=12_000)).findings
    assert finding.name == NODE_FAILED
    assert "no end after 0.2 s" in finding.evidence
