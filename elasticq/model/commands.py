"""The commands of SQS: one class per action, with the fields of AWS.

Field names are those of AWS in snake case. ``rename="pascal"`` derives the names
of JSON 1.0. An absent member is None or an empty list; the engine knows the
defaults. The source of all shapes is botocore's model ``sqs/2012-11-05``.
Members named ``Elasticq...`` are elasticq's own, and only JSON 1.0 has them. The
Query protocol also reads those of a fence: ElasticqGroup, ElasticqToken and
ElasticqPartition (engine/consumer_groups/fence.py). The bounds of all members
are in ``limits.MEMBERS``.
"""

from typing import Annotated

from msgspec import Struct, field

from elasticq.model.limits import MEMBERS
from elasticq.model.ranges import TimeMs

QueueUrl = Annotated[str, MEMBERS["QueueUrl"]]
QueueName = Annotated[str, MEMBERS["QueueName"]]
AccountId = Annotated[str, MEMBERS["QueueOwnerAWSAccountId"]]
NextToken = Annotated[str, MEMBERS["NextToken"]]
ReceiptHandle = Annotated[str, MEMBERS["ReceiptHandle"]]
EntryId = Annotated[str, MEMBERS["Id"]]
Label = Annotated[str, MEMBERS["Label"]]
Arn = Annotated[str, MEMBERS["SourceArn"]]
MessageBody = Annotated[str, MEMBERS["MessageBody"]]
GroupId = Annotated[str, MEMBERS["MessageGroupId"]]
DeduplicationId = Annotated[str, MEMBERS["MessageDeduplicationId"]]
Integer = Annotated[int, MEMBERS["DelaySeconds"]]
FenceGroup = Annotated[str, MEMBERS["ElasticqGroup"]]
Token = Annotated[int, MEMBERS["ElasticqToken"]]
Partition = Annotated[int, MEMBERS["ElasticqPartition"]]
Attributes = Annotated[
    dict[Annotated[str, MEMBERS["Attributes.key"]], Annotated[str, MEMBERS["Attributes.value"]]], MEMBERS["Attributes"]
]
Tags = Annotated[dict[Annotated[str, MEMBERS["Tags.key"]], Annotated[str, MEMBERS["Tags.value"]]], MEMBERS["Tags"]]
AttributeNames = Annotated[list[Annotated[str, MEMBERS["AttributeNames.item"]]], MEMBERS["AttributeNames"]]
SystemAttributeNames = Annotated[
    list[Annotated[str, MEMBERS["MessageSystemAttributeNames.item"]]], MEMBERS["MessageSystemAttributeNames"]
]
MessageAttributeNames = Annotated[
    list[Annotated[str, MEMBERS["MessageAttributeNames.item"]]], MEMBERS["MessageAttributeNames"]
]


class MessageAttributeValue(Struct, rename="pascal", omit_defaults=True, gc=False):
    """A user attribute of a message. AWS reserves lists for later; they are ignored."""

    data_type: Annotated[str, MEMBERS["DataType"]] = ""
    string_value: Annotated[str, MEMBERS["StringValue"]] | None = None
    binary_value: Annotated[bytes, MEMBERS["BinaryValue"]] | None = None


class MessageSystemAttributeValue(MessageAttributeValue, rename="pascal", omit_defaults=True, gc=False):
    """A system attribute of a message."""

    string_value: Annotated[str, MEMBERS["SystemStringValue"]] | None = None
    binary_value: Annotated[bytes, MEMBERS["SystemBinaryValue"]] | None = None


MessageAttributes = dict[Annotated[str, MEMBERS["MessageAttributes.key"]], MessageAttributeValue]
UserAttributes = Annotated[MessageAttributes, MEMBERS["MessageAttributes"]]
SystemAttributes = Annotated[
    dict[Annotated[str, MEMBERS["MessageSystemAttributes.key"]], MessageSystemAttributeValue],
    MEMBERS["MessageSystemAttributes"],
]


class Command(Struct, rename="pascal", gc=False):
    """Base of all commands."""


class FencedCommand(Command, kw_only=True):
    """Base of the commands that may have a fence: a consumer group, and the token of an assignment in it."""

    elasticq_group: FenceGroup | None = None
    elasticq_token: Token | None = None
    elasticq_partition: Partition | None = None


class CreateQueue(Command):
    queue_name: QueueName | None = None
    attributes: Attributes = field(default_factory=dict)
    tags: Tags = field(default_factory=dict, name="tags")


class GetQueueUrl(Command):
    queue_name: QueueName | None = None
    queue_owner_account_id: AccountId | None = field(default=None, name="QueueOwnerAWSAccountId")


class ListQueues(Command):
    queue_name_prefix: Annotated[str, MEMBERS["QueueNamePrefix"]] | None = None
    max_results: Integer | None = None
    next_token: NextToken | None = None


class DeleteQueue(Command):
    queue_url: QueueUrl | None = None


class PurgeQueue(Command):
    queue_url: QueueUrl | None = None


class GetQueueAttributes(Command):
    queue_url: QueueUrl | None = None
    attribute_names: AttributeNames = field(default_factory=list)


class SetQueueAttributes(Command):
    queue_url: QueueUrl | None = None
    attributes: Attributes = field(default_factory=dict)


class SendMessage(Command):
    queue_url: QueueUrl | None = None
    message_body: MessageBody | None = None
    delay_seconds: Integer | None = None
    message_attributes: UserAttributes | None = None
    message_system_attributes: SystemAttributes | None = None
    message_deduplication_id: DeduplicationId | None = None
    message_group_id: GroupId | None = None


