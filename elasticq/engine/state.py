"""The state of one member: queues with their rows, names, histories and all other objects. Only ``apply`` writes it.

The delivery state of every message is in memory. For messages that were never received nor delayed, it is a range of
sequences. Contents of messages may leave memory once the rows on disk hold them (residency.py).
"""

from collections import deque
from typing import Any

from elasticq.engine.ordering.contract import Order
from elasticq.engine.ordering.fifo import SCOPE_AT_CREATION
from elasticq.engine.ordering.kinds import Kind, kind_of
from elasticq.engine.ordering.leases import Leases
from elasticq.engine.ordering.partitions import partitions_of
from elasticq.engine.ordering.priority import DEFAULT_PRIORITY
from elasticq.engine.ordering.ranges import Ranges
from elasticq.engine.ordering.schedule import is_scheduled_queue
from elasticq.engine.ordering.shares import Stored
from elasticq.engine.ordering.sharing import Sharing, sharing_of
from elasticq.engine.stored.ages import Ages
from elasticq.engine.stored.call_history import History
from elasticq.engine.stored.consumer_group_index import Groups
from elasticq.engine.stored.dead_letter_sources import DeadLetterSources
from elasticq.engine.stored.delivery_rows import UNTOUCHED, Grace, Row
from elasticq.engine.stored.identity import Identity
from elasticq.engine.stored.invocations import Invocations
from elasticq.engine.stored.metadata_rows import METADATA, MetadataKept
from elasticq.engine.stored.mutations import MOVE_TASKS, PUBLISHES, TABLES, MessageStored, MoveTaskSet, PublishSet
from elasticq.engine.stored.queue_names import QueueNames
from elasticq.engine.stored.redrive_policies import POLICY, Redrive, read_policy
from elasticq.engine.stored.topic_index import Topics
from elasticq.engine.stored_attributes import unreadable
from elasticq.model import limits
from elasticq.model.errors import QueueDoesNotExist, SqsError
from elasticq.model.names import is_inner

COPY_TO = "elasticq.CopyTo"
MOVE_TO = "elasticq.MoveTo"
"""Internal attributes that contain the name of a queue. Only the configuration sets them, see redrive/forwards.py."""
HIDDEN = (SCOPE_AT_CREATION, COPY_TO, MOVE_TO)
"""Stored attributes that clients never see."""

SENT_ID_GENERATION_MS = 600_000
"""The length of a generation of deduplication ids. An expired id stays in memory for at most this time."""


class Messages:
    """The messages of one queue between two purges.

    rows: the delivery state of messages, by sequence; which messages have a row: ``Queue.keeps``.
    contents: the contents in memory, by sequence.
    issued: ranges of the sequences whose messages may exist; the sweeper trims its front.
    ages: the approximate send time of each message.
    bytes: the weight of ``contents``.
    late: a heap of (sent_ms, sequence) of the dead letters that arrived while this process ran. They are older than
    the messages in front of them.
    swept: the sequence up to which the sweeper's round has looked for messages delivered too long ago.
    """

    __slots__ = ("ages", "bytes", "contents", "issued", "late", "order", "rows", "swept")

    def __init__(self, grace: Grace, kind: Kind, partitions: int) -> None:
        self.rows: dict[int, Row] = {}
        self.contents: dict[int, MessageStored] = {}
        self.issued = Ranges()
        self.ages = Ages()
        self.late: list[tuple[int, int]] = []
        self.order: Order
        if partitions:
            assert kind.partitioned is not None, "only a kind of queue that supports partitions has any"
            self.order = kind.partitioned(self.rows, self.contents, grace, self.ages, partitions)
        else:
            self.order = kind.order(self.rows, self.contents, grace, self.ages)
        self.bytes = 0
        self.swept = 0


