"""The one table of SQS actions; both protocols and whatever else lists actions derive from it.

A new action is a row in ``_ROWS``. Its members are read off the command class
(``msgspec`` names them for JSON 1.0); the only facts that no class can tell
are the singular names that the Query protocol gives to list members, and they
stand here as well. Source: the service model of botocore (names), the Query
API pages of SQS (singular names).
"""

from enum import Enum
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec
from msgspec import Struct, structs

from elasticq.model import commands, extensions
from elasticq.model.commands import Command
from elasticq.model.errors import RequestTooLarge
from elasticq.model.limits import REQUEST_BYTES_MAX, SMALL_REQUEST_BYTES_MAX

_EXTENSION: Final = "Elasticq"
"""Members that AWS does not have begin so; the Query protocol does not read them."""


class Kind(Enum):
    """How a member that is a list or map is written in a form."""

    NAMES = "names"  # Name.N=value
    PAIRS = "pairs"  # Name.N.<key>=, Name.N.<value>=
    ATTRIBUTES = "attributes"  # Name.N.Name=, Name.N.Value.{DataType,StringValue,BinaryValue}=
    ENTRIES = "entries"  # Name.N.<member of the entry>=


class Member(Struct, frozen=True):
    """A list or map of a command or batch entry; ``name`` is that of JSON 1.0."""

    name: str
    kind: Kind
    key_name: str = "Name"
    value_name: str = "Value"
    entry: "Shape | None" = None


class Shape(Struct, frozen=True):
    """The members of a class: names of parameters as in JSON 1.0, and for lists their first part -> member."""

    texts: set[str]
    integers: set[str]
    lists: dict[str, Member]


class Operation(Struct, frozen=True):
    """One action.

    hot: taken by the connection's hot path
    read_only: changes nothing, not even a message's visibility
    root_only: not valid on a queue's URL (Query answers InvalidAction there)
    entry_name: prefix of a batch's parameters; the answers derive from it too
    body_bytes_max: what it can need; the others of a request's 8 MiB are for messages
    """

    name: str
    command: type[Command]
    shape: Shape
    decoder: msgspec.json.Decoder[Command]
    hot: bool
    read_only: bool
    root_only: bool
    entry_name: str | None
    body_bytes_max: int = SMALL_REQUEST_BYTES_MAX

    def too_large(self) -> RequestTooLarge:
        """For a body of more than ``body_bytes_max``."""
        return RequestTooLarge(f"The request is longer than {self.body_bytes_max} bytes.")


# JSON member -> (Query name, key, value); Entries is named after its action.
_QUERY_NAMES: Final = {
    "Attributes": ("Attribute", "Name", "Value"),
    "tags": ("Tag", "Key", "Value"),  # of CreateQueue
    "Tags": ("Tag", "Key", "Value"),
    "TagKeys": ("TagKey", "", ""),
    "AWSAccountIds": ("AWSAccountId", "", ""),
    "Actions": ("ActionName", "", ""),
    "AttributeNames": ("AttributeName", "", ""),
    "MessageAttributeNames": ("MessageAttributeName", "", ""),
    "MessageSystemAttributeNames": ("MessageSystemAttributeName", "", ""),
    "MessageAttributes": ("MessageAttribute", "Name", "Value"),
    "MessageSystemAttributes": ("MessageSystemAttribute", "Name", "Value"),
}


def bare(annotation: Any) -> Any:
    """Without None and bounds."""
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (arm for arm in get_args(annotation) if arm is not type(None))
    return annotation.__origin__ if get_origin(annotation) is Annotated else annotation


def _list_member(field: structs.FieldInfo, annotation: object, action: str) -> tuple[str, Member]:
    arguments = get_args(annotation)
    if field.encode_name == "Entries":
        entry = _shape(arguments[0], action)
        return f"{action}RequestEntry", Member(field.encode_name, Kind.ENTRIES, entry=entry)
    name, key_name, value_name = _QUERY_NAMES[field.encode_name]
    if get_origin(annotation) is list:
        return name, Member(field.encode_name, Kind.NAMES)
    kind = Kind.PAIRS if bare(arguments[1]) is str else Kind.ATTRIBUTES
    return name, Member(field.encode_name, kind, key_name, value_name)


def _shape(build: type[Struct], action: str) -> Shape:
    shape = Shape(set(), set(), {})
    for field in structs.fields(build):
        if field.encode_name.startswith(_EXTENSION):
            continue
        annotation = bare(field.type)
        if annotation is str:
            shape.texts.add(field.encode_name)
        elif annotation is int:
            shape.integers.add(field.encode_name)
        else:
            name, member = _list_member(field, annotation, action)
            shape.lists[name] = member
            if field.encode_name == "Tags":
                shape.lists["Tags"] = member  # TagQueue as the Java SDK 1 writes it; AWS takes both
    return shape


_WITH_MESSAGES: Final = (commands.SendMessage, commands.SendMessageBatch)


def _operation(
    command: type[Command], hot: bool = False, read_only: bool = False, root_only: bool = False
) -> Operation:
    name = command.__name__
    shape = _shape(command, name)
    entry_name = next((key for key, member in shape.lists.items() if member.kind is Kind.ENTRIES), None)
    bytes_max = REQUEST_BYTES_MAX if command in _WITH_MESSAGES else SMALL_REQUEST_BYTES_MAX
    decoder = msgspec.json.Decoder(command)
    return Operation(name, command, shape, decoder, hot, read_only, root_only, entry_name, bytes_max)


_ROWS: Final = (
    _operation(commands.CreateQueue, root_only=True),
    _operation(commands.GetQueueUrl, read_only=True),
    _operation(commands.ListQueues, read_only=True, root_only=True),
    _operation(commands.DeleteQueue),
    _operation(commands.GetQueueAttributes, read_only=True),
    _operation(commands.SetQueueAttributes),
    _operation(commands.SendMessage, hot=True),
    _operation(commands.SendMessageBatch, hot=True),
    _operation(commands.ReceiveMessage, hot=True),
    _operation(commands.DeleteMessage, hot=True),
    _operation(commands.DeleteMessageBatch, hot=True),
    _operation(commands.ChangeMessageVisibility, hot=True),
    _operation(commands.ChangeMessageVisibilityBatch, hot=True),
    _operation(commands.PurgeQueue),
    _operation(commands.TagQueue),
    _operation(commands.UntagQueue),
    _operation(commands.ListQueueTags, read_only=True),
    _operation(commands.AddPermission),
    _operation(commands.RemovePermission),
    _operation(commands.ListDeadLetterSourceQueues, read_only=True),
    _operation(commands.StartMessageMoveTask),
    _operation(commands.CancelMessageMoveTask),
    _operation(commands.ListMessageMoveTasks, read_only=True),
)

PEEK: Final = Operation(
    "Peek",
    extensions.Peek,
    Shape(set(), set(), {}),
    msgspec.json.Decoder(extensions.Peek),
    hot=False,
    read_only=True,
    root_only=False,
    entry_name=None,
)
"""Ours, of JSON only, and on a path of its own: no row of the table."""

OPERATIONS: Final[dict[str, Operation]] = {row.name: row for row in _ROWS}

BY_TARGET: Final[dict[bytes, Operation]] = {f"AmazonSQS.{row.name}".encode(): row for row in _ROWS}
"""By the value of the X-Amz-Target header."""
