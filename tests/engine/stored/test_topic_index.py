"""The index of topics says what the rows say, whatever was applied, applied twice, rolled back or dumped."""

import json
from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from elasticq.engine.filters.policy import compile_policy
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.topics import deliveries
from elasticq.engine.views.digest import state_digest
from elasticq.engine.views.dump import dump
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import topic_commands as t
from elasticq.model.errors import SqsError
from elasticq.model.names import DEFAULT_ACCOUNT
from tests.engine.desk import replayed
from tests.engine.topic_desk import TopicDesk, arn, arn_of_queue, attribute

Step = tuple[str, int, int]
TOPICS = ("news", "orders.fifo")
ACTIONS = (
    "create", "delete", "subscribe", "subscribe", "subscribe", "pending", "confirm", "unsubscribe", "filter", "publish",
    "publish", "tag", "step", "wait", "makequeue", "takeover",
)  # fmt: skip
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 3), st.integers(0, 3)), max_size=30)
POLICIES = ("", '{"a": ["0", "1"]}', '{"a": ["2"], "b": ["1"]}', '{"a": [{"exists": false}]}')


class TopicDriver:
    """Commands on two topics, as plain steps; every error is an answer like any other."""

    def __init__(self) -> None:
        self.desk = TopicDesk()
        self.arns: list[str] = []
        self.undo: Undo | None = None
        self._create(0, 0)
        self._create(1, 0)

    def run(self, steps: Sequence[Step]) -> None:
        for action, a, b in steps:
            getattr(self, f"_{action}")(a, b)

    def _do(self, command: t.TopicCommand) -> object:
        try:
            return self.desk.do(command, undo=self.undo)
        except SqsError as error:
            return error

    def _create(self, a: int, b: int) -> None:
        name = TOPICS[a % 2]
        self._do(t.CreateTopic(name=name, attributes={"FifoTopic": str(name.endswith(".fifo")).lower()}))

    def _delete(self, a: int, b: int) -> None:
        if b == 0:
            self._do(t.DeleteTopic(arn(TOPICS[a % 2])))

    def _subscribe(self, a: int, b: int) -> None:
        policy = {"FilterPolicy": POLICIES[b]} if POLICIES[b] else {}
        self._note(self._do(t.Subscribe(arn(TOPICS[a % 2]), "sqs", arn_of_queue(f"q{b}"), policy)))

    def _pending(self, a: int, b: int) -> None:
        self._note(self._do(t.Subscribe(arn(TOPICS[a % 2]), "http", f"http://e{b}", {}, "true")))

    def _note(self, result: object) -> None:
        found = getattr(result, "subscription_arn", "")
        if found:
            self.arns.append(found)

    def _confirm(self, a: int, b: int) -> None:
        for _, number in self.desk.state.topics.pending[:1]:
            self._do(t.ConfirmSubscription(arn(TOPICS[a % 2]), self.desk.state.identity.token(number)))

    def _unsubscribe(self, a: int, b: int) -> None:
        if self.arns:
            self._do(t.Unsubscribe(self.arns[b % len(self.arns)]))

    def _filter(self, a: int, b: int) -> None:
        if self.arns:
            self._do(t.SetSubscriptionAttributes(self.arns[a % len(self.arns)], "FilterPolicy", POLICIES[b]))

    def _publish(self, a: int, b: int) -> None:
        name, is_fifo = TOPICS[a % 2], a % 2 == 1
        self._do(
            t.Publish(
                topic_arn=arn(name),
                message=f"{a}{b}",
                message_attributes={"a": attribute(str(b))} if b else None,
                message_group_id=f"g{b}" if is_fifo else None,
                message_deduplication_id=f"d{b}" if is_fifo else None,
            )
        )

    def _tag(self, a: int, b: int) -> None:
        self._do(t.TagResource(arn(TOPICS[a % 2]), [t.Tag(str(a), str(b))]))

    def _step(self, a: int, b: int) -> None:
        self.desk.write(deliveries.step(self.desk.state, self.desk.context).mutations, self.undo)

    def _wait(self, a: int, b: int) -> None:
        self.desk.wait((1, 400, 86_400, 259_200)[b])

    def _makequeue(self, a: int, b: int) -> None:
        if self.undo is None:
            self.desk.create(f"q{b}")

    def _takeover(self, a: int, b: int) -> None:
        if self.undo is None:
            self.desk.context.term += 1


