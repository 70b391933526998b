"""The table of actions: name, command, result and permission of each.

A new action is a row here. It has the name of its command class in ``commands.py``, and ``result`` is the name of its
class in ``results.py``. For topics, the classes are in ``topic_commands.py`` and ``topic_results.py``. Several
packages use these rows:

- ``wire`` reads requests and writes answers with them;
- the engine checks permissions;
- the node checks the answers of other members;
- the light client makes its methods.

The table has the names of classes instead of the classes, because the light client also reads it where msgspec is not
installed.

Sources: the service model of botocore (names); the AddPermission API page (permissions); the SQS developer guide,
"Basic examples of Amazon SQS policies" (the actions that only an owner can call).
"""

from typing import Final, NamedTuple


class Action(NamedTuple):
    """One action.

    permission: the name that a policy has for it. A batch has that of its single action.
    command: the name of its command class. It differs from ``name`` if another API has an action of the same name.
    is_owner_only: whether no policy can allow it to another account.
    is_read_only: whether it changes nothing, not even the visibility of a message.
    is_root_only: whether it is not valid on a queue's URL (Query answers InvalidAction there).
    has_messages: whether a request contains bodies of messages, so that it may be long.
    """

    name: str
    result: str
    permission: str
    is_owner_only: bool
    is_read_only: bool
    is_root_only: bool
    has_messages: bool
    command: str


def action(
    name: str,
    result: str = "EmptyResult",
    permission: str = "",
    *,
    owner_only: bool = False,
    read_only: bool = False,
    root_only: bool = False,
    messages: bool = False,
    command: str = "",
) -> Action:
    """Return a row. The default of ``permission`` and ``command`` is the name of the action."""
    return Action(name, result, permission or name, owner_only, read_only, root_only, messages, command or name)


TARGET_PREFIX: Final = "AmazonSQS"
"""The prefix of the header X-Amz-Target, which names the action of a JSON 1.0 request: AmazonSQS.SendMessage."""

ACTIONS: Final = (
    action("CreateQueue", "QueueUrlResult", owner_only=True, root_only=True),
    action("GetQueueUrl", "QueueUrlResult", read_only=True),
    action("ListQueues", "ListQueuesResult", owner_only=True, read_only=True, root_only=True),
    action("DeleteQueue", owner_only=True),
    action("GetQueueAttributes", "QueueAttributesResult", read_only=True),
    action("SetQueueAttributes", owner_only=True),
    action("SendMessage", "SendMessageResult", messages=True),
    action("SendMessageBatch", "SendMessageBatchResult", permission="SendMessage", messages=True),
    action("ReceiveMessage", "ReceiveMessageResult"),
    action("DeleteMessage"),
    action("DeleteMessageBatch", "BatchResult", permission="DeleteMessage"),
    action("ChangeMessageVisibility"),
    action("ChangeMessageVisibilityBatch", "BatchResult", permission="ChangeMessageVisibility"),
    action("PurgeQueue"),
    action("TagQueue", owner_only=True),
    action("UntagQueue", owner_only=True),
    action("ListQueueTags", "QueueTagsResult", owner_only=True, read_only=True),
    action("AddPermission", owner_only=True),
    action("RemovePermission", owner_only=True),
    action("ListDeadLetterSourceQueues", "DeadLetterSourcesResult", read_only=True),
    action("StartMessageMoveTask", "MoveTaskStartedResult", owner_only=True),
    action("CancelMessageMoveTask", "MoveTaskCancelledResult", owner_only=True),
    action("ListMessageMoveTasks", "MoveTasksResult", owner_only=True, read_only=True),
)
"""The actions of SQS."""

EXTENSIONS: Final = (
    action("ElasticqChangePriority", "PrioritiesChangedResult", permission="SendMessage"),
    action("ElasticqReschedule", "PrioritiesChangedResult", permission="SendMessage"),
    action("ElasticqCancelScheduled", "PrioritiesChangedResult", permission="DeleteMessage"),
    action("ElasticqSetGroup", "GroupChangedResult", owner_only=True, root_only=True),
    action("ElasticqDeleteGroup", owner_only=True, root_only=True),
    action("ElasticqJoinGroup", "GroupJoinedResult", owner_only=True, root_only=True),
    action("ElasticqHeartbeat", "GroupViewResult", owner_only=True, root_only=True),
    action("ElasticqLeaveGroup", owner_only=True, root_only=True),
    action("ElasticqMoveResource", "GroupChangedResult", owner_only=True, root_only=True),
    action("ElasticqDrainConsumer", "GroupChangedResult", owner_only=True, root_only=True),
    action("ElasticqDescribeGroups", "GroupsResult", owner_only=True, read_only=True, root_only=True),
)
"""elasticq's own actions, in both protocols of SQS.

The sender of a message chooses its priority and its time. So a policy that allows sends also allows changing them.
"""


def _nothing(name: str) -> Action:
    return action(name, "NothingThereResult", owner_only=True, read_only=True, command="NothingThere")


