"""What contents weigh, against what they take: memory_max_mb is a promise about the process."""

import gc
import tracemalloc
from typing import Any

import pytest

from elasticq.engine.apply import apply
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.model.commands import MessageAttributeValue

MESSAGES = 1_000
TINY = {f"a{number}": MessageAttributeValue("String", "x") for number in range(10)}
KINDS: dict[str, dict[str, Any]] = {
    "one letter": {},
    "one odd character in many": {"body": "x" * 5_000 + "\U0001f600"},
    "groups of their own": {"group_id": "group-%d"},
    "groups and ids of their own, in order": {"group_id": "group-%d", "deduplication_id": "%064d"},
    "tiny attributes": {"attributes": TINY},
    "an attribute as long as a message": {"attributes": {"a": MessageAttributeValue("Binary", None, b"x" * 5_000)}},
    "a long trace header": {"trace_header": "t" * 5_000},
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_content_takes_more_memory_than_it_weighs(kind: str) -> None:
    state = State()
    attributes = {"FifoQueue": "true"} if "in order" in kind else {}
    apply(state, m.QueueCreated(1, "000000000000", "jobs", attributes, {}, 1))
    fields = {"body": "x"} | KINDS[kind]
    payloads = []
    for number in range(MESSAGES):
        own = {key: value % number if "%" in value else value for key, value in fields.items() if key != "attributes"}
        own |= {"attributes": fields.get("attributes")}
        payloads.append(m.encode([m.MessageStored(1, number + 1, sent_ms=1, sender_id="sender", **own)]))
    gc.collect()
    tracemalloc.start()
    for payload in payloads:
        for mutation in m.decode(payload):
            apply(state, mutation)
    del mutation
    taken_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert state.contents_bytes / 4 < taken_bytes < state.contents_bytes
    apply(state, m.MessagesRemoved(1, list(range(1, MESSAGES + 1))))
    assert state.contents_bytes == 0
