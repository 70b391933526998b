"""Consumer groups on a real Node (volatile, one voter) against a card for each consumer, from the contract alone.

What DescribeGroups tells is compared from step to step: who may take a resource from whom, how many, and when.
"""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from elasticq.model import commands as c
from elasticq.model import group_commands as g
from elasticq.model.errors import ElasticqNotHolder, ElasticqUnknownConsumer
from elasticq.model.group_results import GroupsResult, GroupViewResult, ResourceShown
from tests.node.cluster import Solo

SESSION_MS = 3_000
NAMES = ("a", "b", "c", "d", "e")
PICK = st.integers(0, 100)


class Card:
    """One consumer as a person would note it."""

    def __init__(self, weight: int, deadline_ms: int) -> None:
        self.weight = weight
        self.deadline_ms = deadline_ms
        self.revoking: list[int] = []  # tokens that it was asked to give back, as it was told last
        self.given_back: set[int] = set()


class GroupMachine(RuleBasedStateMachine):
    """A resource goes from one to the next only when it was given back, and shares are even."""

    @initialize(most=st.sampled_from([0, 0, 0, 1, 2]), made_first=st.integers(0, 5))
    def begin(self, most: int, made_first: int) -> None:
        self.solo = Solo()
        self.most = most
        self.cards: dict[str, Card] = {}
        self.gone: list[str] = []
        self.queues: set[str] = set()
        self.newest = 0
        self.before: dict[str, ResourceShown] = {}
        self.needed = 0
        for name in NAMES[:made_first]:
            self.queue_comes(NAMES.index(name))
        command = g.ElasticqSetGroup(
            group_name="g", queue_name_prefix="q-", session_timeout_ms=SESSION_MS, max_per_consumer=most
        )
        self.solo.do(command)

    @property
    def now_ms(self) -> int:
        return self.solo.time_ms

    def one(self, pick: int) -> str:
        return sorted(self.cards)[pick % len(self.cards)]

    def heard(self, consumer: str, answer: object) -> None:
        """Note what an answer tells its consumer."""
        assert isinstance(answer, GroupViewResult)
        assert answer.consumer_id == consumer
        assert answer.hold_ms <= SESSION_MS * 2 // 3
        self.cards[consumer].deadline_ms = self.now_ms + SESSION_MS
        self.cards[consumer].revoking = [each.token for each in answer.revoking]
        shown = self.shown()
        mine = {each.token: each.state for each in shown.values() if each.consumer_id == consumer}
        told = {each.token: "held" for each in answer.assigned} | {each.token: "revoking" for each in answer.revoking}
        assert told == mine

    def shown(self) -> dict[str, ResourceShown]:
        answer = self.solo.do(g.ElasticqDescribeGroups())
        assert isinstance(answer, GroupsResult)
        (group,) = answer.groups
        assert {each.consumer_id: each.weight for each in group.consumers} == {
            consumer: card.weight for consumer, card in self.cards.items()
        }
        return {each.resource: each for each in group.resources}

    # --- what happens -------------------------------------------------------------------

    @rule(at=st.integers(0, len(NAMES) - 1))
    def queue_comes(self, at: int) -> None:
        self.solo.create(f"q-{NAMES[at]}")
        self.queues.add(f"q-{NAMES[at]}")

    @rule(at=st.integers(0, len(NAMES) - 1))
    def queue_goes(self, at: int) -> None:
        name = f"q-{NAMES[at]}"
        if name in self.queues:
            self.solo.do(c.DeleteQueue(name))
            self.queues.discard(name)

    @precondition(lambda self: len(self.cards) < 5)
    @rule(weight=st.sampled_from([1, 1, 1, 2, 0]))
    def join(self, weight: int) -> None:
        before = {row.state for row in self.shown().values()}
        answer = self.solo.do(g.ElasticqJoinGroup(group_name="g", weight=weight))
        assert isinstance(answer, GroupViewResult)
        self.cards[answer.consumer_id] = Card(weight, 0)
        self.heard(answer.consumer_id, answer)
        taken = sum(row.state == "revoking" for row in self.shown().values())
        if "revoking" not in before:
            assert taken <= ceil(self.shares()[answer.consumer_id])

    @precondition(lambda self: self.cards)
    @rule(pick=PICK, gives_back=st.booleans())
    def heartbeat(self, pick: int, gives_back: bool) -> None:
        consumer = self.one(pick)
        card = self.cards[consumer]
        released = card.revoking if gives_back else []
        card.given_back |= set(released)
        self.heard(consumer, self.solo.do(g.ElasticqHeartbeat("g", consumer, released)))

    @precondition(lambda self: self.cards)
    @rule(pick=PICK)
    def leave(self, pick: int) -> None:
        consumer = self.one(pick)
        self.solo.do(g.ElasticqLeaveGroup("g", consumer))
        del self.cards[consumer]
        self.gone.append(consumer)

    @precondition(lambda self: self.cards)
    @rule(pick=PICK)
    def drain(self, pick: int) -> None:
        consumer = self.one(pick)
        self.solo.do(g.ElasticqDrainConsumer("g", consumer))
        self.cards[consumer].weight = 0

    @precondition(lambda self: self.gone)
    @rule(pick=PICK)
    def who_is_gone_is_unknown(self, pick: int) -> None:
        consumer = self.gone[pick % len(self.gone)]
        with pytest.raises(ElasticqUnknownConsumer):
            self.solo.do(g.ElasticqHeartbeat("g", consumer))
        with pytest.raises(ElasticqUnknownConsumer):
            self.solo.do(g.ElasticqLeaveGroup("g", consumer))

    @rule(ms=st.sampled_from([1, 500, 1_500, 2_999, 3_000]))
    def time_passes(self, ms: int) -> None:
        self.solo.advance(ms)
        for consumer in [each for each, card in self.cards.items() if card.deadline_ms <= self.now_ms]:
            del self.cards[consumer]
            self.gone.append(consumer)

    @rule(at=st.integers(0, len(NAMES) - 1), back=st.integers(0, 3))
    def act(self, at: int, back: int) -> None:
        """Only the newest token of all opens a queue, and it only for its holder that need not give it back."""
        name = f"q-{NAMES[at]}"
        row = self.shown().get(name)
        if name not in self.queues or row is None:
            return
        token = (row.token or self.newest) - back
        command = c.ReceiveMessage(
            queue_url=name, wait_time_seconds=0, elasticq_group="g", elasticq_token=max(token, 1)
        )
        if back == 0 and row.state == "held":
            self.solo.do(command)
        else:
            with pytest.raises(ElasticqNotHolder):
                self.solo.do(command)

    # --- what must be so ----------------------------------------------------------------

    def shares(self) -> dict[str, Fraction]:
        """Return each consumer's share: by weight, those that reach the bound have it, and the others the rest."""
        full: set[str] = set()
        while True:
            rest = {each: card.weight for each, card in self.cards.items() if each not in full and card.weight}
            left, total = len(self.queues) - self.most * len(full), sum(rest.values())
            found = {each: Fraction(left * weight, total) for each, weight in rest.items()}
            more = {each for each, share in found.items() if self.most and share >= self.most}
            if not more:
                return dict.fromkeys(self.cards, Fraction(0)) | dict.fromkeys(full, Fraction(self.most)) | found
            full |= more

    @invariant()
    def resources_go_only_where_they_may(self) -> None:
        if not self.solo.node.serving:
            return
        self.solo.advance(50)  # the background's step
        if any(card.deadline_ms <= self.now_ms for card in self.cards.values()):
            self.time_passes(1)
        shown = self.shown()
        for resource, row in shown.items():
            before = self.before.get(resource)
            if row.token == (before.token if before is not None else None):
                assert before is None or before.state != "revoking" or row.state == "revoking"
                continue
            if row.token is not None:
                assert row.token > self.newest
            if before is not None and before.consumer_id in self.cards:
                assert before.token in self.cards[before.consumer_id].given_back
        self.newest = max([self.newest, *(row.token or 0 for row in shown.values())])
        for resource, before in self.before.items():
            if resource not in shown and before.consumer_id in self.cards:
                assert before.token in self.cards[before.consumer_id].given_back
        self.before = shown

    @invariant()
    def shares_are_even(self) -> None:
        """Once nothing is on its way; what is revoked is on its way to somebody who lacks it."""
        shown = self.shown()
        wanted = self.shares()
        counts = dict.fromkeys(self.cards, 0)
        for name in self.queues:
            row = shown[name]
            if row.state == "held":
                counts[row.consumer_id or ""] += 1
        moving = sum(row.state == "revoking" for row in shown.values())
        assert all(count <= wanted[each] or count - wanted[each] < 1 for each, count in counts.items())
        lacking = int(sum(wanted.values())) - sum(counts.values())
        assert lacking <= moving
        if not moving:
            assert all(abs(count - wanted[each]) < 1 for each, count in counts.items())


class TestGroupMachine(GroupMachine.TestCase):
    settings = settings(max_examples=50, stateful_step_count=30)
