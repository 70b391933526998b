"""One answer of every kind, which each protocol must be able to write and its clients to read."""

from elasticq.model.commands import (
    AddPermission,
    CancelMessageMoveTask,
    ChangeMessageVisibility,
    ChangeMessageVisibilityBatch,
    Command,
    CreateQueue,
    DeleteMessage,
    DeleteMessageBatch,
    DeleteQueue,
    GetQueueAttributes,
    GetQueueUrl,
    ListDeadLetterSourceQueues,
    ListMessageMoveTasks,
    ListQueues,
    ListQueueTags,
    MessageAttributeValue,
    PurgeQueue,
    ReceiveMessage,
    RemovePermission,
    SendMessage,
    SendMessageBatch,
    SendMessageBatchEntry,
    SetQueueAttributes,
    StartMessageMoveTask,
    TagQueue,
    UntagQueue,
)
from elasticq.model.results import (
    BatchError,
    BatchResult,
    DeadLetterSourcesResult,
    EmptyResult,
    ListQueuesResult,
    MoveTask,
    MoveTaskCancelledResult,
    MoveTasksResult,
    MoveTaskStartedResult,
    QueueAttributesResult,
    QueueTagsResult,
    QueueUrlResult,
    ReceivedMessage,
    ReceiveMessageResult,
    Result,
    SendMessageBatchResult,
    SendMessageResult,
    SentEntry,
)
from tests.wire.reference import md5_of, md5_of_attributes

URL = "http://localhost:9324/000000000000/orders"
ID = "219f8380-5770-4cc2-8c3e-5c715e145f5e"
BODY = 'line 1\r\nline 2\n\t<a href="x">&amp; \u00e4\U0001f600</a> ]]>\'"\\'
USER = {
    "text": MessageAttributeValue("String", 'a<b>&"\r\n'),
    "number": MessageAttributeValue("Number.int", "007"),
    "bytes": MessageAttributeValue("Binary.png", binary_value=b"\x00\xff<&"),
}
TRACE = {"AWSTraceHeader": MessageAttributeValue("String", "Root=1-5759e988-bd862e3fe1be46a994272793")}
SYSTEM = {"SentTimestamp": "1700000000000", "SenderId": "a<b"}
ERROR = BatchError("b", "InvalidParameterValue", 'no "<&>\r', True)
OUR_ERROR = BatchError("c", "InternalFailure", "ours", False)

# What a client must see for USER, TRACE and the errors.
USER_SEEN = {
    "text": {"DataType": "String", "StringValue": 'a<b>&"\r\n'},
    "number": {"DataType": "Number.int", "StringValue": "007"},
    "bytes": {"DataType": "Binary.png", "BinaryValue": b"\x00\xff<&"},
}
FAILED_SEEN = [
    {"Id": "b", "Code": "InvalidParameterValue", "Message": 'no "<&>\r', "SenderFault": True},
    {"Id": "c", "Code": "InternalFailure", "Message": "ours", "SenderFault": False},
]
SENT_SEEN = {
    "MessageId": ID,
    "MD5OfMessageBody": md5_of(BODY),
    "MD5OfMessageAttributes": md5_of_attributes(USER),
    "MD5OfMessageSystemAttributes": md5_of_attributes(TRACE),
    "SequenceNumber": "18850568838606834816",
}
MESSAGE_SEEN = {
    "MessageId": ID,
    "ReceiptHandle": "AQ-_=",
    "MD5OfBody": md5_of(BODY),
    "Body": BODY,
    "Attributes": SYSTEM,
    "MD5OfMessageAttributes": md5_of_attributes(USER),
    "MessageAttributes": USER_SEEN,
}
PLAIN_SEEN = {"MessageId": ID, "ReceiptHandle": "h", "MD5OfBody": md5_of("x"), "Body": "x"}
BATCH_SEEN = {"Successful": [{"Id": "a"}, {"Id": "d"}], "Failed": FAILED_SEEN}

_ENTRIES = [
    SendMessageBatchEntry("x", "not this one"),
    SendMessageBatchEntry("a", BODY, message_attributes=USER, message_system_attributes=TRACE),
    SendMessageBatchEntry("plain", "x"),
]
_SENT = [SentEntry("a", 1, ID, SENT_SEEN["SequenceNumber"]), SentEntry("plain", 2, ID)]

