"""The limits: quotas and defaults of AWS with their sources, bounds of requests, and bounds of this server.

"Own" in a comment means that the limit is not from AWS.
"""

from typing import Final

from msgspec import Meta, Struct

# Quotas: AWS "Amazon SQS quotas" and the SendMessage API page.
BODY_BYTES_MAX: Final = 1_048_576  # of a message, and of all messages of a batch together
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
REDRIVE_POLICY_BYTES_MAX: Final = 8_192  # own; of both redrive policies: ten ARNs are a sixth of it
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
GROUP_WEIGHTS_MAX: Final = 1_000  # own; of a queue
GROUP_WEIGHT_MAX: Final = 1_000
GROUP_LEVELS_MAX: Final = 8  # parts of a group's name that are levels of fair shares; all further parts count as one
SCHEDULE_MS_MAX: Final = 3_653 * 86_400_000  # own; ten years
DOCUMENT_DEPTH_MAX: Final = 32  # own; lists and objects inside each other in stored JSON; AWS's documents have 6
KMS_REUSE_S_MIN: Final = 60
KMS_REUSE_S_MAX: Final = 86_400
TRACE_HEADER_BYTES_MAX: Final = 1_024  # own; those of X-Ray have a few hundred

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
PENDING_SUBSCRIPTION_MS: Final = 259_200_000  # 3 days; then an unconfirmed subscription ends
CONFIRMATION_TOKEN_CHARS: Final = 288  # hexadecimal digits
CONFIRMATION_TOKEN_MS: Final = 172_800_000  # 2 days

# Defaults: AWS SetQueueAttributes page.
DELAY_S_DEFAULT: Final = 0
VISIBILITY_S_DEFAULT: Final = 30
WAIT_S_DEFAULT: Final = 0
RETENTION_S_DEFAULT: Final = 345_600
KMS_REUSE_S_DEFAULT: Final = 300
SIXTY_SECOND_RULE_MS: Final = 60_000  # between two purges, and between deleting and creating a queue of the same name

# Filter policies of subscriptions: the SNS developer guide, "Filter policy constraints", and recordings.
FILTER_POLICY_BYTES_MAX: Final = 262_144
FILTER_POLICY_KEYS_MAX: Final = 5  # at the top level; keys of nested objects do not count
FILTER_POLICY_COMPLEXITY_MAX: Final = 150
FILTER_WILDCARDS_MAX: Final = 3  # in one pattern
FILTER_WILDCARD_POINTS_MAX: Final = 100
FILTER_NUMBER_MAX: Final = 1_000_000_000  # of a numeric operator; the minimum is -FILTER_NUMBER_MAX
FILTER_DEPTH_MAX: Final = 150  # own; of nested keys, also by dots and $or; the complexity allows no more objects
FILTER_DOCUMENT_DEPTH_MAX: Final = 2 * FILTER_DEPTH_MAX + 8  # each $or is a list of objects; then a list of operators
FILTER_TERMS_MAX: Final = 1_500  # own; conditions of all alternatives together, after expanding $or

# Delivery policies: the SNS developer guide, "Message delivery retries".
RETRIES_MAX: Final = 100
RETRY_DELAY_S_MAX: Final = 3_600
RETRY_TOTAL_S_MAX: Final = 3_600

