"""One call of each action, and the shapes of HTTP requests that it can have."""

from typing import Any

from tests.http.desk import HOST, QUEUE_URL, chunked, form_request, json_request

Members = dict[str, Any]
ENTRIES = [{"Id": "a", "MessageBody": "one"}, {"Id": "b", "MessageBody": "two"}]

# (action, JSON members, Query parameters), in an order in which each has something to act on.
# HANDLE stands for the handle of the last receive.
CALLS: list[tuple[str, Members, str]] = [
    ("CreateQueue", {"QueueName": "orders"}, "QueueName=orders"),
    ("GetQueueUrl", {"QueueName": "orders"}, "QueueName=orders"),
    ("ListQueues", {"QueueNamePrefix": "o"}, "QueueNamePrefix=o"),
    (
        "SetQueueAttributes",
        {"QueueUrl": QUEUE_URL, "Attributes": {"DelaySeconds": "0"}},
        f"QueueUrl={QUEUE_URL}&Attribute.1.Name=DelaySeconds&Attribute.1.Value=0",
    ),
    (
        "GetQueueAttributes",
        {"QueueUrl": QUEUE_URL, "AttributeNames": ["All"]},
        f"QueueUrl={QUEUE_URL}&AttributeName.1=All",
    ),
    ("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "a\r&<"}, f"QueueUrl={QUEUE_URL}&MessageBody=a%0D%26%3C"),
    (
        "SendMessageBatch",
        {"QueueUrl": QUEUE_URL, "Entries": ENTRIES},
        f"QueueUrl={QUEUE_URL}"
        "&SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1.MessageBody=one"
        "&SendMessageBatchRequestEntry.2.Id=b&SendMessageBatchRequestEntry.2.MessageBody=two",
    ),
    ("ReceiveMessage", {"QueueUrl": QUEUE_URL, "AttributeNames": ["All"]}, f"QueueUrl={QUEUE_URL}&AttributeName.1=All"),
    (
        "ChangeMessageVisibility",
        {"QueueUrl": QUEUE_URL, "ReceiptHandle": "HANDLE", "VisibilityTimeout": 7},
        f"QueueUrl={QUEUE_URL}&ReceiptHandle=HANDLE&VisibilityTimeout=7",
    ),
    (
        "ChangeMessageVisibilityBatch",
        {"QueueUrl": QUEUE_URL, "Entries": [{"Id": "a", "ReceiptHandle": "HANDLE", "VisibilityTimeout": 7}]},
        f"QueueUrl={QUEUE_URL}&ChangeMessageVisibilityBatchRequestEntry.1.Id=a"
        "&ChangeMessageVisibilityBatchRequestEntry.1.ReceiptHandle=HANDLE"
        "&ChangeMessageVisibilityBatchRequestEntry.1.VisibilityTimeout=7",
    ),
    (
        "DeleteMessage",
        {"QueueUrl": QUEUE_URL, "ReceiptHandle": "HANDLE"},
        f"QueueUrl={QUEUE_URL}&ReceiptHandle=HANDLE",
    ),
    (
        "DeleteMessageBatch",
        {"QueueUrl": QUEUE_URL, "Entries": [{"Id": "a", "ReceiptHandle": "HANDLE"}, {"Id": "b", "ReceiptHandle": "x"}]},
        f"QueueUrl={QUEUE_URL}&DeleteMessageBatchRequestEntry.1.Id=a"
        "&DeleteMessageBatchRequestEntry.1.ReceiptHandle=HANDLE&DeleteMessageBatchRequestEntry.2.Id=b"
        "&DeleteMessageBatchRequestEntry.2.ReceiptHandle=x",
    ),
    ("PurgeQueue", {"QueueUrl": QUEUE_URL}, f"QueueUrl={QUEUE_URL}"),
    ("DeleteQueue", {"QueueUrl": QUEUE_URL}, f"QueueUrl={QUEUE_URL}"),
    ("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "no queue"}, f"QueueUrl={QUEUE_URL}&MessageBody=no+queue"),
    ("NoSuchAction", {}, "QueueName=a"),
    ("CreateQueue", {"QueueName": "a/b"}, "QueueName=a/b"),
]


def hot_json(action: str, members: Members, form: str) -> bytes:
    return json_request(action, members)


def hot_form(action: str, members: Members, form: str) -> bytes:
    return form_request(f"Action={action}&{form}")


def by_url(action: str, members: Members, form: str) -> bytes:
    return f"GET /?Action={action}&{form} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()


def split(action: str, members: Members, form: str) -> bytes:
    return form_request(form, path=f"/?Action={action}")


SHAPES = {
    "json": (hot_json, lambda *call: chunked(hot_json(*call))),
    "form": (hot_form, lambda *call: chunked(hot_form(*call))),
    "query by URL": (hot_form, by_url),
    "query in both": (hot_form, split),
}
