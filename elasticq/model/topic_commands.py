"""The commands of SNS: one class per action, with the fields of AWS.

The source of all shapes is botocore's model ``sns/2010-03-31``. SQS also has AddPermission and RemovePermission, so
the classes here have other names. Booleans are the texts of the Query protocol. The bounds of all members are in
``limits.TOPIC_MEMBERS``.
"""

from typing import Annotated

from msgspec import Struct, field

from elasticq.model.commands import Command, MessageAttributeValue
from elasticq.model.limits import TOPIC_MEMBERS

TopicName = Annotated[str, TOPIC_MEMBERS["Name"]]
TopicArn = Annotated[str, TOPIC_MEMBERS["TopicArn"]]
TargetArn = Annotated[str, TOPIC_MEMBERS["TargetArn"]]
ResourceArn = Annotated[str, TOPIC_MEMBERS["ResourceArn"]]
SubscriptionArn = Annotated[str, TOPIC_MEMBERS["SubscriptionArn"]]
NextToken = Annotated[str, TOPIC_MEMBERS["NextToken"]]
Flag = Annotated[str, TOPIC_MEMBERS["Flag"]]
AttributeName = Annotated[str, TOPIC_MEMBERS["AttributeName"]]
AttributeValue = Annotated[str, TOPIC_MEMBERS["AttributeValue"]]
Policy = Annotated[str, TOPIC_MEMBERS["DataProtectionPolicy"]]
Label = Annotated[str, TOPIC_MEMBERS["Label"]]
Message = Annotated[str, TOPIC_MEMBERS["Message"]]
Subject = Annotated[str, TOPIC_MEMBERS["Subject"]]
Structure = Annotated[str, TOPIC_MEMBERS["MessageStructure"]]
GroupId = Annotated[str, TOPIC_MEMBERS["MessageGroupId"]]
DeduplicationId = Annotated[str, TOPIC_MEMBERS["MessageDeduplicationId"]]
Attributes = Annotated[
    dict[Annotated[str, TOPIC_MEMBERS["Attributes.key"]], Annotated[str, TOPIC_MEMBERS["Attributes.value"]]],
    TOPIC_MEMBERS["Attributes"],
]
MessageAttributes = Annotated[
    dict[Annotated[str, TOPIC_MEMBERS["MessageAttributes.key"]], MessageAttributeValue],
    TOPIC_MEMBERS["MessageAttributes"],
]


class Tag(Struct, rename="pascal", gc=False):
    key: Annotated[str, TOPIC_MEMBERS["Key"]] | None = None
    value: Annotated[str, TOPIC_MEMBERS["Value"]] | None = None


Tags = Annotated[list[Tag], TOPIC_MEMBERS["Tags"]]


class TopicCommand(Command, rename="pascal", gc=False):
    """Base of all commands of SNS."""


class CreateTopic(TopicCommand):
    name: TopicName | None = None
    attributes: Attributes = field(default_factory=dict)
    tags: Tags = field(default_factory=list)
    data_protection_policy: Policy | None = None


class DeleteTopic(TopicCommand):
    topic_arn: TopicArn | None = None


class ListTopics(TopicCommand):
    next_token: NextToken | None = None


class GetTopicAttributes(TopicCommand):
    topic_arn: TopicArn | None = None


class SetTopicAttributes(TopicCommand):
    topic_arn: TopicArn | None = None
    attribute_name: AttributeName | None = None
    attribute_value: AttributeValue | None = None


class Subscribe(TopicCommand):
    topic_arn: TopicArn | None = None
    protocol: Annotated[str, TOPIC_MEMBERS["Protocol"]] | None = None
    endpoint: Annotated[str, TOPIC_MEMBERS["Endpoint"]] | None = None
    attributes: Attributes = field(default_factory=dict)
    return_subscription_arn: Flag | None = None


class ConfirmSubscription(TopicCommand):
    topic_arn: TopicArn | None = None
    token: Annotated[str, TOPIC_MEMBERS["Token"]] | None = None
    authenticate_on_unsubscribe: Flag | None = None


class Unsubscribe(TopicCommand):
    subscription_arn: SubscriptionArn | None = None


class ListSubscriptions(TopicCommand):
    next_token: NextToken | None = None


class ListSubscriptionsByTopic(TopicCommand):
    topic_arn: TopicArn | None = None
    next_token: NextToken | None = None


class GetSubscriptionAttributes(TopicCommand):
    subscription_arn: SubscriptionArn | None = None


class SetSubscriptionAttributes(TopicCommand):
    subscription_arn: SubscriptionArn | None = None
    attribute_name: AttributeName | None = None
    attribute_value: AttributeValue | None = None


class Publish(TopicCommand):
    topic_arn: TopicArn | None = None
    target_arn: TargetArn | None = None
    phone_number: Annotated[str, TOPIC_MEMBERS["PhoneNumber"]] | None = None
    message: Message | None = None
    subject: Subject | None = None
    message_structure: Structure | None = None
    message_attributes: MessageAttributes | None = None
    message_deduplication_id: DeduplicationId | None = None
    message_group_id: GroupId | None = None


class PublishBatchRequestEntry(Struct, rename="pascal", gc=False):
    id: Annotated[str, TOPIC_MEMBERS["Id"]] | None = None
    message: Message | None = None
    subject: Subject | None = None
    message_structure: Structure | None = None
    message_attributes: MessageAttributes | None = None
    message_deduplication_id: DeduplicationId | None = None
    message_group_id: GroupId | None = None


class PublishBatch(TopicCommand):
    topic_arn: TopicArn | None = None
    publish_batch_request_entries: Annotated[
        list[PublishBatchRequestEntry], TOPIC_MEMBERS["PublishBatchRequestEntries"]
    ] = field(default_factory=list)


class TagResource(TopicCommand):
    resource_arn: ResourceArn | None = None
    tags: Tags = field(default_factory=list)


class UntagResource(TopicCommand):
    resource_arn: ResourceArn | None = None
    tag_keys: Annotated[list[Annotated[str, TOPIC_MEMBERS["TagKeys.item"]]], TOPIC_MEMBERS["TagKeys"]] = field(
        default_factory=list
    )


class ListTagsForResource(TopicCommand):
    resource_arn: ResourceArn | None = None


class AddTopicPermission(TopicCommand):
    """The command of SNS's AddPermission."""

    topic_arn: TopicArn | None = None
    label: Label | None = None
    aws_account_id: Annotated[
        list[Annotated[str, TOPIC_MEMBERS["AWSAccountId.item"]]], TOPIC_MEMBERS["AWSAccountId"]
    ] = field(default_factory=list, name="AWSAccountId")
    action_name: Annotated[list[Annotated[str, TOPIC_MEMBERS["ActionName.item"]]], TOPIC_MEMBERS["ActionName"]] = field(
        default_factory=list
    )


class RemoveTopicPermission(TopicCommand):
    """The command of SNS's RemovePermission."""

    topic_arn: TopicArn | None = None
    label: Label | None = None


class GetDataProtectionPolicy(TopicCommand):
    resource_arn: ResourceArn | None = None


class PutDataProtectionPolicy(TopicCommand):
    resource_arn: ResourceArn | None = None
    data_protection_policy: Policy | None = None


class NothingThere(TopicCommand):
    """A read of phones or mobile push. elasticq has neither, so the answer is empty."""