class SendMessageBatchEntry(Struct, rename="pascal", gc=False):
    id: EntryId | None = None
    message_body: MessageBody | None = None
    delay_seconds: Integer | None = None
    message_attributes: UserAttributes | None = None
    message_system_attributes: SystemAttributes | None = None
    message_deduplication_id: DeduplicationId | None = None
    message_group_id: GroupId | None = None


class SendMessageBatch(Command):
    queue_url: QueueUrl | None = None
    entries: Annotated[list[SendMessageBatchEntry], MEMBERS["Entries"]] = field(default_factory=list)
    elasticq_page_size: Integer | None = None


class ReceiveMessage(FencedCommand):
    queue_url: QueueUrl | None = None
    attribute_names: AttributeNames | None = None
    message_system_attribute_names: SystemAttributeNames | None = None
    message_attribute_names: MessageAttributeNames | None = None
    max_number_of_messages: Integer | None = None
    visibility_timeout: Integer | None = None
    wait_time_seconds: Integer | None = None
    receive_request_attempt_id: Annotated[str, MEMBERS["ReceiveRequestAttemptId"]] | None = None
    elasticq_page_size: Integer | None = None


class DeleteMessage(FencedCommand):
    queue_url: QueueUrl | None = None
    receipt_handle: ReceiptHandle | None = None


class DeleteMessageBatchEntry(Struct, rename="pascal", gc=False):
    id: EntryId | None = None
    receipt_handle: ReceiptHandle | None = None


class DeleteMessageBatch(FencedCommand):
    queue_url: QueueUrl | None = None
    entries: Annotated[list[DeleteMessageBatchEntry], MEMBERS["Entries"]] = field(default_factory=list)
    elasticq_page_size: Integer | None = None


class ChangeMessageVisibility(FencedCommand):
    queue_url: QueueUrl | None = None
    receipt_handle: ReceiptHandle | None = None
    visibility_timeout: Integer | None = None


class ChangeMessageVisibilityBatchEntry(Struct, rename="pascal", gc=False):
    id: EntryId | None = None
    receipt_handle: ReceiptHandle | None = None
    visibility_timeout: Integer | None = None


class ChangeMessageVisibilityBatch(FencedCommand):
    queue_url: QueueUrl | None = None
    entries: Annotated[list[ChangeMessageVisibilityBatchEntry], MEMBERS["Entries"]] = field(default_factory=list)
    elasticq_page_size: Integer | None = None


class TagQueue(Command):
    queue_url: QueueUrl | None = None
    tags: Tags = field(default_factory=dict)


class UntagQueue(Command):
    queue_url: QueueUrl | None = None
    tag_keys: Annotated[list[Annotated[str, MEMBERS["TagKeys.item"]]], MEMBERS["TagKeys"]] = field(default_factory=list)


class ListQueueTags(Command):
    queue_url: QueueUrl | None = None


class AddPermission(Command):
    queue_url: QueueUrl | None = None
    label: Label | None = None
    aws_account_ids: Annotated[list[Annotated[str, MEMBERS["AWSAccountIds.item"]]], MEMBERS["AWSAccountIds"]] = field(
        default_factory=list, name="AWSAccountIds"
    )
    actions: Annotated[list[Annotated[str, MEMBERS["Actions.item"]]], MEMBERS["Actions"]] = field(default_factory=list)


class RemovePermission(Command):
    queue_url: QueueUrl | None = None
    label: Label | None = None


class ListDeadLetterSourceQueues(Command):
    queue_url: QueueUrl | None = None
    next_token: NextToken | None = None
    max_results: Integer | None = None


class StartMessageMoveTask(Command):
    source_arn: Arn | None = None
    destination_arn: Arn | None = None
    max_number_of_messages_per_second: Integer | None = None


class CancelMessageMoveTask(Command):
    task_handle: Annotated[str, MEMBERS["TaskHandle"]] | None = None


class ListMessageMoveTasks(Command):
    source_arn: Arn | None = None
    max_results: Integer | None = None


class DeclareQueue(Command):
    """The creation of a queue from the settings. Only the server itself can send it.

    copy_to: the name of a queue of the same account that gets a copy of each message.
    move_to: the name of a queue that gets each message instead of this queue.
    created_ms, modified_ms: for a queue that was imported from another server, its times there; else 0.
    """

    queue_name: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    copy_to: str = ""
    move_to: str = ""
    created_ms: TimeMs = 0
    modified_ms: TimeMs = 0


class Origin(Struct, frozen=True, gc=False):
    """The source of a call, for the conditions of policies: the client's address, and whether it used TLS."""

    source_ip: str
    is_secure: bool


class Call(Struct, gc=False):
    """A command and its caller.

    principal: the access key id, or "anonymous".
    account: the owner (names.py) of the principal's queues in the region of the call.
    endpoint: the scheme://host:port that the client uses, for QueueUrls.
    invocation: 16 bytes that all attempts of one SDK call share (http/admission/caller.py); empty if the client sent
        no invocation id.
    origin: set if the caller was authenticated (auth = strict), so that policies are enforced; else None.
    trace_header: the X-Amzn-Trace-Id of the request. A sent message gets it as its AWSTraceHeader.
    deadline_ms: the real time of the cluster after which the call must not be executed, because the client gets a 503
        then; 0 for none.
    """

    command: Command
    principal: str
    account: str
    endpoint: str
    invocation: bytes = b""
    origin: Origin | None = None
    trace_header: str = ""
    deadline_ms: int = 0
