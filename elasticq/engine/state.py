"""All that a member knows: queues with their rows, names, the GUID history. Only ``apply`` writes it."""

from elasticq.engine.identity import Identity
from elasticq.engine.invocations import Invocations
from elasticq.engine.ordering.ranges import Ranges
from elasticq.engine.ordering.standard import StandardOrder
from elasticq.engine.rows import Grace, Row
from elasticq.model import limits
from elasticq.model.errors import QueueDoesNotExist


class Queue:
    """One queue: its attributes, its rows by sequence, and its ordering policy over them.

    attributes: what was set, as AWS writes it; the fields below it are the same, parsed.
    watermark: messages below it are purged, though their rows may still stand.
    issued: the sequences that may have rows; its front is trimmed by the sweeper.
    """

    __slots__ = (
        "account",
        "attributes",
        "created_ms",
        "delay_s",
        "deleted_ms",
        "id",
        "issued",
        "last_sequence",
        "message_bytes_max",
        "modified_ms",
        "name",
        "order",
        "purged_ms",
        "retention_ms",
        "rows",
        "tags",
        "visibility_s",
        "wait_s",
        "watermark",
    )

    def __init__(self, queue_id: int, account: str, name: str, created_ms: int, grace: Grace) -> None:
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
        self.rows: dict[int, Row] = {}
        self.issued = Ranges()
        self.order = StandardOrder(self.rows, grace)
        self.set_attributes({})

    def set_attributes(self, attributes: dict[str, str]) -> None:
        def number(name: str, default: int) -> int:
            return int(attributes.get(name, default))

        self.attributes = attributes
        self.delay_s = number("DelaySeconds", limits.DELAY_S_DEFAULT)
        self.message_bytes_max = number("MaximumMessageSize", limits.BODY_BYTES_MAX)
        self.retention_ms = number("MessageRetentionPeriod", limits.RETENTION_S_DEFAULT) * 1_000
        self.wait_s = number("ReceiveMessageWaitTimeSeconds", limits.WAIT_S_DEFAULT)
        self.visibility_s = number("VisibilityTimeout", limits.VISIBILITY_S_DEFAULT)

    def live_row(self, sequence: int) -> Row | None:
        """The row, unless it was purged."""
        return self.rows.get(sequence) if sequence >= self.watermark else None

    def expired_before_ms(self, now_ms: int) -> int:
        """Messages sent at this time or before have outlived the retention period."""
        return now_ms - self.retention_ms


class State:
    """The rows of one member and their indexes."""

    __slots__ = (
        "bytes_stored",
        "cluster_id",
        "deleted_names",
        "doomed",
        "feature_level",
        "grace",
        "identity",
        "invocations",
        "last_queue_id",
        "mac_key",
        "names",
        "queues",
        "takeover_term",
    )

    def __init__(self) -> None:
        self.cluster_id = ""
        self.mac_key = b""
        self.identity = Identity(b"\0")  # until ClusterFounded is applied nothing is minted
        self.feature_level = 0
        self.takeover_term = 0
        self.grace = Grace()
        self.queues: dict[int, Queue] = {}
        self.doomed: dict[int, Queue] = {}  # deleted, rows not reclaimed yet
        self.names: dict[tuple[str, str], Queue] = {}
        self.deleted_names: dict[tuple[str, str], int] = {}  # when; for the 60-second rule
        self.last_queue_id = 0
        self.invocations = Invocations()
        self.bytes_stored = 0

    def queue(self, account: str, name: str) -> Queue:
        """Raises QueueDoesNotExist."""
        try:
            return self.names[(account, name)]
        except KeyError:
            raise QueueDoesNotExist from None
