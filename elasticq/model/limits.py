"""SQS quotas and defaults, each with its AWS source; what a request may hold; what this server can keep."""

from typing import Final

from msgspec import Meta, Struct

# Quotas: AWS "Amazon SQS quotas" and the SendMessage API page.
BODY_BYTES_MAX: Final = 1_048_576  # a message and the sum of a batch
BODY_BYTES_MIN_SETTING: Final = 1_024  # lowest MaximumMessageSize
BATCH_ENTRIES_MAX: Final = 10
MESSAGE_ATTRIBUTES_MAX: Final = 10
MESSAGE_ATTRIBUTES_RELAXED_MAX: Final = 64
MESSAGE_ATTRIBUTE_NAME_CHARS_MAX: Final = 256
MESSAGE_ATTRIBUTE_TYPE_CHARS_MAX: Final = 256
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
REDRIVE_POLICY_BYTES_MAX: Final = 8_192  # ours, of both: ten ARNs are a sixth of it
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
GROUP_WEIGHTS_MAX: Final = 1_000  # ours, of a queue
GROUP_WEIGHT_MAX: Final = 1_000
GROUP_LEVELS_MAX: Final = 8  # parts of a group's name that share level by level; what is behind them does together
SCHEDULE_MS_MAX: Final = 3_653 * 86_400_000  # ours, ten years
DOCUMENT_DEPTH_MAX: Final = 32  # ours, of stored JSON: lists and objects inside each other; AWS's documents have 6
KMS_REUSE_S_MIN: Final = 60
KMS_REUSE_S_MAX: Final = 86_400
TRACE_HEADER_BYTES_MAX: Final = 1_024  # ours: X-Ray's own have a few hundred

# Quotas of topics: botocore's model of SNS, "Amazon SNS endpoints and quotas", and recordings of AWS.
TOPIC_MESSAGE_BYTES_MAX: Final = 1_048_576  # the highest MaximumMessageSize
TOPIC_MESSAGE_BYTES_DEFAULT: Final = 262_144
TOPIC_MESSAGE_BYTES_MIN_SETTING: Final = 1_024
TOPIC_DISPLAY_NAME_CHARS_MAX: Final = 100
TOPIC_POLICY_BYTES_MAX: Final = 30_720
DATA_PROTECTION_POLICY_CHARS_MAX: Final = 30_720
SUBJECT_CHARS_MAX: Final = 100
LISTED_TOPICS_MAX: Final = 100  # a page of topics or subscriptions
FIFO_SUBSCRIPTIONS_MAX: Final = 100  # of a FIFO topic
LARGE_SUBSCRIPTIONS_MAX: Final = 100  # of a topic whose messages may be longer than the default
LARGE_PROTOCOLS: Final = frozenset(("sqs", "firehose", "lambda"))
PENDING_SUBSCRIPTION_MS: Final = 259_200_000  # 3 days until one that nobody confirms lapses
CONFIRMATION_TOKEN_CHARS: Final = 288  # hexadecimal digits
CONFIRMATION_TOKEN_MS: Final = 172_800_000  # 2 days

# Defaults: AWS SetQueueAttributes page.
DELAY_S_DEFAULT: Final = 0
VISIBILITY_S_DEFAULT: Final = 30
WAIT_S_DEFAULT: Final = 0
RETENTION_S_DEFAULT: Final = 345_600
KMS_REUSE_S_DEFAULT: Final = 300
SIXTY_SECOND_RULE_MS: Final = 60_000  # between two purges; from a deletion until the name is free again

