"""CreateTopic, DeleteTopic, ListTopics, the attributes of topics, and their data protection policies."""

from itertools import islice
from typing import Final

from msgspec.structs import replace

from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored import topic_attributes
from elasticq.engine.stored.topic_index import Topic
from elasticq.engine.topics.arns import arn_of, named_resource, named_topic, topic_key
from elasticq.engine.topics.paging import read_token, token_of
from elasticq.engine.topics.removal import removed
from elasticq.engine.topics.tags import checked_tags
from elasticq.model import documents, limits
from elasticq.model import topic_commands as t
from elasticq.model.commands import Call
from elasticq.model.errors import TopicLimitExceeded, invalid_parameter
from elasticq.model.names import is_topic_name, topic_arn
from elasticq.model.topic_results import (
    DataProtectionPolicyResult,
    ListedTopic,
    NothingThereResult,
    TopicArnResult,
    TopicAttributesResult,
    TopicDone,
    TopicsResult,
)

ATTRIBUTES_DIFFER: Final = "Attributes Reason: Topic already exists with different attributes"
TAGS_DIFFER: Final = "Tags Reason: Topic already exists with different tags"


def create_topic(state: State, call: Call, command: t.CreateTopic, context: ExecutionContext) -> Outcome:
    """Create a topic. If it exists, return its ARN; raise InvalidParameter if the given attributes or tags differ."""
    name = command.name or ""
    is_fifo = command.attributes.get(topic_attributes.FIFO, "false").lower() == "true"
    if not is_topic_name(name, is_fifo=is_fifo):
        raise invalid_parameter("Topic Name")
    attributes = topic_attributes.at_creation(command.attributes, is_fifo=is_fifo)
    tags = checked_tags(command.tags)
    policy = _checked_policy(command.data_protection_policy or "")
    arn = topic_arn(context.region, call.account, name)
    existing = state.topics.names.get((call.account, name))
    if existing is not None:
        _check_same(existing, command.attributes, tags, is_fifo=is_fifo)
        return TopicArnResult(arn), []
    if len(state.topics.by_number) >= limits.TOPICS_MAX:
        raise TopicLimitExceeded("Exceeded maximum number of topics")
    number = context.next_number()
    return TopicArnResult(arn), [m.TopicSet(number, call.account, name, attributes, tags, context.now_ms, policy)]


def _check_same(topic: Topic, given: dict[str, str], tags: dict[str, str], *, is_fifo: bool) -> None:
    row = topic.row
    assert row is not None, "a topic found by its name or ARN has a row"
    for name, value in given.items():
        if name == topic_attributes.FIFO:
            continue  # equal names imply the same type
        if topic_attributes.checked(name, value, is_fifo=is_fifo) != row.attributes.get(name, ""):
            raise invalid_parameter(ATTRIBUTES_DIFFER)
    if not tags.items() <= row.tags.items():
        raise invalid_parameter(TAGS_DIFFER)


def delete_topic(state: State, call: Call, command: t.DeleteTopic, context: ExecutionContext) -> Outcome:
    """Delete a topic and its subscriptions. An unknown topic is a success.

    Background work (deliveries.py) deletes subscriptions beyond the bound of one entry.
    """
    topic = state.topics.names.get(topic_key(command.topic_arn, call, context))
    if topic is None or topic.row is None:
        return TopicDone(), []
    found: list[m.Mutation] = [m.TopicDeleted(topic.row.number)]
    for subscription in islice(topic.all(), limits.MUTATION_ROWS_MAX):
        found += removed(state, subscription, context.now_ms)
    return TopicDone(), found


def list_topics(state: State, call: Call, command: t.ListTopics, context: ExecutionContext) -> Outcome:
    """Return a page of up to 100 topics of the caller, ordered by name."""
    size = limits.LISTED_TOPICS_MAX
    ahead = list(islice(state.topics.names.of(call.account, "", read_token(command.next_token)), size + 1))
    topics = [ListedTopic(topic_arn(context.region, call.account, name)) for name in ahead[:size]]
    return TopicsResult(topics, token_of(ahead[size - 1]) if len(ahead) > size else None), []


def get_topic_attributes(state: State, call: Call, command: t.GetTopicAttributes, context: ExecutionContext) -> Outcome:
    topic = named_topic(state, call, command.topic_arn, context)
    return TopicAttributesResult(topic_attributes.shown(topic, arn_of(topic, context))), []


def set_topic_attributes(state: State, call: Call, command: t.SetTopicAttributes, context: ExecutionContext) -> Outcome:
    topic = named_topic(state, call, command.topic_arn, context)
    name, row = command.attribute_name or "", topic.row
    assert row is not None, "a topic found by its name or ARN has a row"
    value = topic_attributes.checked(name, command.attribute_value or "", is_fifo=topic.is_fifo)
    if name == topic_attributes.MESSAGE_BYTES and value:
        _check_subscribers(topic, int(value))
    attributes = {key: each for key, each in {**row.attributes, name: value}.items() if each}
    return TopicDone(), [replace(row, attributes=attributes)] if attributes != row.attributes else []


def _check_subscribers(topic: Topic, message_bytes: int) -> None:
    """Raise InvalidParameter if the topic has too many subscriptions, or wrong protocols, for such long messages."""
    if message_bytes <= limits.TOPIC_MESSAGE_BYTES_DEFAULT:
        return
    protocols = {each.row.protocol for each in topic.subscriptions.values()}
    if len(topic.subscriptions) > limits.LARGE_SUBSCRIPTIONS_MAX or protocols - limits.LARGE_PROTOCOLS:
        raise invalid_parameter(topic_attributes.MESSAGE_BYTES)


# --- data protection ---------------------------------------------------------------------


def _checked_policy(text: str) -> str:
    if text:
        try:
            document = documents.read(text)
        except documents.Unreadable:
            document = None
        if not isinstance(document, dict):
            raise invalid_parameter("DataProtectionPolicy Reason: it is not a JSON object")
    return text


def get_data_protection_policy(
    state: State, call: Call, command: t.GetDataProtectionPolicy, context: ExecutionContext
) -> Outcome:
    row = named_resource(state, call, command.resource_arn, context)
    return DataProtectionPolicyResult(row.data_protection_policy), []


def put_data_protection_policy(
    state: State, call: Call, command: t.PutDataProtectionPolicy, context: ExecutionContext
) -> Outcome:
    row = named_resource(state, call, command.resource_arn, context)
    policy = _checked_policy(command.data_protection_policy or "")
    return TopicDone(), [replace(row, data_protection_policy=policy)] if policy != row.data_protection_policy else []


def nothing_there(state: State, call: Call, command: t.NothingThere, context: ExecutionContext) -> Outcome:
    """Return an empty list: the server has no phone numbers and no platform applications."""
    return NothingThereResult(), []
