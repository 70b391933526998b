"""A reader of AWS Query requests: forms whose parameter names contain the places in lists and maps.

``Attribute.2.Name`` is the name of the second attribute. The numbers only define
the order of a list. Parameters are grouped in a dict, so the order of arrival,
gaps and huge numbers cost nothing. A list of one item may omit the number
(``AttributeName=All``), as old clients do. If an API wraps its lists, ``member``
or ``entry`` comes before the number, and an empty list is its name with an empty
value. ``wire/xml.py`` writes the answers, and ``wire/topic_xml.py`` those of
topics.
"""

from base64 import b64decode
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NoReturn

import msgspec

from elasticq.model.commands import Command, ReceiveMessage
from elasticq.model.errors import (
    InvalidAction,
    InvalidParameterValue,
    MissingAction,
    MissingParameter,
    SqsError,
    quoted,
)
from elasticq.model.limits import REMEMBERED_CHARS_MAX
from elasticq.model.names import ACCOUNT
from elasticq.model.results import Result
from elasticq.wire import form, topic_xml, xml
from elasticq.wire.bounds import beyond_bounds, topic_beyond_bounds
from elasticq.wire.operations import Kind, Member, Operation, Service, Shape
from elasticq.wire.services import Services, pick

_convert: Final = msgspec.convert
_DIGITS_MAX: Final = 10  # of a list's number
_INTEGER_DIGITS_MAX: Final = 19  # AWS's integers have 32 bits, own ones 64

_NOT_MEMBERS: Final = frozenset(["Action", "Version"])  # in every request

Group = dict[str, dict[str, str]]
"""The parameters of one list: number as sent -> rest of the name -> value."""


def decode(service: Service, body: bytes, path: str = "/") -> tuple[Operation, Command]:
    """Return the operation of ``service`` and the command in a form body or query string.

    path: the path of the request. A queue's path is the QueueUrl if the form has none.

    Raise MissingAction; InvalidAction if the action is unknown or not valid on a queue's path; InvalidParameterValue or
    MissingParameter if a parameter is not an integer, not base64, or incomplete; the errors of ``bounds.py``;
    RequestTooLarge for more bytes than the action can need.
    """
    return decode_parameters(service, form.parse(body), len(body), path)


def decode_any(services: Services, body: bytes, path: str, credential: bytes) -> tuple[Operation, Command]:
    """Decode a form as ``decode`` does, after choosing its service.

    credential: the text with the scope of the signature; empty if there is none.
    """
    parameters = form.parse(body)
    return decode_parameters(pick(services, credential, parameters), parameters, len(body), path)


def decode_parameters(
    service: Service, parameters: dict[str, str], body_bytes: int, path: str = "/"
) -> tuple[Operation, Command]:
    """Decode the parameters of a form as ``decode`` does."""
    operation = service.operations.get(parameters.get("Action", ""))
    if operation is None:
        raise _unknown_action(service, parameters)
    if body_bytes > operation.body_bytes_max:
        raise operation.too_large()
    if path != "/" and not operation.is_wrapped and is_queue_path(path):
        if operation.root_only:
            raise _invalid_action(operation.name)
        parameters.setdefault("QueueUrl", path)
    members = _read(operation.shape, parameters, "")
    try:
        command = _convert(members, operation.command)
    except msgspec.ValidationError as error:
        if operation.is_wrapped:
            raise topic_beyond_bounds(error) from None
        raise beyond_bounds(error, members) or InvalidParameterValue(str(error)) from None
    if type(command) is ReceiveMessage and command.attribute_names:
        command.message_system_attribute_names = None  # seen on AWS: the old name wins here, unlike in JSON
    return operation, command


def encode(operation: Operation, command: Command, result: Result, request_id: str) -> bytes:
    """Return the body of the answer."""
    if operation.is_wrapped:
        return topic_xml.encode(operation, result, request_id)
    return xml.encode(operation, command, result, request_id)


def encode_error(service: Service, error: SqsError, request_id: str) -> bytes:
    if service.is_wrapped:
        return topic_xml.encode_error(service, error, request_id)
    return xml.encode_error(service, error, request_id)


def is_queue_path(path: str) -> bool:
    """Return whether a path names a queue: .../<account>/<name>, or ElasticMQ's old /queue/<name>."""
    return _is_queue_path.__wrapped__(path) if len(path) > REMEMBERED_CHARS_MAX else _is_queue_path(path)


@lru_cache(maxsize=1_024)
def _is_queue_path(path: str) -> bool:
    parts = path.strip("/").split("/")
    if parts[:-1] == ["queue"]:
        return True
    return len(parts) > 1 and ACCOUNT.match(parts[-2]) is not None


def _unknown_action(service: Service, parameters: dict[str, str]) -> SqsError:
    action = parameters.get("Action")
    if action is None:
        return MissingAction("The request must contain the parameter Action.")
    if action in service.not_here:
        return InvalidAction(f"Operation ({action}) is not supported in this region")
    if service.is_wrapped:
        return InvalidAction(f"Could not find operation {quoted(action)} for version {service.version}")
    return _invalid_action(action)


