"""The queues of the settings: ``[queues.NAME]`` tables, and the template for queues that are created at first use."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from elasticq.engine.ordering.kinds import FIFO, STANDARD, Kind, kind_named
from elasticq.engine.ordering.partitions import PARTITIONS
from elasticq.engine.stored.redrive_policies import POLICY, read_policy
from elasticq.model import limits
from elasticq.model.commands import DeclareQueue
from elasticq.model.errors import SqsError
from elasticq.model.names import FIFO_SUFFIX, account_of, has_fifo_suffix, queue_arn


class QueueSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One queue. The server creates it at its start. A queue that exists keeps its attributes.

    partitions: of a FIFO queue, 0 for none; attributes: others, with AWS's names; created_ms, modified_ms: when the
    queue was created and changed in another server.
    """

    visibility_timeout_s: Annotated[int, Meta(ge=0, le=limits.VISIBILITY_S_MAX)] | None = None
    delay_s: Annotated[int, Meta(ge=0, le=limits.DELAY_S_MAX)] | None = None
    receive_wait_s: Annotated[int, Meta(ge=0, le=limits.WAIT_S_MAX)] | None = None
    dead_letter_queue: str = ""
    max_receive_count: Annotated[int, Meta(ge=0, le=limits.RECEIVES_MAX)] = 0
    fifo: bool = False
    content_based_deduplication: bool = False
    partitions: Annotated[int, Meta(ge=0, le=limits.PARTITIONS_MAX)] = 0
    copy_to: str = ""
    move_to: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    created_ms: Annotated[int, Meta(ge=0, le=1 << 52)] = 0
    modified_ms: Annotated[int, Meta(ge=0, le=1 << 52)] = 0


class AutoCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """The creation of queues at their first use by SendMessage, ReceiveMessage, GetQueueUrl or GetQueueAttributes.

    template: their settings, as in a ``[queues.NAME]`` table. The master's settings count.
    """

    enabled: bool = False
    template: QueueSettings = field(default_factory=QueueSettings)


class Declarations:
    """The commands that create the queues, dead-letter queues first.

    named: each command after the name of its setting, in the order of execution. wrong: a text for each setting that
    contradicts another; the rehearsal finds what the engine refuses. doubts: a text for each setting that is likely a
    mistake.
    """

    def __init__(self, queues: Mapping[str, QueueSettings], region: str, account: str) -> None:
        self.wrong: list[str] = []
        self.doubts: list[str] = []
        self._region, self._account = region, account
        self._queues = self._named(queues)
        made = {name: self._command(name, queue) for name, queue in self._queues.items()}
        for name in self._queues:
            self._check_targets(name)
        self.named = [(f"queues.{name}", made[name]) for name in self._in_order()]

    def _named(self, queues: Mapping[str, QueueSettings]) -> dict[str, QueueSettings]:
        """Return the queues by full name: .fifo is appended if it is missing."""
        found: dict[str, QueueSettings] = {}
        for name, queue in queues.items():
            whole = f"{name}{FIFO_SUFFIX}" if queue.fifo and not has_fifo_suffix(name) else name
            if whole in found:
                self.wrong.append(f"queues.{whole} is there twice")
            if not kind_named(whole).name_pattern.match(whole):
                self.wrong.append(f"queues.{name}: a name has 1 to 80 letters, digits, - or _")
            found[whole] = queue
        return found

    def _whole(self, target: str) -> str:
        """Return the full name of a queue that another queue names: with .fifo if only that queue exists."""
        is_short = target and target not in self._queues and f"{target}{FIFO_SUFFIX}" in self._queues
        return f"{target}{FIFO_SUFFIX}" if is_short else target

    def _command(self, name: str, queue: QueueSettings) -> DeclareQueue:
        target = self._whole(queue.dead_letter_queue)
        arn = queue_arn(self._region, self._account, target) if target else ""
        kind = kind_named(name)
        self.wrong += [f"queues.{name}: {reason}" for reason in _faults(queue, kind)]
        return DeclareQueue(
            name,
            attributes_of(queue, arn, kind),
            dict(queue.tags),
            self._whole(queue.copy_to),
            self._whole(queue.move_to),
            queue.created_ms,
            queue.modified_ms,
        )

    def _check_targets(self, name: str) -> None:
        for key, target in self._targets(name):
            if not kind_named(target).exchanges_with(kind_named(name)):
                self.wrong.append(f"queues.{name}.{key}: {target} is not of the same type, FIFO or standard")
            elif target not in self._queues:
                missing = self.wrong if key == "dead_letter_queue" else self.doubts
                missing.append(f"queues.{name}.{key}: the settings have no queue {target}")
        for keys in (("dead_letter_queue",), ("copy_to", "move_to")):
            circle = self._circle(name, keys)
            if circle and min(circle) == name:
                self.wrong.append(f"queues.{name}: {' and '.join(keys)} lead in a circle, {' -> '.join(circle)}")

    def _targets(self, name: str) -> Iterator[tuple[str, str]]:
        """Yield the queues that a queue names: (the setting, full name)."""
        queue = self._queues.get(name)
        if queue is None:
            return
        dead_letters = queue.dead_letter_queue or self._target_of(queue.attributes.get(POLICY, ""))
        for key, target in (
            ("dead_letter_queue", dead_letters),
            ("copy_to", queue.copy_to),
            ("move_to", queue.move_to),
        ):
            if target:
                yield key, self._whole(target)

    def _target_of(self, policy: str) -> str:
        """Return the name of the dead-letter queue in a RedrivePolicy; empty if it is not one of these queues."""
        try:
            owner, name = read_policy(policy, self._account).target if policy else ("", "")
        except SqsError:
            return ""  # ``_faults`` reports it
        is_ours = account_of(owner) == self._account and f":{self._region}:" in policy
        return name if is_ours else ""

    def _circle(self, name: str, keys: tuple[str, ...]) -> list[str]:
        """Return a path from ``name`` back to itself through the targets of ``keys``, empty if there is none."""
        ways, passed = [[name]], set()
        while ways:
            way = ways.pop()
            for key, target in self._targets(way[-1]):
                if key in keys and target == name:
                    return [*way, name]
                if key in keys and target not in passed:
                    passed.add(target)
                    ways.append([*way, target])
        return []

    def _in_order(self) -> list[str]:
        """Return the names of the queues, each dead-letter queue before those that name it."""
        placed: dict[str, None] = {}
        for name in self._queues:
            way: list[str] = []
            after: str | None = name
            while after is not None and after not in placed and after not in way:
                way.append(after)
                dead = dict(self._targets(after)).get("dead_letter_queue", "")
                after = dead if dead in self._queues else None
            placed.update(dict.fromkeys(reversed(way)))
        return list(placed)