# Filter policies of subscriptions: the SNS developer guide, "Filter policy constraints", and recordings.
FILTER_POLICY_BYTES_MAX: Final = 262_144
FILTER_POLICY_KEYS_MAX: Final = 5  # at the top; those of nested objects are not counted
FILTER_POLICY_COMPLEXITY_MAX: Final = 150
FILTER_WILDCARDS_MAX: Final = 3  # in one pattern
FILTER_WILDCARD_POINTS_MAX: Final = 100
FILTER_NUMBER_MAX: Final = 1_000_000_000  # that a numeric operator takes, and -FILTER_NUMBER_MAX at least
FILTER_DEPTH_MAX: Final = 150  # ours: of keys in keys, where dots and $or count, too; complexity allows no more objects
FILTER_DOCUMENT_DEPTH_MAX: Final = 2 * FILTER_DEPTH_MAX + 8  # each $or is a list of objects; then a list of operators
FILTER_TERMS_MAX: Final = 1_500  # ours: conditions of all alternatives together, once $or is multiplied out

# Delivery policies: the SNS developer guide, "Message delivery retries".
RETRIES_MAX: Final = 100
RETRY_DELAY_S_MAX: Final = 3_600
RETRY_TOTAL_S_MAX: Final = 3_600

# Ours: bounds of this server.
QUEUES_MAX: Final = 100_000
TOPICS_MAX: Final = 100_000
SUBSCRIPTIONS_MAX: Final = 200_000  # in all; a row of each is kept in memory
TOPIC_SUBSCRIPTIONS_MAX: Final = 100_000  # of one topic: what a publish looks at, and what its row may list
METADATA_KEPT_MAX: Final = 10_000  # messages of a cluster that were given back with metadata
METADATA_BYTES_MAX: Final = 4_096  # of one of them
PUBLISHES_MAX: Final = 1_000  # that wait for their delivery in steps, as they match too many subscriptions
PUBLISHES_BYTES_MAX: Final = 64 * 1_048_576  # of these together
MOVE_TASKS_MAX: Final = 1_000  # remembered in all; of those that ended the oldest are forgotten first
FRAME_BYTES_MAX: Final = 8 * 1_048_576  # between members, and of the log
ENTRY_BYTES_MAX: Final = FRAME_BYTES_MAX - 65_536  # an entry's mutations; the rest is for what frames them
REQUEST_BYTES_MAX: Final = 8 * 1_048_576  # a batch of 1 MiB, escaped in a form or as JSON \uXXXX
SMALL_REQUEST_BYTES_MAX: Final = 262_144  # of a request without messages; any JSON so short takes milliseconds
ATTRIBUTES_MAX: Final = 100  # in one request, of a queue or a topic
QUEUE_URL_CHARS_MAX: Final = 1_024
SEND_ID_CHARS_MAX: Final = 128  # the sender's own id of a message, in REST
HEAD_BYTES_MAX: Final = 16_384
HOST_CHARS_MAX: Final = 261  # a domain name, a colon and a port: it stands in each QueueUrl of an answer
JSON_DEPTH_MAX: Final = 1_000  # the interpreter's recursion limit, at which msgspec refuses; commands nest four deep
STRINGS_MAX: Final = 60_000  # in a longer request; a batch of 1,000 messages with 10 attributes each has as many
LIST_ITEMS_MAX: Final = 1_000  # in a list of a longer request
FORM_BYTES_MAX: Final = 5 * 1_048_576  # a batch of 1 MiB of binary values: base64, and each character of it as %XX
MALFORMED_CHARS_MAX: Final = 16_384  # of all values of a form together whose percent-encoding is malformed
QUOTED_CHARS_MAX: Final = 256  # of a client's text that an error repeats
ERROR_CHARS_MAX: Final = 1_024  # of an error's message
REMEMBERED_CHARS_MAX: Final = 256  # of a client's text that a cache keeps; longer ones are read anew each time
WAITERS_MAX: Final = 100_000
IDEMPOTENCY_WINDOW_S_MAX: Final = 3_600  # ElasticqIdempotencyWindow
PAGE_SIZE_MAX: Final = 1_000  # ElasticqPageSize: a receive's messages, a batch's entries
PARTITIONS_MIN: Final = 2  # ElasticqPartitions of a FIFO queue
PARTITIONS_MAX: Final = 256
MUTATION_ROWS_MAX: Final = 1_000  # that one mutation changes
INVOCATION_WINDOW_MS: Final = 300_000  # BlazingMQ's default; SQS's deduplication interval
INVOCATIONS_MAX: Final = 4_000_000
INVOCATION_DETAILS_BYTES_MAX: Final = 256 * 1_048_576  # in all; a call about more than one message leaves a detail
INVOCATION_FAILURES_BYTES_MAX: Final = 1_024  # of one call; the messages of longer lists are not remembered
CONSUMER_GROUPS_MAX: Final = 1_000  # in all
CONSUMERS_MAX: Final = 1_000  # of a consumer group
CONSUMERS_TOTAL_MAX: Final = 20_000  # of all groups
RESOURCES_MAX: Final = 10_000  # of a consumer group: queues or partitions; those that come after these are nobody's
SESSION_MS_MIN: Final = 2_000
SESSION_MS_MAX: Final = 3_600_000
SESSION_MS_DEFAULT: Final = 10_000
REBALANCE_DELAY_MS_MAX: Final = 60_000
HEARTBEAT_MS_MAX: Final = 3_000
CONSUMER_WEIGHT_MAX: Final = 1_000
CONSUMER_NAME_CHARS_MAX: Final = 256
DESCRIBED_GROUPS_MAX: Final = 100  # of an answer
DESCRIBED_ITEMS_MAX: Final = 11_000  # consumers and resources of all groups of an answer, beside the first one's
LEASES_MAX: Final = 100_000  # remembered in all; above half of it those that ended first are forgotten early
LEASE_MESSAGES_MAX: Final = 20_000
LEASE_KEPT_MS: Final = 86_400_000  # how long a lease is remembered after its end
LEASE_KEPT_MIN_MS: Final = 300_000  # and if it is forgotten early; a retry must still learn what became of it

