"""What consumers noted is read as what they believed, and the guard refuses what comes late."""

import json
from pathlib import Path

from elasticq.checks.group_history import Act, Held
from tests.system.groups.guard import Guard
from tests.system.groups.history import Notes, read


def test_the_guard_refuses_a_smaller_token_than_its_greatest(tmp_path: Path) -> None:
    guard = Guard(tmp_path)
    assert guard.write("jobs/0", 7, "a")
    assert guard.write("jobs/0", 7, "a")
    assert guard.write("jobs/0", 9, "b")
    assert not guard.write("jobs/0", 8, "a")
    assert guard.write("jobs/1", 8, "a"), "each resource has a greatest token of its own"
    assert (guard.stale(), guard.lines()) == ([], 4)
    with (tmp_path / "jobs-0").open("a") as file:
        file.write("8 a\n")
    assert guard.stale() == ["jobs-0: 8 a after 9"]


def test_nobody_holds_for_longer_than_without_an_answer(tmp_path: Path) -> None:
    lines = [
        {"consumer": "c", "hold_until_us": 100},
        {"held": ["c", "r", 1], "told_us": 9, "from_us": 10},
        {"act": ["c", "r", 1], "outcome": "ok", "kind": "write", "invoke_us": 20, "complete_us": 21},
        {"consumer": "c", "hold_until_us": 150},
        {"held": ["c", "s", 2], "told_us": 11, "from_us": 12},
        {"stopped": 2, "at_us": 60},
        {"stopped": 1, "at_us": 400},
    ]
    log = tmp_path / "log"
    log.write_text("".join(json.dumps(each) + "\n" for each in lines) + '{"held": ["c"')
    told = read([Notes(log)])
    held = [Held("c", "r", 1, 10, 150), Held("c", "s", 2, 12, 60)]
    assert told.events == [held[0], Act("c", "r", 1, 20, 21, "ok"), held[1]]
    assert told.held == [("r", 9, 10), ("s", 11, 12)]
    assert told.acts == {("write", "ok"): 1}
    assert read([Notes(log, 90), Notes(tmp_path / "none")]).events[0] == Held("c", "r", 1, 10, 90)
