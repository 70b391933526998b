"""TagResource, UntagResource, ListTagsForResource."""

from typing import Final

from msgspec.structs import replace

from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.state import State
from elasticq.engine.topics.arns import named_resource
from elasticq.model import limits
from elasticq.model import topic_commands as t
from elasticq.model.commands import Call
from elasticq.model.errors import TagLimitExceeded, invalid_parameter
from elasticq.model.topic_results import ListedTag, TopicTagged, TopicTagsResult

TOO_MANY: Final = "Could not complete request: tag quota of per resource exceeded"


def checked_tags(tags: list[t.Tag]) -> dict[str, str]:
    """Return the tags as a dict. Raise InvalidParameter if one is invalid, TagLimitExceeded if there are too many."""
    found: dict[str, str] = {}
    for tag in tags:
        key, value = tag.key or "", tag.value or ""
        if not 1 <= len(key) <= limits.TAG_KEY_CHARS_MAX:
            raise invalid_parameter(f"Tag key Reason: it must have 1 to {limits.TAG_KEY_CHARS_MAX} characters")
        if len(value) > limits.TAG_VALUE_CHARS_MAX:
            raise invalid_parameter(f"Tag value Reason: it can have at most {limits.TAG_VALUE_CHARS_MAX} characters")
        if key in found:
            raise invalid_parameter("Duplicated keys are not allowed.")
        found[key] = value
    return _counted(found)


def _counted(tags: dict[str, str]) -> dict[str, str]:
    if len(tags) > limits.TAGS_MAX:
        raise TagLimitExceeded(TOO_MANY)
    return tags


def tag_resource(state: State, call: Call, command: t.TagResource, context: ExecutionContext) -> Outcome:
    row = named_resource(state, call, command.resource_arn, context)
    tags = _counted({**row.tags, **checked_tags(command.tags)})
    return TopicTagged(), [] if tags == row.tags else [replace(row, tags=tags)]


def untag_resource(state: State, call: Call, command: t.UntagResource, context: ExecutionContext) -> Outcome:
    """Remove tags from a topic. A key that the topic does not have is not an error."""
    row = named_resource(state, call, command.resource_arn, context)
    tags = {key: value for key, value in row.tags.items() if key not in command.tag_keys}
    return TopicTagged(), [] if tags == row.tags else [replace(row, tags=tags)]


def list_tags_for_resource(
    state: State, call: Call, command: t.ListTagsForResource, context: ExecutionContext
) -> Outcome:
    row = named_resource(state, call, command.resource_arn, context)
    return TopicTagsResult([ListedTag(key, value) for key, value in row.tags.items()]), []