_DONE: Final = "TopicDone"
TOPIC_ACTIONS: Final = (
    action("CreateTopic", "TopicArnResult", owner_only=True),
    action("DeleteTopic", _DONE),
    action("ListTopics", "TopicsResult", owner_only=True, read_only=True),
    action("GetTopicAttributes", "TopicAttributesResult", read_only=True),
    action("SetTopicAttributes", _DONE),
    action("Subscribe", "SubscribeResult", messages=True),
    action("ConfirmSubscription", "SubscribeResult", permission="Subscribe"),
    action("Unsubscribe", _DONE, owner_only=True),
    action("ListSubscriptions", "SubscriptionsResult", owner_only=True, read_only=True),
    action("ListSubscriptionsByTopic", "SubscriptionsResult", read_only=True),
    action("GetSubscriptionAttributes", "TopicAttributesResult", owner_only=True, read_only=True),
    action("SetSubscriptionAttributes", _DONE, owner_only=True, messages=True),
    action("Publish", "PublishResult", messages=True),
    action("PublishBatch", "PublishBatchResult", permission="Publish", messages=True),
    action("TagResource", "TopicTagged", owner_only=True),
    action("UntagResource", "TopicTagged", owner_only=True),
    action("ListTagsForResource", "TopicTagsResult", owner_only=True, read_only=True),
    action("AddPermission", _DONE, command="AddTopicPermission"),
    action("RemovePermission", _DONE, command="RemoveTopicPermission"),
    action("GetDataProtectionPolicy", "DataProtectionPolicyResult", owner_only=True, read_only=True),
    action("PutDataProtectionPolicy", _DONE, owner_only=True),
    # Reads of phones and mobile push. Their answers are empty, so programs that only list them work.
    _nothing("CheckIfPhoneNumberIsOptedOut"),
    _nothing("GetSMSAttributes"),
    _nothing("GetSMSSandboxAccountStatus"),
    _nothing("ListEndpointsByPlatformApplication"),
    _nothing("ListOriginationNumbers"),
    _nothing("ListPhoneNumbersOptedOut"),
    _nothing("ListPlatformApplications"),
    _nothing("ListSMSSandboxPhoneNumbers"),
)
"""The actions of SNS, except those of ``NOT_HERE``."""

NOT_HERE: Final = frozenset(
    (
        "CreatePlatformApplication",
        "CreatePlatformEndpoint",
        "CreateSMSSandboxPhoneNumber",
        "DeleteEndpoint",
        "DeletePlatformApplication",
        "DeleteSMSSandboxPhoneNumber",
        "GetEndpointAttributes",
        "GetPlatformApplicationAttributes",
        "OptInPhoneNumber",
        "SetEndpointAttributes",
        "SetPlatformApplicationAttributes",
        "SetSMSAttributes",
        "VerifySMSSandboxPhoneNumber",
    )
)
"""The actions of SNS on phones and mobile push. They get the error of AWS regions that do not have them."""

IDENTITY_ACTIONS: Final = (
    action("GetCallerIdentity", "CallerIdentityResult", owner_only=True, read_only=True, root_only=True),
)
"""The only action of STS that is here."""

PEEK: Final = action("Peek", "PeekResult", permission="ReceiveMessage", read_only=True)
"""elasticq's own action to look at messages. It has JSON 1.0 only, and its own path. Policies treat it as a receive."""

BY_SEQUENCE: Final = (
    action("DeleteBySequence", permission="DeleteMessage"),
    action("HideBySequence", permission="ChangeMessageVisibility"),
    action("PrioritiseBySequence", permission="SendMessage"),
)
"""elasticq's own actions for REST, which names a message by its sequence."""

INTERNAL: Final = (
    action("DeclareQueue", "QueueDeclaredResult"),
    action("AdvanceClock", "ClockResult"),
    action("DeleteAllQueues", "QueuesDeletedResult"),
)
"""Commands of the settings and of tests, which clients cannot send. Policies do not apply to them."""

BY_NAME: Final = {
    row.command: row
    for row in (*ACTIONS, *EXTENSIONS, *TOPIC_ACTIONS, *IDENTITY_ACTIONS, PEEK, *BY_SEQUENCE, *INTERNAL)
}
"""All rows by the names of their command classes."""

READ_ONLY: Final = frozenset([row.command for row in BY_NAME.values() if row.is_read_only])
"""The names of the commands that change nothing. They do not need a master, and may be executed twice."""

CALLABLE: Final = {name: row for name, row in BY_NAME.items() if row not in INTERNAL}
"""The rows of commands that a client or an operator can send. The operators' API executes these."""

OWNER_ONLY: Final = frozenset([row.permission for row in ACTIONS if row.is_owner_only])
GRANTABLE: Final = frozenset([row.permission for row in ACTIONS if not row.is_owner_only])
"""The permissions that a policy can grant to another account."""