def attributes_of(queue: QueueSettings, dead_letter_arn: str, kind: Kind) -> dict[str, str]:
    """Return a queue's attributes with AWS's names. ``kind``: the one that its name means, FIFO or standard."""
    given: dict[str, Any] = {
        "VisibilityTimeout": queue.visibility_timeout_s,
        "DelaySeconds": queue.delay_s,
        "ReceiveMessageWaitTimeSeconds": queue.receive_wait_s,
        kind.marker: kind.marker_value or None,
        "ContentBasedDeduplication": "true" if queue.content_based_deduplication else None,
        PARTITIONS: queue.partitions or None,
    }
    attributes = {name: str(value) for name, value in given.items() if value is not None}
    if dead_letter_arn and queue.max_receive_count:
        policy = {"deadLetterTargetArn": dead_letter_arn, "maxReceiveCount": queue.max_receive_count}
        attributes["RedrivePolicy"] = json.dumps(policy)
    return {**attributes, **queue.attributes}


def _faults(queue: QueueSettings, kind: Kind) -> Iterator[str]:
    if bool(queue.dead_letter_queue) != bool(queue.max_receive_count):
        yield "dead_letter_queue and max_receive_count (1 to 1000) belong together"
    if queue.content_based_deduplication and not kind.deduplicates_all:
        yield "content_based_deduplication is for FIFO queues"


def template_of(made: AutoCreate, region: str, account: str) -> DeclareQueue | None:
    """Return the command that creates a queue at its first use, None if an unknown queue is an error."""
    if not made.enabled:
        return None
    queue = made.template
    arn = queue_arn(region, account, queue.dead_letter_queue) if queue.dead_letter_queue else ""
    attributes = attributes_of(queue, arn, FIFO if queue.fifo else STANDARD)
    return DeclareQueue("", attributes, dict(queue.tags), queue.copy_to, queue.move_to)


def template_faults(made: AutoCreate) -> list[str]:
    """Return the contradictions in the template, which may have the settings of FIFO queues, too."""
    return [f"auto_create.template: {reason}" for reason in _faults(made.template, FIFO)]


def template_doubts(made: AutoCreate) -> list[str]:
    if made.enabled and made.template.fifo:
        return ["auto_create.template.fifo has no effect: queues whose names end in .fifo are FIFO queues"]
    return []