ANSWERS: list[tuple[Command, Result, dict[str, object]]] = [
    (CreateQueue(), QueueUrlResult(URL), {"QueueUrl": URL}),
    (GetQueueUrl(), QueueUrlResult(URL), {"QueueUrl": URL}),
    (ListQueues(), ListQueuesResult(), {}),
    (ListQueues(), ListQueuesResult([URL, URL + "2"]), {"QueueUrls": [URL, URL + "2"]}),
    (ListQueues(), ListQueuesResult([URL], "next<"), {"QueueUrls": [URL], "NextToken": "next<"}),
    (DeleteQueue(), EmptyResult(), {}),
    (PurgeQueue(), EmptyResult(), {}),
    (SetQueueAttributes(), EmptyResult(), {}),
    (GetQueueAttributes(), QueueAttributesResult(), {}),
    (
        GetQueueAttributes(),
        QueueAttributesResult({"Policy": '{"a":"<&>"}', "DelaySeconds": "0"}),
        {"Attributes": {"Policy": '{"a":"<&>"}', "DelaySeconds": "0"}},
    ),
    (SendMessage(message_body="x"), SendMessageResult(ID), {"MessageId": ID, "MD5OfMessageBody": md5_of("x")}),
    (
        SendMessage(message_body=BODY, message_attributes=USER, message_system_attributes=TRACE),
        SendMessageResult(ID, SENT_SEEN["SequenceNumber"]),
        SENT_SEEN,
    ),
    (
        SendMessageBatch(entries=_ENTRIES),
        SendMessageBatchResult(_SENT, [ERROR, OUR_ERROR]),
        {
            "Successful": [
                {"Id": "a", **SENT_SEEN},
                {"Id": "plain", "MessageId": ID, "MD5OfMessageBody": md5_of("x")},
            ],
            "Failed": FAILED_SEEN,
        },
    ),
    (DeleteMessage(), EmptyResult(), {}),
    (DeleteMessageBatch(), BatchResult(["a", "d"], [ERROR, OUR_ERROR]), BATCH_SEEN),
    (DeleteMessageBatch(), BatchResult(["a", "d"]), {"Successful": [{"Id": "a"}, {"Id": "d"}]}),
    (DeleteMessageBatch(), BatchResult([], [ERROR, OUR_ERROR]), {"Successful": [], "Failed": FAILED_SEEN}),
    (ChangeMessageVisibility(), EmptyResult(), {}),
    (ChangeMessageVisibilityBatch(), BatchResult(["a", "d"], [ERROR, OUR_ERROR]), BATCH_SEEN),
    (TagQueue(), EmptyResult(), {}),
    (UntagQueue(), EmptyResult(), {}),
    (AddPermission(), EmptyResult(), {}),
    (RemovePermission(), EmptyResult(), {}),
    (ListQueueTags(), QueueTagsResult(), {}),
    (ListQueueTags(), QueueTagsResult({"a<": "&b", "c": "1"}), {"Tags": {"a<": "&b", "c": "1"}}),
    (ListDeadLetterSourceQueues(), DeadLetterSourcesResult([]), {"queueUrls": []}),
    (
        ListDeadLetterSourceQueues(),
        DeadLetterSourcesResult([URL, URL + "2"], "next"),
        {"queueUrls": [URL, URL + "2"], "NextToken": "next"},
    ),
    (StartMessageMoveTask(), MoveTaskStartedResult("aGFuZGxl"), {"TaskHandle": "aGFuZGxl"}),
    (CancelMessageMoveTask(), MoveTaskCancelledResult(7), {"ApproximateNumberOfMessagesMoved": 7}),
    (ListMessageMoveTasks(), MoveTasksResult([]), {"Results": []}),
    (
        ListMessageMoveTasks(),
        MoveTasksResult(
            [
                MoveTask("aGFuZGxl", "RUNNING", "arn:s", "arn:d", 5, 0, 3, None, 1_700_000_000_000),
                MoveTask(None, "FAILED", "arn:s", None, None, 1, 3, "Reason", 1_700_000_000_000),
            ]
        ),
        {
            "Results": [
                {
                    "TaskHandle": "aGFuZGxl",
                    "Status": "RUNNING",
                    "SourceArn": "arn:s",
                    "DestinationArn": "arn:d",
                    "MaxNumberOfMessagesPerSecond": 5,
                    "ApproximateNumberOfMessagesMoved": 0,
                    "ApproximateNumberOfMessagesToMove": 3,
                    "StartedTimestamp": 1_700_000_000_000,
                },
                {
                    "Status": "FAILED",
                    "SourceArn": "arn:s",
                    "ApproximateNumberOfMessagesMoved": 1,
                    "ApproximateNumberOfMessagesToMove": 3,
                    "FailureReason": "Reason",
                    "StartedTimestamp": 1_700_000_000_000,
                },
            ]
        },
    ),
    (ReceiveMessage(), ReceiveMessageResult(), {}),
    (
        ReceiveMessage(),
        ReceiveMessageResult([ReceivedMessage(ID, "AQ-_=", BODY, SYSTEM, USER), ReceivedMessage(ID, "h", "x")]),
        {"Messages": [MESSAGE_SEEN, PLAIN_SEEN]},
    ),
]