def check_index(state: State) -> None:
    """Names, ARNs, owners, counts and filters by the rows alone."""
    topics, rows = state.topics, state.tables[m.TOPICS.name]
    subscriptions: dict[int, m.SubscriptionSet] = state.tables[m.SUBSCRIPTIONS.name]
    assert {number: topic.row for number, topic in topics.by_number.items()} == rows
    assert {key: topic.row.number for key, topic in topics.names.items() if topic.row is not None} == {
        (row.account, row.name): row.number for row in rows.values()
    }
    stay = {number: row for number, row in subscriptions.items() if not row.is_left}
    assert {key: each.row for key, each in topics.by_key.items()} == {row.key: row for row in stay.values()}
    assert topics.subscription_count == len(subscriptions)
    pending = sorted((row.created_ms, number) for number, row in subscriptions.items() if row.is_pending)
    assert topics.pending == pending
    assert [each.row.number for each in topics.of_owner(DEFAULT_ACCOUNT, 0)] == [
        number for number, row in stay.items() if row.topic in rows
    ]
    assert set(topics.orphans) == {row.topic for row in subscriptions.values()} - set(rows)
    for number, topic in topics.by_number.items():
        own = {key: row for key, row in stay.items() if row.topic == number}
        assert {key: each.row for key, each in topic.subscriptions.items()} == own
        assert set(topic.left) == {key for key in subscriptions.keys() - stay if subscriptions[key].topic == number}
        assert topic.confirmed == sum(not row.is_pending for row in own.values())
        assert topic.by_endpoint == {(row.protocol, row.endpoint): key for key, row in own.items()}
        for value in ("", "0", "1", "2"):
            attributes = {"a": attribute(value), "b": attribute("1")} if value else None
            wanted = [key for key, row in own.items() if not row.is_pending and _passes(row, attributes)]
            assert topic.matching(attributes, "x") == wanted


def _passes(row: m.SubscriptionSet, attributes: dict[str, object] | None) -> bool:
    policy = row.attributes.get("FilterPolicy")
    return not policy or compile_policy(policy, "MessageAttributes").matches(attributes, "x")  # type: ignore[arg-type]


def digest(driver: TopicDriver) -> bytes:
    return state_digest(driver.desk.state, driver.desk.context.now_ms)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_index_always_says_what_the_rows_say_and_twice_is_once(steps: list[Step]) -> None:
    driver = TopicDriver()
    for step in steps:
        driver.run([step])
        check_index(driver.desk.state)
    twice = replayed(driver.desk.log, times=2)
    assert state_digest(twice, driver.desk.context.now_ms) == digest(driver)
    check_index(twice)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.integers(0, 200))
def test_prefix_replayed_twice_and_suffix_thrice_give_the_same_rows(steps: list[Step], cut: int) -> None:
    driver = TopicDriver()
    driver.run(steps)
    log = driver.desk.log
    prefix, suffix = log[: cut % len(log)], log[cut % len(log) :]
    state = replayed([*prefix, *prefix, *suffix, *suffix, *suffix])
    assert state_digest(state, driver.desk.context.now_ms) == digest(driver)
    check_index(state)


@settings(max_examples=80, deadline=None)
@given(before=STEPS, lost=STEPS, after=STEPS)
def test_rolled_back_state_is_the_state_before(before: list[Step], lost: list[Step], after: list[Step]) -> None:
    driver = TopicDriver()
    driver.run(before)
    kept, arns = len(driver.desk.log), list(driver.arns)
    driver.undo = []
    driver.run(lost)
    roll_back(driver.undo)
    del driver.desk.log[kept:]
    driver.undo, driver.arns = None, arns
    check_index(driver.desk.state)
    assert digest(driver) == state_digest(replayed(driver.desk.log), driver.desk.context.now_ms)
    driver.run(after)
    check_index(driver.desk.state)
    assert digest(driver) == state_digest(replayed(driver.desk.log), driver.desk.context.now_ms)


@settings(max_examples=50, deadline=None)
@given(STEPS, STEPS)
@example([("subscribe", 0, 0), ("subscribe", 1, 0), ("subscribe", 1, 1), ("filter", 1, 1)], [("delete", 1, 0)])
def test_dump_is_the_state_and_goes_on_as_a_follower_does(before: list[Step], after: list[Step]) -> None:
    driver = TopicDriver()
    driver.run(before)
    joiner, follower = (TopicDriver() for _ in range(2))
    dumped = [mutation for chunk in dump(driver.desk.state) for mutation in chunk]
    for other, log in ((joiner, dumped), (follower, driver.desk.log)):
        other.desk.state = replayed(log)
        other.desk.steps.clear()
        other.desk.context.now_ms, other.desk.context.term = driver.desk.context.now_ms, driver.desk.context.term + 1
        other.desk.context._numbers = 0
        other.arns = list(driver.arns)
        assert digest(other) == digest(driver)
        check_index(other.desk.state)
        other.run(after)
    # Only the master decides in which order the subscriptions of a deleted topic are removed.
    assert [sorted(map(repr, step)) for step in joiner.desk.steps] == [
        sorted(map(repr, step)) for step in follower.desk.steps
    ]


def test_a_filter_is_compiled_once_and_indexed_by_what_it_asks_for() -> None:
    desk = TopicDesk()
    desk.topic()
    for number in range(100):
        desk.subscribe(f"q{number}", FilterPolicy={"n": [str(number)]})
    topic = desk.state.topics.names[DEFAULT_ACCOUNT, "news"]
    (number,) = topic.matching({"n": attribute("7")}, "x")
    found = topic.subscriptions[number]
    assert json.loads(found.row.attributes["FilterPolicy"]) == {"n": ["7"]}
    assert found.filter is not None
