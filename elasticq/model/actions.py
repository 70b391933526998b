"""The one table of actions: what each is called, what it answers and who may be allowed it.

A new action is a row here; it is named as its command class in ``commands.py``, and ``result`` names its class in
``results.py``; those of topics stand in ``topic_commands.py`` and ``topic_results.py``. The wire room derives from the
rows how requests and answers are read and written, the engine who may call what, the node which answers of another
member it believes, and the light client its methods. Classes stand here by their names because the light client reads
this table where msgspec, which the classes need, is not installed.

Source: the service model of botocore (names), the AddPermission API page (permissions), the SQS developer guide,
"Basic examples of Amazon SQS policies" (what is the owner's alone).
"""

from typing import Final, NamedTuple


class Action(NamedTuple):
    """One action.

    permission: the name by which a policy allows it; a batch has that of its single action
    command: the name of its command class, which is the action's own wherever no other API has an action of that name
    is_owner_only: never allowed to another account, whatever a policy says
    is_read_only: changes nothing, not even a message's visibility
    is_root_only: not valid on a queue's URL (Query answers InvalidAction there)
    has_messages: a request holds bodies of messages, so that it may be long
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
    """A row; without ``permission`` a policy allows the action by its own name."""
    return Action(name, result, permission or name, owner_only, read_only, root_only, messages, command or name)


TARGET_PREFIX: Final = "AmazonSQS"
"""A JSON 1.0 request names its action in the header X-Amz-Target, as AmazonSQS.SendMessage."""

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
"""SQS's actions."""

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
"""Ours, beside SQS's in both of its protocols. Who sends a message says its priority and its time: for policies these
are sends."""


def _nothing(name: str) -> Action:
    return action(name, "NothingThereResult", owner_only=True, read_only=True, command="NothingThere")


_OWN: Final = "TopicDone"
TOPIC_ACTIONS: Final = (
    action("CreateTopic", "TopicArnResult", owner_only=True),
    action("DeleteTopic", _OWN),
    action("ListTopics", "TopicsResult", owner_only=True, read_only=True),
    action("GetTopicAttributes", "TopicAttributesResult", read_only=True),
    action("SetTopicAttributes", _OWN),
    action("Subscribe", "SubscribeResult", messages=True),
    action("ConfirmSubscription", "SubscribeResult", permission="Subscribe"),
    action("Unsubscribe", _OWN, owner_only=True),
    action("ListSubscriptions", "SubscriptionsResult", owner_only=True, read_only=True),
    action("ListSubscriptionsByTopic", "SubscriptionsResult", read_only=True),
    action("GetSubscriptionAttributes", "TopicAttributesResult", owner_only=True, read_only=True),
    action("SetSubscriptionAttributes", _OWN, owner_only=True, messages=True),
    action("Publish", "PublishResult", messages=True),
    action("PublishBatch", "PublishBatchResult", permission="Publish", messages=True),
    action("TagResource", "TopicTagged", owner_only=True),
    action("UntagResource", "TopicTagged", owner_only=True),
    action("ListTagsForResource", "TopicTagsResult", owner_only=True, read_only=True),
    action("AddPermission", _OWN, command="AddTopicPermission"),
    action("RemovePermission", _OWN, command="RemoveTopicPermission"),
    action("GetDataProtectionPolicy", "DataProtectionPolicyResult", owner_only=True, read_only=True),
    action("PutDataProtectionPolicy", _OWN, owner_only=True),
    # Reads of phones and mobile push: there are none, and programs that only look are told so.
    _nothing("CheckIfPhoneNumberIsOptedOut"),
    _nothing("GetSMSAttributes"),
    _nothing("GetSMSSandboxAccountStatus"),
    _nothing("ListEndpointsByPlatformApplication"),
    _nothing("ListOriginationNumbers"),
    _nothing("ListPhoneNumbersOptedOut"),
    _nothing("ListPlatformApplications"),
    _nothing("ListSMSSandboxPhoneNumbers"),
)
"""SNS's actions, but for those below."""

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
"""SNS's actions on phones and mobile push, which are refused as AWS refuses them in regions that do not have them."""

PEEK: Final = action("Peek", "PeekResult", permission="ReceiveMessage", read_only=True)
"""Ours, of JSON 1.0 only, and on a path of its own; for policies it is a receive."""

BY_SEQUENCE: Final = (
    action("DeleteBySequence", permission="DeleteMessage"),
    action("HideBySequence", permission="ChangeMessageVisibility"),
    action("PrioritiseBySequence", permission="SendMessage"),
)
"""Ours, of REST only, which names a message by its place in the queue."""

INTERNAL: Final = (
    action("DeclareQueue", "QueueDeclaredResult"),
    action("AdvanceClock", "ClockResult"),
    action("DeleteAllQueues", "QueuesDeletedResult"),
)
"""Commands that no client can write: of the settings, and of tests. No policy is asked about them."""

BY_NAME: Final = {row.command: row for row in (*ACTIONS, *EXTENSIONS, *TOPIC_ACTIONS, PEEK, *BY_SEQUENCE, *INTERNAL)}
"""All commands, by the names of their classes."""

READ_ONLY: Final = frozenset([row.command for row in BY_NAME.values() if row.is_read_only])
"""The classes of commands that change nothing. They are answered without a master, and may be executed twice."""

CALLABLE: Final = {name: row for name, row in BY_NAME.items() if row not in INTERNAL}
"""Those that a client or an operator can write: what the operators' API executes."""

OWNER_ONLY: Final = frozenset([row.permission for row in ACTIONS if row.is_owner_only])
GRANTABLE: Final = frozenset([row.permission for row in ACTIONS if not row.is_owner_only])
"""The permissions that a policy can give to another account."""
