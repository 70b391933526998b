"""The tables of the APIs: how to read the requests and write the answers of each action.

A ``Service`` is one API and has an ``Operation`` for each action. A new action of SQS needs only a row in
``model/actions.py``. The members of requests and answers follow from the classes of its command and result
(``msgspec`` names them for JSON 1.0). This module adds what the classes do not contain. These are the singular names
of items of lists and maps in the Query protocol, and names in answers that differ from the result's fields.

SNS is a separate ``Service`` with its own table. It has only the Query protocol, and its lists are wrapped:
``.member.N`` in a list, ``.entry.N`` in a map. Sources: the service model of botocore (names), the Query API pages of
SQS (singular names).
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Struct, structs

from elasticq.model import actions, classes, commands, extensions, results
from elasticq.model.actions import Action
from elasticq.model.commands import Command
from elasticq.model.errors import RequestTooLarge
from elasticq.model.limits import REQUEST_BYTES_MAX, SMALL_REQUEST_BYTES_MAX
from elasticq.model.results import Result

_EXTENSION: Final = "Elasticq"
"""The prefix of members that AWS does not have. The Query protocol skips them, except for those of a fence: a call
with a fence or a partition must not be executed without it."""
_FENCE: Final = tuple(field.encode_name for field in structs.fields(commands.FencedCommand))


class Kind(Enum):
    """The format of a list or map: numbered parameters in a form, one element after the other in XML."""

    NAMES = "names"  # Name.N=value; <Name>value</Name>
    NUMBERS = "numbers"  # the same, with integers
    PAIRS = "pairs"  # Name.N.<key>=, Name.N.<value>=; <Name><key>...</key><value>...</value></Name>
    ATTRIBUTES = "attributes"  # Name.N.Name=, Name.N.Value.{DataType,StringValue,BinaryValue}=
    ENTRIES = "entries"  # Name.N.<member of the entry>=; <Name> with the members of the entry


class Member(Struct, frozen=True):
    """A list or map of a command or batch entry. ``name`` is that of JSON 1.0.

    wrapper: the word before the number in a form, if the lists of the API are wrapped; else empty.
    """

    name: str
    kind: Kind
    key_name: str = "Name"
    value_name: str = "Value"
    entry: "Shape | None" = None
    wrapper: str = ""


class Shape(Struct, frozen=True):
    """The members of a class, by their names in JSON 1.0. The keys of ``lists`` are the prefixes of names in forms."""

    texts: set[str]
    integers: set[str]
    lists: dict[str, Member]


class ResultMember(Struct, frozen=True):
    """A field of a result as a member of an answer.

    name: its name in JSON. item_name, key_name, value_name: the names in XML of the items of a list or map.
    kind: None for a text or an integer.
    is_required: whether it is written even if it is empty, because clients always read it.
    """

    field: str
    name: str
    kind: Kind | None
    is_required: bool
    item_name: str = ""
    key_name: str = "Name"
    value_name: str = "Value"


class Operation(Struct, frozen=True):
    """One action of a service.

    read_only: whether it changes nothing, not even the visibility of a message.
    root_only: whether it is not valid on a queue's URL (Query answers InvalidAction there).
    entry_name: the first part of the names of a batch's parameters in a form; None if the action is not a batch.
    result: the members of its answer; empty if json.py and xml.py have hand-written functions.
    namespace: the namespace of its answers in XML, which is that of its service.
    is_wrapped: that of its service.
    body_bytes_max: the bound of a request. Only requests with messages need more than SMALL_REQUEST_BYTES_MAX.
    """

    name: str
    command: type[Command]
    shape: Shape
    decoder: msgspec.json.Decoder[Command]
    read_only: bool
    root_only: bool
    entry_name: str | None
    result: tuple[ResultMember, ...]
    namespace: str
    is_wrapped: bool
    body_bytes_max: int

    def too_large(self) -> RequestTooLarge:
        """Return the error for a body of more than ``body_bytes_max``."""
        return RequestTooLarge(f"The request is longer than {self.body_bytes_max} bytes.")


class Service(Struct, frozen=True):
    """One API: its actions, how to recognise its requests, and the constant parts of its answers.

    namespace: the namespace of its XML, which contains the version of the API.
    error_prefix: the prefix of ``__type`` in errors of JSON 1.0.
    signing_name: the service in the scope of a signature. scope_end: the end of such a scope.
    version: the Version that its forms have.
    is_wrapped: whether lists and maps of forms and of XML have an element around them. The XML is then indented.
    not_here: actions of the API that this server does not have.
    operations: by the Action of a form. by_target: by the value of the header X-Amz-Target.
    """

    namespace: str
    error_prefix: str
    signing_name: str
    operations: dict[str, Operation]
    by_target: dict[bytes, Operation]
    version: str = ""
    is_wrapped: bool = False
    not_here: frozenset[str] = frozenset()
    scope_end: bytes = b""


BY_HAND: Final = frozenset(
    (
        "BatchResult",
        "EmptyResult",
        "PeekResult",
        "ReceiveMessageResult",
        "SendMessageBatchResult",
        "SendMessageResult",
    )
)
"""Results with hand-written functions in json.py and xml.py: those of the hot path for speed, and that of Peek for its
special format. Generic code writes all other results by their fields."""

# JSON member -> (Query name, key, value). The name of Entries contains the name of its action.
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
    "GroupNames": ("GroupName", "", ""),
    "QueueNames": ("QueueName", "", ""),
    "Released": ("Released", "", ""),
    "MessageIds": ("MessageId", "", ""),
    "Changed": ("Changed", "", ""),
    "NotFound": ("NotFound", "", ""),
    "QueueUrls": ("QueueUrl", "", ""),
    "queueUrls": ("QueueUrl", "", ""),
}

_NAMED_AS_THEY_ARE: Final = ("Assigned", "Revoking", "Groups")
"""Lists of answers whose items have the name of the list in XML, because one answer may have several lists."""

# Result and field -> JSON member, if that is not the field's name in Pascal case.
_RESULT_NAMES: Final = {
    ("DeadLetterSourcesResult", "queue_urls"): "queueUrls",
    ("MoveTaskCancelledResult", "moved"): "ApproximateNumberOfMessagesMoved",
}


def bare(annotation: Any) -> Any:
    """Return the type in ``annotation``, without an alternative None and without bounds."""
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
        return name, Member(field.encode_name, Kind.NUMBERS if bare(arguments[0]) is int else Kind.NAMES)
    kind = Kind.PAIRS if bare(arguments[1]) is str else Kind.ATTRIBUTES
    return name, Member(field.encode_name, kind, key_name, value_name)


def _wrapped_member(field: structs.FieldInfo, annotation: object) -> Member:
    arguments = get_args(annotation)
    name, item = field.encode_name, bare(arguments[-1])
    if get_origin(annotation) is dict:
        if item is str:
            return Member(name, Kind.PAIRS, "key", "value", wrapper="entry")
        return Member(name, Kind.ATTRIBUTES, wrapper="entry")
    if item is str:
        return Member(name, Kind.NAMES, wrapper="member")
    return Member(name, Kind.ENTRIES, entry=_shape(item, "", is_wrapped=True), wrapper="member")


def _shape(build: type[Struct], action: str, *, is_wrapped: bool = False) -> Shape:
    shape = Shape(set(), set(), {})
    for field in structs.fields(build):
        if field.encode_name.startswith(_EXTENSION) and field.encode_name not in _FENCE:
            continue
        annotation = bare(field.type)
        if annotation is str:
            shape.texts.add(field.encode_name)
        elif annotation is int:
            shape.integers.add(field.encode_name)
        elif is_wrapped:
            shape.lists[field.encode_name] = _wrapped_member(field, annotation)
        else:
            name, member = _list_member(field, annotation, action)
            shape.lists[name] = member
            if field.encode_name == "Tags":
                shape.lists["Tags"] = member  # TagQueue of the Java SDK 1; AWS accepts both names
    return shape


def _result_members(kind: type[Result], action: str) -> tuple[ResultMember, ...]:
    if kind.__name__ in BY_HAND:
        return ()
    return tuple(_result_member(kind, field, action) for field in structs.fields(kind))


def _result_member(kind: type[Result], field: structs.FieldInfo, action: str) -> ResultMember:
    name = _RESULT_NAMES.get((kind.__name__, field.name)) or "".join(map(str.capitalize, field.name.split("_")))
    is_required = field.default is NODEFAULT and field.default_factory is NODEFAULT
    annotation = bare(field.type)
    if get_origin(annotation) is None:
        return ResultMember(field.name, name, None, is_required)
    if get_origin(annotation) is list and bare(get_args(annotation)[0]) is not str:
        item_name = name if name in _NAMED_AS_THEY_ARE else f"{action}ResultEntry"
        return ResultMember(field.name, name, Kind.ENTRIES, is_required, item_name)
    item_name, key_name, value_name = _QUERY_NAMES[name]
    items = Kind.PAIRS if get_origin(annotation) is dict else Kind.NAMES
    return ResultMember(field.name, name, items, is_required, item_name, key_name, value_name)


def _operation(
    action: Action,
    command: type[Command],
    result: type[Result],
    shape: Shape,
    namespace: str,
    *,
    is_wrapped: bool = False,
) -> Operation:
    return Operation(
        name=action.name,
        command=command,
        shape=shape,
        decoder=msgspec.json.Decoder(command),
        read_only=action.is_read_only,
        root_only=action.is_root_only,
        entry_name=next((key for key, member in shape.lists.items() if member.kind is Kind.ENTRIES), None),
        result=() if is_wrapped else _result_members(result, action.name),
        namespace=namespace,
        is_wrapped=is_wrapped,
        body_bytes_max=REQUEST_BYTES_MAX if action.has_messages else SMALL_REQUEST_BYTES_MAX,
    )


def make_service(
    target_prefix: str,
    namespace: str,
    error_prefix: str,
    signing_name: str,
    table: Iterable[Action],
    command_classes: Mapping[str, type[Command]],
    result_classes: Mapping[str, type[Result]],
    version: str = "",
    is_wrapped: bool = False,
    not_here: frozenset[str] = frozenset(),
) -> Service:
    """Return the service with the actions of ``table``. The two mappings have the classes by their names.

    target_prefix: the prefix of X-Amz-Target; empty for a service without JSON 1.0.
    """
    operations = {}
    for row in table:
        command = command_classes[row.command]
        shape = _shape(command, row.name, is_wrapped=is_wrapped)
        result = result_classes[row.result]
        operations[row.name] = _operation(row, command, result, shape, namespace, is_wrapped=is_wrapped)
    by_target = {f"{target_prefix}.{name}".encode(): each for name, each in operations.items() if target_prefix}
    scope_end = f"/{signing_name}/aws4_request".encode()
    return Service(
        namespace, error_prefix, signing_name, operations, by_target, version, is_wrapped, not_here, scope_end
    )


SQS: Final = make_service(
    target_prefix=actions.TARGET_PREFIX,
    namespace="http://queue.amazonaws.com/doc/2012-11-05/",
    error_prefix="com.amazonaws.sqs#",
    signing_name="sqs",
    table=(*actions.ACTIONS, *actions.EXTENSIONS),
    command_classes=classes.COMMANDS,
    result_classes=classes.RESULTS,
    version="2012-11-05",
)

SNS: Final = make_service(
    target_prefix="",
    namespace="http://sns.amazonaws.com/doc/2010-03-31/",
    error_prefix="",
    signing_name="sns",
    table=actions.TOPIC_ACTIONS,
    command_classes=classes.COMMANDS,
    result_classes=classes.RESULTS,
    version="2010-03-31",
    is_wrapped=True,
    not_here=actions.NOT_HERE,
)

STS: Final = make_service(
    target_prefix="",
    namespace="https://sts.amazonaws.com/doc/2011-06-15/",
    error_prefix="",
    signing_name="sts",
    table=actions.IDENTITY_ACTIONS,
    command_classes=classes.COMMANDS,
    result_classes=classes.RESULTS,
    version="2011-06-15",
)
SERVICES: Final = (SQS, SNS, STS)
"""The APIs of the port. The first one is the default, and only it has JSON 1.0, too."""

OPERATIONS: Final = SQS.operations

PEEK: Final = _operation(
    actions.PEEK, extensions.Peek, results.PeekResult, Shape(set(), set(), {}), namespace=SQS.namespace
)
"""An operation of elasticq that is not an action of the service. It has JSON only, and its own path."""

BY_SEQUENCE: Final = {
    row.name: _operation(row, vars(extensions)[row.name], results.EmptyResult, Shape(set(), set(), {}), SQS.namespace)
    for row in actions.BY_SEQUENCE
}
"""Operations of elasticq that name a message by its sequence. Only REST and the JSON of the admin port have them."""