CLOCK_ADVANCE_MS_MAX = 3_660 * 86_400_000  # by one AdvanceClock
CLOCK_AHEAD_MS_MAX = 36_600 * 86_400_000  # by all of them: times that are made of cluster time are still dates
RESET_QUEUES_MAX = 200  # that DeleteAllQueues deletes in one entry, and as many topics

# What a member of a request may hold at most, in characters, items or as a number. ``wire`` refuses what is beyond when
# it decodes, with the error that AWS has for the member, and so does whoever decodes a call of another member. What is
# legal is mostly less, and judged by the engine in AWS's words: so bounds here are rounded up from AWS's.
INTEGER_RANGE: Final = (-(2**31), 2**31 - 1)
LONG_RANGE: Final = (-(2**63), 2**63 - 1)
_INTEGER: Final = Meta(ge=INTEGER_RANGE[0], le=INTEGER_RANGE[1])
_LONG: Final = Meta(ge=LONG_RANGE[0], le=LONG_RANGE[1])
MEMBERS: Final = {
    "QueueUrl": Meta(max_length=QUEUE_URL_CHARS_MAX),
    "QueueName": Meta(max_length=256),
    "QueueNamePrefix": Meta(max_length=256),
    "QueueOwnerAWSAccountId": Meta(max_length=256),
    "NextToken": Meta(max_length=1_024),
    "ReceiptHandle": Meta(max_length=1_024),
    "MessageBody": Meta(max_length=REQUEST_BYTES_MAX),  # see Limits.body_bytes
    "MessageGroupId": Meta(max_length=256),
    "MessageDeduplicationId": Meta(max_length=256),
    "ReceiveRequestAttemptId": Meta(max_length=256),
    "Id": Meta(max_length=256),
    "Label": Meta(max_length=256),
    "SourceArn": Meta(max_length=1_024),
    "DestinationArn": Meta(max_length=1_024),
    "TaskHandle": Meta(max_length=2_048),  # it holds the SourceArn
    # Lists and maps, and what is in them.
    "Entries": Meta(max_length=PAGE_SIZE_MAX),
    "AttributeNames": Meta(max_length=100),
    "AttributeNames.item": Meta(max_length=256),
    "MessageSystemAttributeNames": Meta(max_length=100),
    "MessageSystemAttributeNames.item": Meta(max_length=256),
    "MessageAttributeNames": Meta(max_length=1_000),
    "MessageAttributeNames.item": Meta(max_length=256),
    "TagKeys": Meta(max_length=1_000),
    "TagKeys.item": Meta(max_length=256),
    "AWSAccountIds": Meta(max_length=1_000),
    "AWSAccountIds.item": Meta(max_length=256),
    "Actions": Meta(max_length=100),
    "Actions.item": Meta(max_length=256),
    "States": Meta(max_length=100),
    "States.item": Meta(max_length=256),
    "MessageIds": Meta(max_length=1_000),
    "MessageIds.item": Meta(max_length=256),
    "Attributes": Meta(max_length=ATTRIBUTES_MAX),
    "Attributes.key": Meta(max_length=256),
    "Attributes.value": Meta(max_length=POLICY_BYTES_MAX),  # the longest are policies
    "Tags": Meta(max_length=200),
    "Tags.key": Meta(max_length=256),
    "Tags.value": Meta(max_length=1_024),
    "MessageAttributes": Meta(max_length=MESSAGE_ATTRIBUTES_RELAXED_MAX),
    "MessageAttributes.key": Meta(max_length=MESSAGE_ATTRIBUTE_NAME_CHARS_MAX),
    "MessageSystemAttributes": Meta(max_length=10),
    "MessageSystemAttributes.key": Meta(max_length=256),
    # Of a message's attribute; together they count as the message's size does.
    "DataType": Meta(max_length=MESSAGE_ATTRIBUTE_TYPE_CHARS_MAX),
    "StringValue": Meta(max_length=REQUEST_BYTES_MAX),
    "BinaryValue": Meta(max_length=REQUEST_BYTES_MAX),
    "SystemStringValue": Meta(max_length=TRACE_HEADER_BYTES_MAX),
    "SystemBinaryValue": Meta(max_length=TRACE_HEADER_BYTES_MAX),
    # Integers: AWS's have 32 bits, ours 64.
    "DelaySeconds": _INTEGER,
    # Of consumer groups.
    "GroupName": Meta(max_length=256),
    "GroupNames": Meta(max_length=1_000),
    "GroupNames.item": Meta(max_length=256),
    "QueueNames": Meta(max_length=1_000),
    "QueueNames.item": Meta(max_length=256),
    "PartitionsOf": Meta(max_length=256),
    "ConsumerName": Meta(max_length=CONSUMER_NAME_CHARS_MAX),
    "ConsumerId": Meta(max_length=256),
    "Resource": Meta(max_length=256),
    "Released": Meta(max_length=1_000),
    "Released.item": _LONG,
    "KnownVersion": _LONG,
    "ElasticqGroup": Meta(max_length=256),
    "ElasticqToken": _LONG,
    "ElasticqPartition": _INTEGER,
    "SessionTimeoutMs": _INTEGER,
    "RebalanceDelayMs": _INTEGER,
    "MaxPerConsumer": _INTEGER,
    "Weight": _INTEGER,
    "MaxNumberOfMessages": _INTEGER,
    "MaxNumberOfMessagesPerSecond": _INTEGER,
    "MaxResults": _INTEGER,
    "VisibilityTimeout": _INTEGER,
    "WaitTimeSeconds": _INTEGER,
    "ElasticqPageSize": _INTEGER,
    "Limit": _INTEGER,
    "Priority": _LONG,
    "DeliverAt": _LONG,
    "FromSequence": _LONG,
    "SentFromMs": _LONG,
    "SentUntilMs": _LONG,
}

