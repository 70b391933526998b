"""Random faults around a proxy: each call gets one answer, and each send that was acknowledged is one message."""

from collections import Counter
from random import Random

import pytest

from elasticq.model import commands as c
from elasticq.model.errors import ServiceUnavailable
from elasticq.model.results import ReceiveMessageResult, SendMessageResult
from elasticq.node.orders import TransferMastership
from tests.node.proxied import HOLD_MS, PROXY_ID, Proxied

STEPS = 60
RECEIVE = c.ReceiveMessage("jobs", max_number_of_messages=10, visibility_timeout=600)


class Walk:
    """sent: bodies by the tickets of their sends; asked: the tickets of all calls."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = Proxied()
        self.cluster.do(self.cluster.elect(), c.CreateQueue("jobs"))
        self.cluster.advance(1_300)  # the proxy has heard of the master
        self.sent: dict[int, str] = {}
        self.asked: list[int] = []

    def step(self) -> None:
        name = self.random.choice(self.cluster.names)
        self.random.choice(
            [self.send] * 6
            + [self.receive] * 3
            + [self.wait] * 4
            + [lambda: self.crash(name), lambda: self.restart(name), lambda: self.restart(name)]
            + [lambda: self.unlink(name), lambda: self.link(name), lambda: self.part(name), self.cluster.heal]
            + [lambda: self.hand_over(name), self.lose_frames]
        )()

    def send(self) -> None:
        body = f"{len(self.sent)}"
        guid = body.encode().rjust(16, b"g") if self.random.random() < 0.5 else b""
        ticket = self.cluster.ask(c.SendMessage("jobs", body), guid)
        self.sent[ticket] = body
        self.asked.append(ticket)

    def receive(self) -> None:
        wait_s = self.random.choice([0, 5, 20, None])
        self.asked.append(self.cluster.ask(c.ReceiveMessage("jobs", wait_time_seconds=wait_s, visibility_timeout=5)))

    def wait(self) -> None:
        self.cluster.advance(self.random.choice([1, 20, 200, 2_000, 9_000]))

    def crash(self, name: str) -> None:
        if name in self.cluster.members:
            self.cluster.crash(name)

    def restart(self, name: str) -> None:
        if name in self.cluster.down:
            self.cluster.restart(name)
            self.link(name)

    def unlink(self, name: str) -> None:
        if name in self.cluster.linked:
            self.cluster.unlink(name)

    def link(self, name: str) -> None:
        if name in self.cluster.members and name not in self.cluster.linked:
            self.cluster.link(name)

    def part(self, name: str) -> None:
        other = self.random.choice([each for each in self.cluster.names if each != name])
        self.cluster.part(name, other)

    def hand_over(self, name: str) -> None:
        if name in self.cluster.members:
            self.cluster.order(name, TransferMastership())

    def lose_frames(self) -> None:
        """To or from the proxy, for a while: whoever waits for an answer has to notice by itself."""
        self.cluster.drops = lambda sender, frame: PROXY_ID in (sender, frame.to) and self.random.random() < 0.5
        self.wait()
        self.cluster.drops = None

    def end(self) -> None:
        """All is well again, for longer than any call may wait."""
        self.cluster.heal()
        for name in self.cluster.names:
            self.restart(name)
            self.link(name)
        self.cluster.elect()
        self.cluster.advance(60_000)

    def all_messages(self) -> list[tuple[str, str]]:
        """(body, message id) of each message: none is ever deleted, and all are visible again."""
        (master,) = self.cluster.serving()
        found: list[tuple[str, str]] = []
        while True:
            result = self.cluster.do(master, RECEIVE)
            assert isinstance(result, ReceiveMessageResult)
            if not result.messages:
                return found
            found += [(message.body, message.message_id) for message in result.messages]


@pytest.mark.parametrize("seed", range(10))
def test_each_call_has_one_answer_and_each_acknowledged_send_one_effect(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(STEPS):
        walk.step()
    walk.end()
    outcomes = {ticket: walk.cluster.told(ticket) for ticket in walk.asked}
    assert {len(each) for each in outcomes.values()} == {1}
    kinds = {type(outcome) for (outcome,) in outcomes.values()}
    assert kinds <= {SendMessageResult, ReceiveMessageResult, ServiceUnavailable}
    found = walk.all_messages()
    assert max(Counter(body for body, _ in found).values()) == 1, "no send has two effects"
    acknowledged = {
        (body, outcome.message_id)
        for ticket, body in walk.sent.items()
        for outcome in outcomes[ticket]
        if isinstance(outcome, SendMessageResult)
    }
    assert acknowledged <= set(found)


def test_walks_see_calls_that_are_refused_and_calls_that_outlive_masters() -> None:
    """Otherwise the test above would show little."""
    walk = Walk(1)
    walk.send()
    for name in walk.cluster.names:
        walk.crash(name)
    walk.send()
    walk.cluster.advance(HOLD_MS + 1)
    walk.send()
    walk.end()
    answered, refused, held = ([type(each) for each in walk.cluster.told(ticket)] for ticket in walk.asked)
    assert (answered, refused, held) == ([SendMessageResult], [ServiceUnavailable], [SendMessageResult])
