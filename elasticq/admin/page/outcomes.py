"""The words of the note that a form shows after its action was executed."""

import json
from typing import Any, Final

from elasticq.admin.page.topics import name_in

TOO_LATE: Final = "The message does not wait any more, or a consumer received it."
_WORDS: Final = {
    "CreateQueue": "The queue was created.",
    "DeleteQueue": "The queue was deleted.",
    "PurgeQueue": "All its messages are deleted.",
    "SetQueueAttributes": "The settings were saved.",
    "TagQueue": "The tags were saved.",
    "UntagQueue": "The tag was removed.",
    "SendMessage": "The message was sent.",
    "DeleteBySequence": "The message was deleted.",
    "HideBySequence": "The message is visible again.",
    "PrioritiseBySequence": "The message has another priority.",
    "ElasticqReschedule": "The message has another time.",
    "ElasticqCancelScheduled": "The message was cancelled.",
    "StartMessageMoveTask": "The messages are being moved. The progress is shown under Dead letters.",
    "CancelMessageMoveTask": "The move was cancelled. What was moved stays where it is.",
    "CreateTopic": "The topic was created.",
    "DeleteTopic": "The topic was deleted.",
    "Subscribe": "The subscription was created.",
    "Unsubscribe": "The subscription was ended.",
    "SetSubscriptionAttributes": "The subscription was changed.",
    "SetTopicAttributes": "The topic was changed.",
    "TagResource": "The tags were saved.",
    "UntagResource": "The tag was removed.",
    "Publish": "The message was published.",
    "ElasticqDrainConsumer": "The consumer gives back what it holds, and gets no more.",
}
_NAMED: Final = ("CreateQueue", "CreateTopic")
_HIDDEN: Final = frozenset(("TaskHandle", "ReceiptHandle", "QueueUrl", "Changed", "NotFound", "NextToken"))
"""Members of answers that only programs can use."""
_PENDING: Final = "pending confirmation"


def of(action: str, given: dict[str, Any], answer: dict[str, Any]) -> tuple[str, str]:
    """Return the title and the sentence of the note for an executed action."""
    if action == "Subscribe" and answer.get("SubscriptionArn") == _PENDING:
        return "Done.", "The subscription waits until its endpoint confirms it."
    if action in _NAMED:
        name = given.get("QueueName") or given.get("Name") or name_in(answer.get("TopicArn", ""))
        return f"{name}:", _WORDS[action]
    return "Done.", _WORDS.get(action, f"{action} was executed.")


def detail(action: str, answer: dict[str, Any]) -> str:
    """Return the rest of an answer that a person may need, as text: one member a line, or JSON if it has parts."""
    shown = {name: value for name, value in answer.items() if name not in _HIDDEN and not name.startswith("MD5")}
    if action in _WORDS and any(isinstance(value, (dict, list)) for value in shown.values()):
        return ""
    if all(isinstance(value, (str, int)) for value in shown.values()):
        return "\n".join(f"{name}: {value}" for name, value in shown.items())
    return json.dumps(shown, indent=2, ensure_ascii=False)
