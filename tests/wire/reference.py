"""Second implementations of what the wire room does, slow and plain, for its tests to compare with."""

import hashlib
import struct
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin
from urllib.parse import quote

import msgspec
from hypothesis import strategies as st

from elasticq.model import commands
from elasticq.model.commands import MessageAttributes, MessageAttributeValue

SINGULAR = {
    "AttributeNames": "AttributeName",
    "MessageAttributeNames": "MessageAttributeName",
    "MessageSystemAttributeNames": "MessageSystemAttributeName",
    "MessageAttributes": "MessageAttribute",
    "MessageSystemAttributes": "MessageSystemAttribute",
    "Attributes": "Attribute",
    "tags": "Tag",
    "Tags": "Tag",
    "TagKeys": "TagKey",
    "AWSAccountIds": "AWSAccountId",
    "Actions": "ActionName",
    "MessageIds": "MessageId",
    "GroupNames": "GroupName",
    "QueueNames": "QueueName",
    "Released": "Released",
}


def md5_of(text: str) -> str:
    return hashlib.md5(text.encode("utf-8")).hexdigest()


def md5_of_attributes(attributes: MessageAttributes) -> str:
    digest = hashlib.md5()
    for name, attribute in sorted(attributes.items()):
        is_binary = attribute.data_type.split(".")[0] == "Binary"
        value = attribute.binary_value if is_binary else (attribute.string_value or "").encode()
        for part in (name.encode(), attribute.data_type.encode()):
            digest.update(struct.pack(f"!I{len(part)}s", len(part), part))
        digest.update(struct.pack(f"!BI{len(value or b'')}s", 2 if is_binary else 1, len(value or b""), value or b""))
    return digest.hexdigest()


def members_of(command: msgspec.Struct) -> dict[str, Any]:
    """The JSON 1.0 members of a command, without those that are absent."""
    members: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(command))
    return {name: value for name, value in members.items() if value is not None}


def parameters_of(command: msgspec.Struct) -> list[tuple[str, str]]:
    """The Query parameters of a command in the order of its members."""
    action = type(command).__name__
    return [("Action", action), ("Version", "2012-11-05"), *parameters_of_members(members_of(command), action)]


def parameters_of_members(members: dict[str, Any], action: str) -> list[tuple[str, str]]:
    """Of the members of a JSON 1.0 request."""
    return _parameters(members, "", action)


def form_of(parameters: list[tuple[str, str]]) -> bytes:
    """As the SDKs of the Query protocol write it: all but unreserved characters as %XX."""
    return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in parameters).encode()


def _parameters(members: dict[str, Any], prefix: str, action: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, value in members.items():
        if isinstance(value, (str, int)):
            found.append((prefix + name, str(value)))
        elif name == "Entries":
            for number, entry in enumerate(value, 1):
                present = {key: member for key, member in entry.items() if member is not None}
                found += _parameters(present, f"{action}RequestEntry.{number}.", action)
        else:
            found += _list(prefix + SINGULAR[name], value, is_tag=name in ("tags", "Tags"))
    return found


def _list(name: str, value: Any, is_tag: bool) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for number, item in enumerate(value, 1):
        if isinstance(value, list):
            found.append((f"{name}.{number}", str(item)))
            continue
        found.append((f"{name}.{number}.{'Key' if is_tag else 'Name'}", item))
        if isinstance(value[item], str):
            found.append((f"{name}.{number}.Value", value[item]))
        else:
            found += [(f"{name}.{number}.Value.{key}", member) for key, member in value[item].items()]
    return found


# --- commands at random ---

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
integers = st.integers(-(2**31), 2**31 - 1)
pairs = st.dictionaries(texts, texts, max_size=4)


def bare(annotation: Any) -> Any:
    """A member's type without its bound."""
    return annotation.__origin__ if get_origin(annotation) is Annotated else annotation


def _attribute_values(build: type[MessageAttributeValue]) -> st.SearchStrategy[MessageAttributeValue]:
    return st.builds(
        build, data_type=texts, string_value=st.none() | texts, binary_value=st.none() | st.binary(max_size=30)
    )


attribute_values = _attribute_values(MessageAttributeValue)


def _strategy(field: msgspec.structs.FieldInfo) -> st.SearchStrategy[Any]:
    """By its type; all that is drawn lies inside the bounds."""
    is_optional = get_origin(field.type) in (Union, UnionType)
    kind = bare(get_args(field.type)[0] if is_optional else field.type)
    if "AttributeValue" in str(kind):
        values = _attribute_values(get_args(kind)[1])
        return st.none() | st.dictionaries(texts, values, min_size=1, max_size=3)
    if field.name == "entries":
        return st.lists(objects(get_args(kind)[0]), max_size=4)
    by_kind = {str: texts, int: integers, list: st.lists(texts, min_size=int(is_optional), max_size=4), dict: pairs}
    drawn = by_kind[get_origin(kind) or kind]
    return st.none() | drawn if is_optional else drawn


def objects(build: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Any command (or entry) of the class, its members drawn by their types; an entry has an Id at least.

    Without extensions: forms do not have them.
    """
    known = [field for field in msgspec.structs.fields(build) if not field.name.startswith("elasticq_")]
    fields = {field.name: _strategy(field) for field in known}
    if "id" in fields:
        fields["id"] = texts  # a form cannot tell an entry without any member
    return st.builds(build, **fields)


IN_NO_PROTOCOL = (commands.Command, commands.FencedCommand, commands.DeclareQueue)
any_command = (
    st.sampled_from(
        [build for build in vars(commands).values() if isinstance(build, type) and issubclass(build, commands.Command)]
    )
    .filter(lambda build: build not in IN_NO_PROTOCOL)
    .flatmap(objects)
)
