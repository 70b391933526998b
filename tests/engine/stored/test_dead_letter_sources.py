"""The index of dead-letter queues' sources, against the queues themselves after any history."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import commands as c
from elasticq.model.errors import SqsError
from elasticq.model.names import DEFAULT_ACCOUNT
from tests.engine.desk import Desk

NAMES = ("a", "b", "c", "d")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "create", "set", "unset", "delete", "undo"]),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
    ),
    max_size=25,
)


def policy(target: str) -> str:
    return json.dumps(
        {"deadLetterTargetArn": f"arn:aws:sqs:us-east-1:{DEFAULT_ACCOUNT}:{target}", "maxReceiveCount": 3}
    )


def command(step: str, name: str, target: str) -> Any:
    if step == "create":
        return c.CreateQueue(name, {"RedrivePolicy": policy(target)} if target != name else {})
    if step == "delete":
        return c.DeleteQueue(name)
    return c.SetQueueAttributes(name, {"RedrivePolicy": policy(target) if step == "set" else ""})


@settings(max_examples=100)
@given(STEPS)
def test_the_index_says_what_the_policies_say(steps: list[tuple[str, str, str]]) -> None:
    desk, undos = Desk(), list[Undo]()
    desk.context.sixty_second_rules = False
    for step, name, target in steps:
        if step == "undo":
            if undos:
                roll_back(undos.pop())
        else:
            undo: Undo = []
            try:
                desk.do(command(step, name, target), undo=undo)
            except SqsError:
                continue
            undos.append(undo)
        for wanted in NAMES:
            key = (DEFAULT_ACCOUNT, wanted)
            queues = desk.state.queues.values()
            expected = sorted(each.name for each in queues if each.redrive is not None and each.redrive.target == key)
            assert list(desk.state.sources.of(key)) == expected
            assert list(desk.state.sources.of(key, "b")) == [each for each in expected if each > "b"]
            assert desk.state.sources.has(key) is bool(expected)
