"""What a client asks for: one class per SQS action, fields as AWS names them.

Field names are AWS's in snake case; the JSON 1.0 names are derived by
``rename="pascal"``. Absent members are None (or an empty list), never a
default that has a meaning: defaults are the engine's. Source of every shape:
botocore's model ``sqs/2012-11-05``; members named ``Elasticq...`` are ours, of
JSON 1.0 only.
"""

from msgspec import Struct, field

from elasticq.model.ranges import TimeMs


class MessageAttributeValue(Struct, rename="pascal", omit_defaults=True, gc=False):
    """A user or system attribute of a message; lists are reserved by AWS and ignored."""

    data_type: str = ""
    string_value: str | None = None
    binary_value: bytes | None = None


MessageAttributes = dict[str, MessageAttributeValue]


class Command(Struct, rename="pascal", gc=False):
    """Base of all commands."""


class CreateQueue(Command):
    queue_name: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict, name="tags")


class GetQueueUrl(Command):
    queue_name: str | None = None
    queue_owner_account_id: str | None = field(default=None, name="QueueOwnerAWSAccountId")


class ListQueues(Command):
    queue_name_prefix: str | None = None
    max_results: int | None = None
    next_token: str | None = None


class DeleteQueue(Command):
    queue_url: str | None = None


class PurgeQueue(Command):
    queue_url: str | None = None


class GetQueueAttributes(Command):
    queue_url: str | None = None
    attribute_names: list[str] = field(default_factory=list)


class SetQueueAttributes(Command):
    queue_url: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)


class SendMessage(Command):
    queue_url: str | None = None
    message_body: str | None = None
    delay_seconds: int | None = None
    message_attributes: MessageAttributes | None = None
    message_system_attributes: MessageAttributes | None = None
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendMessageBatchEntry(Struct, rename="pascal", gc=False):
    id: str | None = None
    message_body: str | None = None
    delay_seconds: int | None = None
    message_attributes: MessageAttributes | None = None
    message_system_attributes: MessageAttributes | None = None
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendMessageBatch(Command):
    queue_url: str | None = None
    entries: list[SendMessageBatchEntry] = field(default_factory=list)
    elasticq_page_size: int | None = None


class ReceiveMessage(Command):
    queue_url: str | None = None
    attribute_names: list[str] | None = None
    message_system_attribute_names: list[str] | None = None
    message_attribute_names: list[str] | None = None
    max_number_of_messages: int | None = None
    visibility_timeout: int | None = None
    wait_time_seconds: int | None = None
    receive_request_attempt_id: str | None = None
    elasticq_page_size: int | None = None


class DeleteMessage(Command):
    queue_url: str | None = None
    receipt_handle: str | None = None


class DeleteMessageBatchEntry(Struct, rename="pascal", gc=False):
    id: str | None = None
    receipt_handle: str | None = None


class DeleteMessageBatch(Command):
    queue_url: str | None = None
    entries: list[DeleteMessageBatchEntry] = field(default_factory=list)
    elasticq_page_size: int | None = None


class ChangeMessageVisibility(Command):
    queue_url: str | None = None
    receipt_handle: str | None = None
    visibility_timeout: int | None = None


class ChangeMessageVisibilityBatchEntry(Struct, rename="pascal", gc=False):
    id: str | None = None
    receipt_handle: str | None = None
    visibility_timeout: int | None = None


class ChangeMessageVisibilityBatch(Command):
    queue_url: str | None = None
    entries: list[ChangeMessageVisibilityBatchEntry] = field(default_factory=list)
    elasticq_page_size: int | None = None


class TagQueue(Command):
    queue_url: str | None = None
    tags: dict[str, str] = field(default_factory=dict)


class UntagQueue(Command):
    queue_url: str | None = None
    tag_keys: list[str] = field(default_factory=list)


class ListQueueTags(Command):
    queue_url: str | None = None


class AddPermission(Command):
    queue_url: str | None = None
    label: str | None = None
    aws_account_ids: list[str] = field(default_factory=list, name="AWSAccountIds")
    actions: list[str] = field(default_factory=list)


class RemovePermission(Command):
    queue_url: str | None = None
    label: str | None = None


class ListDeadLetterSourceQueues(Command):
    queue_url: str | None = None
    next_token: str | None = None
    max_results: int | None = None


class StartMessageMoveTask(Command):
    source_arn: str | None = None
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None


class CancelMessageMoveTask(Command):
    task_handle: str | None = None


class ListMessageMoveTasks(Command):
    source_arn: str | None = None
    max_results: int | None = None


class DeclareQueue(Command):
    """Ours, and in neither protocol: a queue that stands in the settings, made by the server itself.

    copy_to, move_to: names of queues of the same account that get a copy of each message, or the message
    in this one's place; created_ms, modified_ms: 0, or when the queue was made and last changed elsewhere.
    """

    queue_name: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    copy_to: str = ""
    move_to: str = ""
    created_ms: TimeMs = 0
    modified_ms: TimeMs = 0


class Origin(Struct, frozen=True, gc=False):
    """Where a call came from, as conditions of policies ask: the client's address, and whether by TLS."""

    source_ip: str
    is_secure: bool


class Call(Struct, gc=False):
    """A command with who sent it.

    principal: the access key id, or "anonymous"
    account: 12 digits; the principal's own account
    endpoint: scheme://host:port as the client sees the server, for QueueUrls
    invocation: 16 bytes that are equal for two attempts of one SDK call (principal,
        action, amz-sdk-invocation-id and body), or empty where the client sent no id
    origin: set where the caller was proven (auth = strict): policies are enforced
    trace_header: the request's X-Amzn-Trace-Id, which a sent message takes along as its AWSTraceHeader
    """

    command: Command
    principal: str
    account: str
    endpoint: str
    invocation: bytes = b""
    origin: Origin | None = None
    trace_header: str = ""