# Own: bounds of this server.
QUEUES_MAX: Final = 100_000
TOPICS_MAX: Final = 100_000
SUBSCRIPTIONS_MAX: Final = 200_000  # of the cluster; memory has a row of each
TOPIC_SUBSCRIPTIONS_MAX: Final = 100_000  # of one topic: a publish checks each, and its row may list all
METADATA_KEPT_MAX: Final = 10_000  # messages of a cluster that consumers returned with metadata
METADATA_BYTES_MAX: Final = 4_096  # of one such message
PUBLISHES_MAX: Final = 1_000  # that are delivered in steps, because they match too many subscriptions
PUBLISHES_BYTES_MAX: Final = 64 * 1_048_576  # of these together
MOVE_TASKS_MAX: Final = 1_000  # of the cluster; the oldest ended ones are forgotten first
FRAME_BYTES_MAX: Final = 8 * 1_048_576  # between members, and of the log
ENTRY_BYTES_MAX: Final = FRAME_BYTES_MAX - 65_536  # of an entry's mutations; the rest is for its frame
# a batch of 1 MiB, escaped in a form or as JSON \uXXXX; no more, as decoding 8 MiB of escapes takes 20 ms
REQUEST_BYTES_MAX: Final = 6 * 1_048_576 + 262_144
SMALL_REQUEST_BYTES_MAX: Final = 262_144  # of a request without messages; any JSON of this size takes only milliseconds
ATTRIBUTES_MAX: Final = 100  # in one request, of a queue or a topic
QUEUE_URL_CHARS_MAX: Final = 1_024
SEND_ID_CHARS_MAX: Final = 128  # the sender's own id of a message, in REST
HEAD_BYTES_MAX: Final = 16_384
HOST_CHARS_MAX: Final = 261  # a domain name, a colon and a port: each QueueUrl of an answer contains it
JSON_DEPTH_MAX: Final = 1_000  # the interpreter's recursion limit, where msgspec refuses; commands have four levels
STRINGS_MAX: Final = 60_000  # in a long request: as many as a batch of 1,000 messages with 10 attributes each has
LIST_ITEMS_MAX: Final = 1_000  # in a list of a long request
FORM_BYTES_MAX: Final = 5 * 1_048_576  # a batch of 1 MiB of binary values: base64, and each character of it as %XX
MALFORMED_CHARS_MAX: Final = 16_384  # of all values of a form together that have malformed percent-encoding
QUOTED_CHARS_MAX: Final = 256  # of a client's text in an error
ERROR_CHARS_MAX: Final = 1_024  # of an error's message
REMEMBERED_CHARS_MAX: Final = 256  # of a client's text that a cache keeps; longer texts are parsed each time
WAITERS_MAX: Final = 100_000
IDEMPOTENCY_WINDOW_S_MAX: Final = 3_600  # ElasticqIdempotencyWindow
PAGE_SIZE_MAX: Final = 1_000  # ElasticqPageSize: a receive's messages, a batch's entries
PARTITIONS_MIN: Final = 2  # ElasticqPartitions of a FIFO queue
PARTITIONS_MAX: Final = 256
MUTATION_ROWS_MAX: Final = 1_000  # rows that one mutation may change
INVOCATION_WINDOW_MS: Final = 300_000  # BlazingMQ's default; SQS's deduplication interval
INVOCATIONS_MAX: Final = 4_000_000
INVOCATION_DETAILS_BYTES_MAX: Final = 256 * 1_048_576  # of the cluster; calls with several messages need details
INVOCATION_FAILURES_BYTES_MAX: Final = 1_024  # of one call; of a longer list, the texts are not remembered
CONSUMER_GROUPS_MAX: Final = 1_000  # of the cluster
CONSUMERS_MAX: Final = 1_000  # of a consumer group
CONSUMERS_TOTAL_MAX: Final = 20_000  # of all groups
RESOURCES_MAX: Final = 10_000  # of a consumer group: queues or partitions; further ones get no consumer
SESSION_MS_MIN: Final = 2_000
SESSION_MS_MAX: Final = 3_600_000
SESSION_MS_DEFAULT: Final = 10_000
REBALANCE_DELAY_MS_MAX: Final = 60_000
HEARTBEAT_MS_MAX: Final = 3_000
CONSUMER_WEIGHT_MAX: Final = 1_000
CONSUMER_NAME_CHARS_MAX: Final = 256
DESCRIBED_GROUPS_MAX: Final = 100  # in one answer
DESCRIBED_ITEMS_MAX: Final = 11_000  # consumers and resources of all groups in one answer, without the first group
LEASES_MAX: Final = 100_000  # of the cluster; above half of it, the first ended ones are forgotten early
LEASE_MESSAGES_MAX: Final = 20_000
LEASE_KEPT_MS: Final = 86_400_000  # how long a lease is remembered after its end
LEASE_KEPT_MIN_MS: Final = 300_000  # the same if it is forgotten early; a retry must still get its outcome