class Queue:
    """A queue: its attributes, its messages and the order over them.

    account: its owner (names.py).
    attributes: the attributes that were set, as texts. ``_parse`` parses them into ``rules``, ``delay_s`` and others.
    unreadable: names of the attributes whose stored values are damaged; they count as absent.
    kind: set at its creation, never changes.
    sharing: the fair-share settings of its groups; None: as in SQS. turns: the stored turns of its groups.
    watermark: all messages with a lower sequence are purged.
    """

    __slots__ = (
        "account",
        "ages",
        "attributes",
        "contents",
        "copy_to",
        "created_ms",
        "default_priority",
        "delay_s",
        "deleted_ms",
        "id",
        "is_forwarding",
        "is_scheduled",
        "issued",
        "kind",
        "last_sequence",
        "message_bytes_max",
        "messages",
        "modified_ms",
        "move_to",
        "name",
        "order",
        "purged_ms",
        "redrive",
        "retention_ms",
        "rows",
        "rules",
        "sharing",
        "tags",
        "turns",
        "unreadable",
        "visibility_s",
        "wait_s",
        "watermark",
    )

    def __init__(
        self,
        queue_id: int,
        account: str,
        name: str,
        created_ms: int,
        grace: Grace,
        attributes: dict[str, str],
        turns: dict[str, Stored] | None = None,
    ) -> None:
        self.id = queue_id
        self.account = account
        self.name = name
        self.tags: dict[str, str] = {}
        self.created_ms = created_ms
        self.modified_ms = created_ms
        self.deleted_ms: int | None = None
        self.purged_ms: int | None = None
        self.watermark = 0
        self.last_sequence = 0
        self.kind = kind_of(attributes)
        self.delay_s = self.default_priority = 0
        self.turns: dict[str, Stored] = {} if turns is None else turns
        self.sharing: Sharing | None = None
        self.attributes = attributes
        self.unreadable: frozenset[str] = frozenset()
        self.hold(Messages(grace, self.kind, self.partitions))
        self.set_attributes(attributes)

    def hold(self, messages: Messages) -> None:
        """Replace the messages of the queue by ``messages``."""
        self.messages = messages
        self.rows = messages.rows
        self.contents = messages.contents
        self.issued = messages.issued
        self.ages = messages.ages
        self.order = messages.order
        self._replace_order()
        self._configure_order()

    def _replace_order(self) -> None:
        """Replace the order by one that follows ``sharing`` and has the same messages."""
        if self.kind.shared is not None:
            self.order = self.messages.order = self.kind.shared(self.order, self.sharing, self.turns)

    def _configure_order(self) -> None:
        self.order.set_delay(self.delay_s * 1_000)
        if self.kind.has_priorities:
            self.order.set_default_priority(self.default_priority)

    def set_attributes(self, attributes: dict[str, str]) -> None:
        """Set the attributes. Those that cannot be read count as absent; ``unreadable`` contains their names."""
        self.attributes = attributes
        self.unreadable = frozenset()
        try:
            self._parse(attributes)
        except (ValueError, SqsError):
            self.unreadable = unreadable(attributes)
            self._parse({name: value for name, value in attributes.items() if name not in self.unreadable})

    def _parse(self, attributes: dict[str, str]) -> None:
        """Parse the attributes into fields. Raise ValueError or SqsError for a value that cannot be read."""

        def number(name: str, default: int) -> int:
            return int(attributes.get(name, default))

        self.delay_s = number("DelaySeconds", limits.DELAY_S_DEFAULT)
        self.default_priority = number(DEFAULT_PRIORITY, 0)
        sharing = sharing_of(attributes) if self.kind.shared is not None else None
        if sharing is not None or self.sharing is not None:
            self.sharing = sharing
            self._replace_order()
        self._configure_order()
        self.message_bytes_max = number("MaximumMessageSize", limits.BODY_BYTES_MAX)
        self.retention_ms = number("MessageRetentionPeriod", limits.RETENTION_S_DEFAULT) * 1_000
        self.wait_s = number("ReceiveMessageWaitTimeSeconds", limits.WAIT_S_DEFAULT)
        self.visibility_s = number("VisibilityTimeout", limits.VISIBILITY_S_DEFAULT)
        self.rules = self.kind.rules(attributes)
        self.is_scheduled = is_scheduled_queue(attributes)
        self.copy_to = attributes.get(COPY_TO, "")
        self.move_to = attributes.get(MOVE_TO, "")
        self.is_forwarding = bool(self.copy_to or self.move_to)
        redrive = attributes.get(POLICY)
        self.redrive: Redrive | None = read_policy(redrive, self.account) if redrive else None

    def row(self, sequence: int) -> Row | None:
        """Return the delivery state of a message, or None if there is no such message."""
        row = self.rows.get(sequence)
        return row if row is not None else self.order.rowless(sequence)

    def sent_by_ms(self, sequence: int) -> int:
        """Return when the message was sent. If its content is not in memory, the time may be later (``ages``)."""
        content = self.contents.get(sequence)
        return content.sent_ms if content is not None else self.ages.sent_by_ms(sequence)

    def keeps(self, row: Row) -> bool:
        """Return whether ``rows`` holds a message with this delivery state. If not, only the order knows the state.

        ``rows`` holds every message that was received. It holds delayed ones only in kinds without ``delays_messages``.
        In the other kinds the order has their deadlines.
        """
        return row.delivery_number > 0 or (row is not UNTOUCHED and not self.kind.delays_messages)

    def join(self, sequence: int, group: str) -> None:
        """Put the message into this group. The first message with a group may replace the queue's order."""
        order = self.order
        if not order.has_groups:
            order = self.order = self.messages.order = self.kind.grouped(order)
        order.join(sequence, group)

    def delayed_until_ms(self, now_ms: int) -> int:
        """Return the ``visible_at_ms`` to store for a message that arrives now without its own delay; 0: none."""
        return now_ms + self.delay_s * 1_000 if self.delay_s and self.kind.delays_messages else 0

    @property
    def may_block(self) -> bool:
        """Return whether a message in flight may block others, so its removal may make them available."""
        return self.kind.blocks_groups or self.order.limits_groups

    @property
    def partitions(self) -> int:
        """Return the number of partitions, which is set at creation and never changes; 0: none."""
        return partitions_of(self.attributes) if self.kind.partitioned is not None else 0

    @property
    def count(self) -> int:
        """Return the number of messages, in any state and with contents in memory or on disk."""
        return len(self.rows) + self.order.rowless_count

    @property
    def is_cold(self) -> bool:
        """Return whether the contents of some messages are on disk only."""
        return len(self.contents) < len(self.rows) + self.order.rowless_count

    def expired_before_ms(self, now_ms: int) -> int:
        """Return the time such that messages sent at or before it have exceeded the retention period.

        In a queue with a schedule, retention counts from the delivery, so this returns an earlier time. There the
        sweeper finds the expired messages (sweep.delivered).
        """
        return now_ms - self.retention_ms - (limits.SCHEDULE_MS_MAX if self.is_scheduled else 0)