TOPIC_MEMBERS: Final = {
    "Name": Meta(max_length=1_024),
    "TopicArn": Meta(max_length=1_024),
    "TargetArn": Meta(max_length=1_024),
    "ResourceArn": Meta(max_length=1_024),
    "SubscriptionArn": Meta(max_length=1_024),
    "NextToken": Meta(max_length=1_024),
    "Token": Meta(max_length=1_024),
    "PhoneNumber": Meta(max_length=256),
    "Protocol": Meta(max_length=256),
    "Endpoint": Meta(max_length=2_048),
    "AttributeName": Meta(max_length=256),
    "AttributeValue": Meta(max_length=FILTER_POLICY_BYTES_MAX),  # the longest are filter policies
    "DataProtectionPolicy": Meta(max_length=DATA_PROTECTION_POLICY_CHARS_MAX),
    "Label": Meta(max_length=256),
    "Flag": Meta(max_length=16),
    "Subject": Meta(max_length=1_024),
    "MessageStructure": Meta(max_length=256),
    "Message": Meta(max_length=REQUEST_BYTES_MAX),  # see Limits.body_bytes
    "MessageGroupId": Meta(max_length=256),
    "MessageDeduplicationId": Meta(max_length=256),
    "Id": Meta(max_length=256),
    "PublishBatchRequestEntries": Meta(max_length=100),
    "Attributes": Meta(max_length=ATTRIBUTES_MAX),
    "Attributes.key": Meta(max_length=256),
    "Attributes.value": Meta(max_length=FILTER_POLICY_BYTES_MAX),
    "Tags": Meta(max_length=200),
    "Key": Meta(max_length=256),
    "Value": Meta(max_length=1_024),
    "TagKeys": Meta(max_length=1_000),
    "TagKeys.item": Meta(max_length=256),
    "AWSAccountId": Meta(max_length=1_000),
    "AWSAccountId.item": Meta(max_length=256),
    "ActionName": Meta(max_length=100),
    "ActionName.item": Meta(max_length=256),
    "MessageAttributes": Meta(max_length=256),  # without a bound on AWS but the message's size
    "MessageAttributes.key": Meta(max_length=1_024),
}
"""The same of SNS's requests."""


