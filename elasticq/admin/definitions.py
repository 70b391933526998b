"""Writes down the queues of all accounts and regions, without their messages, and makes them from what was written."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from elasticq.admin.calls import NotExecuted, ask, owner_of
from elasticq.admin.source import AdminSource
from elasticq.model.names import INNER, account_of, queue_url, region_of

FORMAT: Final = 1
COMPUTED: Final = frozenset(
    (
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesDelayed",
        "ApproximateNumberOfMessagesNotVisible",
        "CreatedTimestamp",
        "LastModifiedTimestamp",
        "QueueArn",
    )
)
"""Attributes that nobody can set."""
LATER: Final = ("RedrivePolicy", "RedriveAllowPolicy")
"""Attributes that name other queues, and are set when all are there."""

Text = Annotated[str, Meta(max_length=65_536)]


class QueueDefinition(Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(max_length=80)]
    account: Annotated[str, Meta(max_length=12)] = ""
    region: Annotated[str, Meta(max_length=32)] = ""
    attributes: dict[str, Text] = {}
    tags: dict[str, Text] = {}


class Definitions(Struct, forbid_unknown_fields=True):
    """``elasticq``: the format, so that a reader knows what it has."""

    elasticq: int
    queues: list[QueueDefinition]


async def export(source: AdminSource) -> bytes:
    """Return the definitions as JSON. Raises NotExecuted."""
    queues = []
    for figures in source.queues():
        if region_of(figures.account, "") == INNER:
            continue  # it is its subscription's
        url, owner = queue_url(source.endpoint, figures.account, figures.name), figures.account
        attributes = await ask(source, "GetQueueAttributes", {"QueueUrl": url, "AttributeNames": ["All"]}, owner)
        tags = await ask(source, "ListQueueTags", {"QueueUrl": url}, owner)
        kept = {name: value for name, value in attributes.get("Attributes", {}).items() if name not in COMPUTED}
        region = region_of(owner, source.region)
        queues.append(QueueDefinition(figures.name, account_of(owner), region, kept, tags.get("Tags", {})))
    queues.sort(key=lambda queue: (queue.name, queue.account, queue.region))
    return msgspec.json.format(msgspec.json.encode(Definitions(FORMAT, queues)), indent=2)


async def load(source: AdminSource, body: bytes) -> dict[str, list[str]]:
    """Make the queues that are missing, and set the attributes and tags of those that exist.

    Returns their names under ``made`` and ``changed``. Raises NotExecuted, with what was done before left done.
    """
    try:
        definitions = msgspec.json.decode(body, type=Definitions)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotExecuted(400, "InvalidParameterValue", f"These are no definitions: {error}") from error
    if definitions.elasticq != FORMAT:
        raise NotExecuted(400, "InvalidParameterValue", f"This version reads definitions of format {FORMAT}.")
    told: dict[str, list[str]] = {"made": [], "changed": []}
    known = {(figures.account, figures.name) for figures in source.queues()}
    for queue in definitions.queues:
        owner = owner_of(source, queue.account, queue.region)
        settable = {name: value for name, value in queue.attributes.items() if name not in LATER}
        if (owner, queue.name) in known:
            settable.pop("FifoQueue", None)
            await _change(source, queue, settable, owner)
            told["changed"].append(queue.name)
        else:
            made = {"QueueName": queue.name, "Attributes": settable, "tags": queue.tags}
            await ask(source, "CreateQueue", made, owner)
            told["made"].append(queue.name)
    for queue in definitions.queues:
        named = {name: value for name, value in queue.attributes.items() if name in LATER}
        if named:
            await _change(source, queue, named, owner_of(source, queue.account, queue.region), with_tags=False)
    return told


async def _change(
    source: AdminSource, queue: QueueDefinition, attributes: dict[str, str], owner: str, *, with_tags: bool = True
) -> None:
    url = queue_url(source.endpoint, owner, queue.name)
    if attributes:
        await ask(source, "SetQueueAttributes", {"QueueUrl": url, "Attributes": attributes}, owner)
    if with_tags and queue.tags:
        await ask(source, "TagQueue", {"QueueUrl": url, "Tags": queue.tags}, owner)
