"""SQS quotas and defaults; every number names its AWS source."""

from typing import Final

from msgspec import Struct

# Quotas: AWS "Amazon SQS quotas" and the SendMessage API page.
BODY_BYTES_MAX: Final = 1_048_576  # a message and the sum of a batch
BODY_BYTES_MIN_SETTING: Final = 1_024  # lowest MaximumMessageSize
BATCH_ENTRIES_MAX: Final = 10
BATCH_ENTRY_ID_CHARS_MAX: Final = 80
MESSAGE_ATTRIBUTES_MAX: Final = 10
MESSAGE_ATTRIBUTE_NAME_CHARS_MAX: Final = 256
MESSAGE_ATTRIBUTE_TYPE_CHARS_MAX: Final = 256
QUEUE_NAME_CHARS_MAX: Final = 80
DELAY_S_MAX: Final = 900
VISIBILITY_S_MAX: Final = 43_200  # 12 h from the receive, extensions included
WAIT_S_MAX: Final = 20
RETENTION_S_MIN: Final = 60
RETENTION_S_MAX: Final = 1_209_600
RECEIVE_MESSAGES_MAX: Final = 10
IN_FLIGHT_MAX: Final = 120_000  # standard queues, then OverLimit
LIST_RESULTS_MAX: Final = 1_000
TAGS_MAX: Final = 50
TAG_KEY_CHARS_MAX: Final = 128
TAG_VALUE_CHARS_MAX: Final = 256
POLICY_BYTES_MAX: Final = 8_192
POLICY_STATEMENTS_MAX: Final = 20
POLICY_PRINCIPALS_MAX: Final = 50
POLICY_CONDITIONS_MAX: Final = 10
POLICY_ACTIONS_MAX: Final = 7  # a statement
RECEIVES_MAX: Final = 1_000  # maxReceiveCount
REDRIVE_SOURCES_MAX: Final = 10  # sourceQueueArns
MOVE_TASK_RATE_MAX: Final = 500  # messages a second
MOVE_TASKS_LISTED_MAX: Final = 10  # of a source
MOVE_TASKS_ACTIVE_MAX: Final = 100  # of an account
MOVE_TASK_MS_MAX: Final = 36 * 3_600_000
KMS_REUSE_S_MIN: Final = 60
KMS_REUSE_S_MAX: Final = 86_400
GROUP_ID_CHARS_MAX: Final = 128

# Defaults: AWS SetQueueAttributes page.
DELAY_S_DEFAULT: Final = 0
VISIBILITY_S_DEFAULT: Final = 30
WAIT_S_DEFAULT: Final = 0
RETENTION_S_DEFAULT: Final = 345_600
KMS_REUSE_S_DEFAULT: Final = 300
SIXTY_SECOND_RULE_MS: Final = 60_000  # purge twice, create after delete

# Ours: bounds of this server.
QUEUES_MAX: Final = 100_000
MOVE_TASKS_MAX: Final = 1_000  # remembered in all; the oldest that are over go first
REQUEST_BYTES_MAX: Final = 8 * 1_048_576  # a batch of 1 MiB, escaped in a form or as JSON \uXXXX
HEAD_BYTES_MAX: Final = 16_384
JSON_DEPTH_MAX: Final = 1_000  # the interpreter's recursion limit, at which msgspec refuses; commands nest four deep
SMALL_REQUEST_BYTES: Final = 262_144  # up to here JSON of any kind is decoded in a few milliseconds
STRINGS_MAX: Final = 60_000  # of a longer one: a batch of 1,000 messages with 10 attributes each has about as many
LIST_ITEMS_MAX: Final = 1_000  # of a longer one
FORM_BYTES_MAX: Final = 5 * 1_048_576  # a batch of 1 MiB of binary values: base64, and each character of it as %XX
MALFORMED_CHARS_MAX: Final = 16_384  # of a form's values whose percent-encoding is none, all together
WAITERS_MAX: Final = 100_000
IDEMPOTENCY_WINDOW_S_MAX: Final = 3_600  # ElasticqIdempotencyWindow
PAGE_SIZE_MAX: Final = 1_000  # ElasticqPageSize: a receive's messages, a batch's entries
MUTATION_ROWS_MAX: Final = 1_000  # design: no mutation touches more
INVOCATION_WINDOW_MS: Final = 300_000  # BlazingMQ's default; SQS's deduplication interval
INVOCATIONS_MAX: Final = 4_000_000
LEASES_MAX: Final = 100_000  # remembered in all; of more than half of it the oldest ended ones go early
LEASE_MESSAGES_MAX: Final = 20_000
LEASE_KEPT_MS: Final = 86_400_000  # after its end
LEASE_KEPT_MIN_MS: Final = 300_000  # where there are too many; a retry must still be told what became of it

CLOCK_ADVANCE_MS_MAX = 3_660 * 86_400_000  # at once; tests turn the clock by months, not by ages
CLOCK_AHEAD_MS_MAX = 36_600 * 86_400_000  # in all: what is made of cluster time stays a date
RESET_QUEUES_MAX = 1_000  # that go in one entry


class Limits(Struct, frozen=True):
    """How much one call may hold or ask for.

    batch_entries: of a batch; messages: that a receive may ask for; messages_max: and what it gets at most;
    wait_s: of a long poll; body_bytes: of a message or of a batch; is_relaxed: characters, numbers and attributes
    of messages are not looked at, and a queue's MaximumMessageSize is not.
    """

    batch_entries: int = BATCH_ENTRIES_MAX
    messages: int = RECEIVE_MESSAGES_MAX
    messages_max: int = RECEIVE_MESSAGES_MAX
    wait_s: int = WAIT_S_MAX
    body_bytes: int = BODY_BYTES_MAX
    is_relaxed: bool = False


STRICT: Final = Limits()  # AWS's
RELAXED: Final = Limits(
    batch_entries=1_000,
    messages=1_000_000,
    messages_max=100,
    wait_s=43_200,
    body_bytes=4 * 1_048_576,
    is_relaxed=True,
)
"""As ElasticMQ's, with bounds: what one call makes must fit into one frame between members."""
ANSWER_BYTES_MAX: Final = 4 * 1_048_576  # of a page, a peek or a relaxed receive; frames hold twice that
FORWARDED_BYTES_MAX: Final = 6 * 1_048_576  # a message or batch with its copies for other queues