class Limits(Struct, frozen=True):
    """How much one call may hold or ask for.

    batch_entries: of a batch; messages: that a receive may ask for; messages_max: and what it gets at most;
    wait_s: of a long poll; body_bytes: of a message or of a batch; attributes: of a message; copies: of published
    messages in one entry, more are delivered in steps; is_relaxed: characters and numbers of messages are not looked
    at, nor a queue's MaximumMessageSize, nor unknown attributes of queues.
    """

    batch_entries: int = BATCH_ENTRIES_MAX
    messages: int = RECEIVE_MESSAGES_MAX
    messages_max: int = RECEIVE_MESSAGES_MAX
    wait_s: int = WAIT_S_MAX
    body_bytes: int = BODY_BYTES_MAX
    attributes: int = MESSAGE_ATTRIBUTES_MAX
    copies: int = MUTATION_ROWS_MAX
    is_relaxed: bool = False


STRICT: Final = Limits()  # AWS's
RELAXED: Final = Limits(
    batch_entries=1_000,
    messages=1_000_000,
    messages_max=100,
    wait_s=43_200,
    body_bytes=4 * 1_048_576,
    attributes=MESSAGE_ATTRIBUTES_RELAXED_MAX,
    is_relaxed=True,
)
"""As ElasticMQ's, with bounds: what one call makes must fit into one frame between members."""
ANSWER_BYTES_MAX: Final = (
    4 * 1_048_576 + 65_536
)  # of a page, a peek or a relaxed receive; frames hold nearly twice that
FORWARDED_BYTES_MAX: Final = 6 * 1_048_576 + 65_536  # a message or batch with its copies for other queues
BURIED_BYTES_MAX: Final = ANSWER_BYTES_MAX  # moved to a dead-letter queue by one receive; one message may be longer