CLOCK_ADVANCE_MS_MAX = 3_660 * 86_400_000  # by one AdvanceClock
CLOCK_AHEAD_MS_MAX = 36_600 * 86_400_000  # by all of them together: cluster time must remain a date
RESET_QUEUES_MAX = 200  # that DeleteAllQueues deletes in one entry; the same number of topics, too

# The bounds of a request's members, in characters, items or as a number. ``wire`` checks them while it decodes, and
# answers the error that AWS has for the member. A node checks them when it decodes a call of another member. Most
# bounds are larger than AWS's: the engine checks the exact ones, with the texts of AWS.
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
    "TaskHandle": Meta(max_length=2_048),  # it contains the SourceArn
    # Lists and maps, and their items.
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
    # Of an attribute of a message. Together, they count for the size of the message.
    "DataType": Meta(max_length=MESSAGE_ATTRIBUTE_TYPE_CHARS_MAX),
    "StringValue": Meta(max_length=REQUEST_BYTES_MAX),
    "BinaryValue": Meta(max_length=REQUEST_BYTES_MAX),
    "SystemStringValue": Meta(max_length=TRACE_HEADER_BYTES_MAX),
    "SystemBinaryValue": Meta(max_length=TRACE_HEADER_BYTES_MAX),
    # Integers: those of AWS have 32 bits, own ones 64.
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
    "MessageAttributes": Meta(max_length=256),  # on AWS, only the size of the message is a bound
    "MessageAttributes.key": Meta(max_length=1_024),
}
"""The bounds of the members of SNS's requests."""


class Limits(Struct, frozen=True):
    """The limits of one call.

    batch_entries: entries of a batch. messages: the number that a receive may ask for. messages_max: the number that it
    gets at most. wait_s: the wait of a long poll. body_bytes: bytes of a message, or of a batch. attributes: attributes
    of a message. copies: copies of published messages in one entry; more copies are delivered in steps.
    is_relaxed: whether the following are not checked: characters and numbers of messages, a queue's
    MaximumMessageSize, and unknown attributes of queues.
    """

    batch_entries: int = BATCH_ENTRIES_MAX
    messages: int = RECEIVE_MESSAGES_MAX
    messages_max: int = RECEIVE_MESSAGES_MAX
    wait_s: int = WAIT_S_MAX
    body_bytes: int = BODY_BYTES_MAX
    attributes: int = MESSAGE_ATTRIBUTES_MAX
    copies: int = MUTATION_ROWS_MAX
    is_relaxed: bool = False


STRICT: Final = Limits()  # those of AWS
RELAXED: Final = Limits(
    batch_entries=1_000,
    messages=1_000_000,
    messages_max=100,
    wait_s=43_200,
    body_bytes=4 * 1_048_576,
    attributes=MESSAGE_ATTRIBUTES_RELAXED_MAX,
    is_relaxed=True,
)
"""The relaxed limits of ElasticMQ, with bounds: the outcome of one call must fit into one frame between members."""
ANSWER_BYTES_MAX: Final = (
    4 * 1_048_576 + 65_536
)  # of a page, a peek or a relaxed receive; frames may be nearly twice as long
FORWARDED_BYTES_MAX: Final = 6 * 1_048_576 + 65_536  # a message or batch with its copies for other queues
BURIED_BYTES_MAX: Final = ANSWER_BYTES_MAX  # that a receive moves to a dead-letter queue; one message may be longer