def _invalid_action(action: str) -> InvalidAction:
    return InvalidAction(f"The action {quoted(action)} is not valid for this endpoint.")


# --- members ---


def _read(shape: Shape, parameters: dict[str, str], where: str) -> dict[str, Any]:
    """Return the members of ``shape`` by their names in JSON 1.0. ``where``: the prefix of names in errors."""
    texts, integers = shape.texts, shape.integers
    values: dict[str, Any] = {}
    groups: dict[str, Group] = {}
    for name, value in parameters.items():
        if name in texts:
            values[name] = value
        elif name in integers:
            values[name] = _integer(where + name, value)
        elif name not in _NOT_MEMBERS:
            _collect(shape, groups, name, value)
    for prefix, group in groups.items():
        member = shape.lists[prefix]
        values[member.name] = _READERS[member.kind](member, group, where + prefix)
    return values


def _collect(shape: Shape, groups: dict[str, Group], name: str, value: str) -> None:
    """Add a parameter to the group of its list. Skip it if it belongs to no list."""
    prefix, _, rest = name.partition(".")
    member = shape.lists.get(prefix)
    if member is None:
        return
    if member.wrapper:
        wrapper, _, rest = rest.partition(".")
        if wrapper != member.wrapper or not rest[:1].isdigit():
            if not wrapper:
                groups.setdefault(prefix, {})  # Tags=
            return
    number, _, tail = rest.partition(".")
    if not number[:1].isdigit():
        number, tail = "1", rest
    group = groups.setdefault(prefix, {})
    item = group.get(number)
    if item is None:
        item = group[_checked_number(number, name)] = {}
    item[tail] = value


def _checked_number(number: str, name: str) -> str:
    if len(number) > _DIGITS_MAX or not _is_decimal(number):
        raise InvalidParameterValue(f"The name of the parameter {quoted(name)} is invalid.")
    return number


def _in_order(group: Group) -> list[tuple[str, dict[str, str]]]:
    return sorted(group.items(), key=lambda item: int(item[0]))


def _is_decimal(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _integer(name: str, value: str) -> int:
    digits = value[1:] if value.startswith("-") else value
    if len(digits) > _INTEGER_DIGITS_MAX or not _is_decimal(digits):
        _refuse(name, value, "Must be an integer.")
    return int(value)


def _refuse(name: str, value: str, reason: str) -> NoReturn:
    raise InvalidParameterValue(f"Value {quoted(value)} for parameter {name} is invalid. Reason: {reason}")


# --- lists ---


def _read_names(member: Member, group: Group, where: str) -> list[str]:
    return [_required(item, "", f"{where}.{number}") for number, item in _in_order(group)]


def _read_numbers(member: Member, group: Group, where: str) -> list[int]:
    return [
        _integer(f"{where}.{number}", _required(item, "", f"{where}.{number}")) for number, item in _in_order(group)
    ]


def _read_pairs(member: Member, group: Group, where: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for number, item in _in_order(group):
        name = _required(item, member.key_name, f"{where}.{number}.{member.key_name}")
        pairs[name] = _required(item, member.value_name, f"{where}.{number}.{member.value_name}")
    return pairs


def _read_attributes(member: Member, group: Group, where: str) -> dict[str, dict[str, str | bytes]]:
    attributes = {}
    for number, item in _in_order(group):
        place = f"{where}.{number}"
        attributes[_required(item, "Name", f"{place}.Name")] = _attribute(item, place)
    return attributes


def _attribute(item: dict[str, str], place: str) -> dict[str, str | bytes]:
    value: dict[str, str | bytes] = {
        name: item[f"Value.{name}"] for name in ("DataType", "StringValue") if f"Value.{name}" in item
    }
    binary = item.get("Value.BinaryValue")
    if binary is not None:
        value["BinaryValue"] = _binary(f"{place}.Value.BinaryValue", binary)
    return value


def _binary(name: str, value: str) -> bytes:
    try:
        return b64decode(value, validate=True)
    except ValueError:
        _refuse(name, value, "Must be base64.")


def _read_entries(member: Member, group: Group, where: str) -> list[dict[str, Any]]:
    assert member.entry is not None
    return [_read(member.entry, item, f"{where}.{number}.") for number, item in _in_order(group)]


def _required(item: dict[str, str], name: str, place: str) -> str:
    value = item.get(name)
    if value is None:
        raise MissingParameter(f"The request must contain the parameter {place}.")
    return value


_READERS: Final[dict[Kind, Callable[[Member, Group, str], Any]]] = {
    Kind.NAMES: _read_names,
    Kind.NUMBERS: _read_numbers,
    Kind.PAIRS: _read_pairs,
    Kind.ATTRIBUTES: _read_attributes,
    Kind.ENTRIES: _read_entries,
}