class State:
    """The rows of one member, and the indexes over them."""

    def __init__(self) -> None:
        self.cluster_id = ""
        self.mac_key = b""
        self.identity = Identity(b"\0")  # a placeholder; no ids are made before ClusterFounded is applied
        self.feature_level = 0
        self.takeover_term = 0
        self.ahead_ms = 0  # cluster time minus real time: the sum of the clock advances of tests
        self.grace = Grace()
        self.queues: dict[int, Queue] = {}
        self.deleted_queues: dict[int, Queue] = {}  # deleted; QueueReclaimed removes them after 60 s
        self.names: QueueNames[Queue] = QueueNames()
        self.groups = Groups(self.names)
        self.sources = DeadLetterSources()
        self.inner: set[tuple[str, str]] = set()  # the keys in ``names`` of queues that clients cannot see
        self.names.follower = self._queue_named
        self.deleted_names: dict[tuple[str, str], int] = {}  # the time of deletion, for the 60-second rule
        self.last_queue_id = 0
        self.invocations = History()
        self.sent_ids = Invocations(0, SENT_ID_GENERATION_MS)
        self.tables: dict[str, dict[Any, Any]] = {table.name: {} for table in TABLES if table.is_plain}
        self.move_tasks: dict[int, MoveTaskSet] = self.tables[MOVE_TASKS.name]  # by number
        self.moving: dict[int, MoveTaskSet] = {}  # the unfinished ones
        self.leases = Leases()
        self.turns: dict[int, dict[str, Stored]] = {}  # by queue id, then by path: see ordering/shares.py
        self.topics = Topics()
        self.publishes: dict[int, PublishSet] = self.tables[PUBLISHES.name]  # the undelivered ones
        self.metadata: dict[tuple[int, int], MetadataKept] = self.tables[METADATA.name]  # by queue id and sequence
        self.contents_bytes = 0  # weight of all contents in memory
        self.index = 0  # of the log entry that is being applied
        self.trash: deque[tuple[int, Messages]] = deque()  # (index of the purge, its messages); emptied in steps

    def _queue_named(self, key: tuple[str, str], queue: Queue | None) -> None:
        """Update the indexes after a name was given to ``queue``, or was removed (None)."""
        if is_inner(key[0]):
            (self.inner.discard if queue is None else self.inner.add)(key)
        self.groups.queue_named(key, queue)
        self.sources.put(key, None if queue is None else queue.redrive)

    def queue(self, account: str, name: str) -> Queue:
        """Return the queue of this owner and name. Raise QueueDoesNotExist if there is none."""
        try:
            return self.names[(account, name)]
        except KeyError:
            raise QueueDoesNotExist from None
