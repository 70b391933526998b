"""TagQueue, UntagQueue, ListQueueTags."""

import re
from typing import Final

from elasticq.engine.context import ExecutionContext, Outcome, named_queue
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.model import limits
from elasticq.model.commands import Call, ListQueueTags, TagQueue, UntagQueue
from elasticq.model.errors import InvalidParameterValue, MissingParameter
from elasticq.model.results import EmptyResult, QueueTagsResult

_CHARACTERS: Final = re.compile(r"[\w .:/=+@-]*\Z")

_KEY_LENGTH: Final = f"Tag keys must be between 1 and {limits.TAG_KEY_CHARS_MAX} characters in length."


def check_tags(tags: dict[str, str]) -> None:
    """Raise InvalidParameterValue for an invalid key or value of a tag. The texts are ours; AWS's are unknown."""
    for key, value in tags.items():
        if not 1 <= len(key) <= limits.TAG_KEY_CHARS_MAX:
            raise InvalidParameterValue(_KEY_LENGTH)
        if len(value) > limits.TAG_VALUE_CHARS_MAX:
            raise InvalidParameterValue(f"Tag value can be at most {limits.TAG_VALUE_CHARS_MAX} characters in length.")
        for text in (key, value):
            if text.lower().startswith("aws:"):
                raise InvalidParameterValue(f"Tag {text} is invalid. Reason: the prefix aws: is reserved.")
            if not _CHARACTERS.match(text):
                raise InvalidParameterValue(
                    f"Tag {text} is invalid. Reason: it can only contain letters, digits, spaces and _.:/=+-@"
                )


def check_count(tags: dict[str, str], queue_name: str) -> None:
    """Raise InvalidParameterValue if there are too many tags for one queue."""
    if len(tags) > limits.TAGS_MAX:
        raise InvalidParameterValue(f"Too many tags added for queue {queue_name}.")


def tag_queue(state: State, call: Call, command: TagQueue, context: ExecutionContext) -> Outcome:
    queue = named_queue(state, call, command.queue_url)
    if not command.tags:
        raise MissingParameter("The request must contain the parameter Tags.")
    check_tags(command.tags)
    tags = {**queue.tags, **command.tags}
    check_count(tags, queue.name)
    return EmptyResult(), [] if tags == queue.tags else [m.QueueTagged(queue.id, tags)]


def untag_queue(state: State, call: Call, command: UntagQueue, context: ExecutionContext) -> Outcome:
    """Remove tags. A key that the queue does not have is not an error (observed on AWS)."""
    queue = named_queue(state, call, command.queue_url)
    if not command.tag_keys:
        raise InvalidParameterValue(_KEY_LENGTH)
    tags = {key: value for key, value in queue.tags.items() if key not in command.tag_keys}
    return EmptyResult(), [] if tags == queue.tags else [m.QueueTagged(queue.id, tags)]


def list_queue_tags(state: State, call: Call, command: ListQueueTags, context: ExecutionContext) -> Outcome:
    return QueueTagsResult(dict(named_queue(state, call, command.queue_url).tags)), []
