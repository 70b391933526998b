"""The simulated publishers and subscribers, and the check that a publish reaches all its queues or none, once each.

There are two topics. The copies of a publish to ``few`` fit one entry. Those of a publish to ``many`` do not, so it is
delivered in steps. Nobody receives from the subscribed queues, so at the end each contains all its copies. The filter
of one subscription of ``many`` changes repeatedly. Another subscription is deleted and made again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct, field

from elasticq.model.commands import Command, CreateQueue, MessageAttributeValue
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION, queue_arn, topic_arn
from elasticq.model.results import Result
from elasticq.model.topic_commands import CreateTopic, Publish, SetSubscriptionAttributes, Subscribe, Unsubscribe
from elasticq.model.topic_results import PublishResult, SubscribeResult
from elasticq.sim.client import Client, Periodic
from elasticq.sim.cluster import Cluster
from elasticq.sim.member import Member
from elasticq.sim.queues import TOPICS
from elasticq.sim.workload import Workload

QUEUES: Final = {"few": 3, "many": 6}
NAMES: Final = [f"{topic}{number}" for topic, count in QUEUES.items() for number in range(count)]
FILTERED, CHANGING = "many4", "many5"  # two queues: one whose filter changes, one that unsubscribes
NARROW, WIDE = '{"n": ["0"]}', '{"n": ["0", "1"]}'
PUBLISHERS: Final = 2
PUBLISH_US, CHANGE_US = (100_000, 1_000_000), (5_000, 400_000)
PARTIAL, DOUBLED, LOST, LEAKED = "publish_partial", "publish_doubled", "publish_lost", "publish_leaked"
TWO_IDS, STUCK = "publish_two_ids", "publish_stuck"


class Published(Struct):
    """A publish with all its attempts. complete_us: None if it got no answer. ids: the message ids in its answers."""

    topic: str
    body: str
    number: str
    invoke_us: int
    complete_us: int | None = None
    ids: list[str] = field(default_factory=list)


class Changed(Struct):
    """A change of a subscription.

    is_on: whether it then has the wide filter, or for a created or deleted subscription, whether it exists.
    """

    is_on: bool
    invoke_us: int
    complete_us: int | None = None


class Record(Struct):
    """The record of what the clients of topics did."""

    published: list[Published] = field(default_factory=list)
    filters: list[Changed] = field(default_factory=list)
    subscriptions: list[Changed] = field(default_factory=list)


def insist(client: Client, command: Command, done: Callable[[Result], None]) -> None:
    """Repeat a call of ``client`` until it gets a result, then call ``done`` with it."""

    def ended(result: Result | None) -> None:
        if result is None:
            insist(client, command, done)
        else:
            done(result)

    client.begin(command, None, ended)


class TopicFounder(Client):
    """The client that creates queues, topics and subscriptions one by one, then starts the others."""

    def __init__(self, cluster: Cluster, workload: Workload, name: str, then: Callable[[dict[str, str]], None]) -> None:
        super().__init__(cluster, workload, name)
        self.then = then
        self.arns: dict[str, str] = {}

    def start(self) -> None:
        commands: list[tuple[str, Command]] = [(name, CreateQueue(queue_name=name)) for name in NAMES]
        commands += [(topic, CreateTopic(name=topic)) for topic in QUEUES]
        commands += [(queue, subscribing(queue)) for queue in NAMES]
        self._next(commands)

    def _next(self, commands: list[tuple[str, Command]]) -> None:
        if not commands:
            self.then(self.arns)
            return
        (name, command), *others = commands
        insist(self, command, partial(self._made, name, others))

    def _made(self, name: str, others: list[tuple[str, Command]], result: Result) -> None:
        if isinstance(result, SubscribeResult):
            self.arns[name] = result.subscription_arn
        self._next(others)


def subscribing(queue: str) -> Subscribe:
    attributes = {"RawMessageDelivery": "true"}
    if queue == FILTERED:
        attributes["FilterPolicy"] = WIDE
    endpoint = queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, queue)
    return Subscribe(_arn(queue.rstrip("0123456789")), "sqs", endpoint, attributes)


def filtering(arn: str, is_on: bool) -> Command:
    return SetSubscriptionAttributes(arn, "FilterPolicy", WIDE if is_on else NARROW)


def resubscribing(arn: str, is_on: bool) -> Command:
    return subscribing(CHANGING) if is_on else Unsubscribe(arn)


def _arn(topic: str) -> str:
    return topic_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, topic)


class Publisher(Periodic):
    pause_us = PUBLISH_US

    def __init__(self, cluster: Cluster, workload: Workload, name: str, record: Record) -> None:
        super().__init__(cluster, workload, name)
        self.record = record

    def act(self) -> None:
        topic = self.random.choice(tuple(QUEUES))
        made = Published(topic, f"{self.name}-{self.number}", self.random.choice("01"), self.scheduler.now_us)
        self.record.published.append(made)
        attributes = {"n": MessageAttributeValue("String", made.number)}
        command = Publish(topic_arn=_arn(topic), message=made.body, message_attributes=attributes)
        self.begin(command, None, partial(self._published, made))

    def _published(self, made: Published, result: Result | None) -> None:
        if isinstance(result, PublishResult):
            made.complete_us = self.scheduler.now_us
            made.ids.append(result.message_id)
        self.start()


class Changer(Periodic):
    """A client that changes one subscription again and again.

    changes: its record. command: returns the change of the subscription ``arn`` to a state of ``Changed.is_on``.
    """

    pause_us = CHANGE_US

    def __init__(
        self,
        cluster: Cluster,
        workload: Workload,
        name: str,
        changes: list[Changed],
        arn: str,
        command: Callable[[str, bool], Command],
    ) -> None:
        super().__init__(cluster, workload, name)
        self.changes, self.arn, self.command = changes, arn, command
        self.is_on = True

    def act(self) -> None:
        self.is_on = not self.is_on
        change = Changed(self.is_on, self.scheduler.now_us)
        self.changes.append(change)
        insist(self, self.command(self.arn, self.is_on), partial(self._changed, change))

    def _changed(self, change: Changed, result: Result) -> None:
        change.complete_us = self.scheduler.now_us
        if isinstance(result, SubscribeResult):
            self.arn = result.subscription_arn
        self.start()


class TopicClients:
    """All clients of topics in a run. Scenarios without the feature ``topics`` have none."""

    def __init__(self, cluster: Cluster, workload: Workload) -> None:
        self.cluster = cluster
        self.workload = workload
        self.record = Record()
        self.is_there = TOPICS in cluster.scenario.features

    def start(self) -> None:
        if self.is_there:
            TopicFounder(self.cluster, self.workload, "topic-founder", self._begin).start()

    def _begin(self, arns: dict[str, str]) -> None:
        cluster, workload, record = self.cluster, self.workload, self.record
        publishers = [Publisher(cluster, workload, f"publisher{number}", record) for number in range(PUBLISHERS)]
        filterer = Changer(cluster, workload, "filterer", record.filters, arns[FILTERED], filtering)
        subscriber = Changer(cluster, workload, "subscriber", record.subscriptions, arns[CHANGING], resubscribing)
        for client in (*publishers, filterer, subscriber):
            client.start()

    # --- the check ------------------------------------------------------------------

    def judge(self, member: Member) -> None:
        """Check the contents of the queues at the end of a run. member: the master."""
        if not self.is_there or not self.record.published:
            return
        node = member.core
        if node.state.publishes:
            self._found(STUCK, f"{len(node.state.publishes)} publishes are not delivered at the end")
            return
        held = {name: _bodies(member, name) for name in NAMES}
        for publish in self.record.published:
            self._check_publish(publish, held)

    def _found(self, name: str, evidence: str) -> None:
        self.cluster.trace.found(name, evidence)

    def _check_publish(self, publish: Published, held: dict[str, Counter[str]]) -> None:
        counts = {name: bodies[publish.body] for name, bodies in held.items() if name.startswith(publish.topic)}
        evidence = f"{publish.body} to {publish.topic}: {json.dumps(counts)}"
        if len(set(publish.ids)) > 1:
            self._found(TWO_IDS, f"{publish.body} is {publish.ids}")
        if max(counts.values()) > 1:
            self._found(DOUBLED, evidence)
        certain = {name: count for name, count in counts.items() if name not in (FILTERED, CHANGING)}
        was = None
        if publish.topic == "many":
            was = _state_during(self.record.filters, publish)
        if was is not None:
            passes = was or publish.number == "0"
            if passes:
                certain[FILTERED] = counts[FILTERED]
            elif counts[FILTERED]:
                self._found(LEAKED, f"{evidence}, which the filter of {FILTERED} refused")
        if publish.topic == "many" and counts[CHANGING]:
            was = _state_during(self.record.subscriptions, publish)
            if was is False:
                self._found(LEAKED, f"{evidence}, though {CHANGING} was not subscribed")
        if len(set(certain.values())) > 1:
            self._found(PARTIAL, evidence)
        elif publish.complete_us is not None and not all(certain.values()):
            self._found(LOST, f"{evidence}, answered")


def _state_during(changes: list[Changed], publish: Published) -> bool | None:
    """Return the state of a subscription from a publish's first attempt to its answer, None if it may have changed."""
    if publish.complete_us is None:
        return None
    is_on = True  # the state that TopicFounder created
    for change in changes:
        if change.complete_us is not None and change.complete_us < publish.invoke_us:
            is_on = change.is_on
        elif change.invoke_us <= publish.complete_us:
            return None
    return is_on


def _bodies(member: Member, name: str) -> Counter[str]:
    """Return how often each body is in a queue, in memory or on the member's disk."""
    node = member.core
    queue = node.state.queue(DEFAULT_ACCOUNT, name)
    found = dict(queue.contents)
    cold = [sequence for sequence in queue.issued if sequence not in queue.contents and queue.row(sequence) is not None]
    if cold:
        read = {content.sequence: content for content in member.disk.read(queue.id, cold)}  # read returns whole pages
        found.update({sequence: read[sequence] for sequence in cold})
    return Counter(content.body for content in found.values())
