"""The rules for attributes of published messages, with the error texts of SNS. Source: recordings of AWS."""

import re
from typing import Final

from elasticq.engine.stored import contents
from elasticq.model.commands import MessageAttributes, MessageAttributeValue
from elasticq.model.errors import ParameterValueInvalid, SqsError, TopicValidationError

_NAME_BYTES_MAX: Final = 256
_TYPES: Final = ("String", "Number", "Binary")
_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]")


def check_attributes(attributes: MessageAttributes, where: str) -> None:
    """Raise ParameterValueInvalid or TopicValidationError if an attribute is invalid.

    where: path of the message in the request, for error texts.
    """
    for name, value in attributes.items():
        _check_name(name)
        if not value.data_type:
            raise TopicValidationError(
                f"1 validation error detected: Value null at '{where}messageAttributes.{name}.member.dataType'"
                " failed to satisfy constraint: Member must not be null"
            )
        _check_value(name, value)


def _check_name(name: str) -> None:
    if not name or len(name.encode("utf-8", "replace")) > _NAME_BYTES_MAX:
        raise ParameterValueInvalid("Length of message attribute name must be less than 256 bytes.")
    odd = _ODD.search(name)
    if odd is not None:
        raise ParameterValueInvalid(
            f"Invalid non-alphanumeric character '#x{ord(odd[0]):X}' was found in the message attribute name."
            " Can only include alphanumeric characters, hyphens, underscores, or dots."
        )
    if name.startswith("."):
        raise ParameterValueInvalid("Invalid message attribute name starting with character '.' was found.")
    if name.endswith("."):
        raise ParameterValueInvalid("Invalid message attribute name ending with character '.' was found.")
    if ".." in name:
        raise ParameterValueInvalid("Message attribute name can not have successive '.' character.")
    if name.lower().startswith(("aws.", "amazon.")):
        raise ParameterValueInvalid("Message attribute name can not start with reserved keyword 'AWS.' or 'Amazon.'.")


def _check_value(name: str, value: MessageAttributeValue) -> None:
    base, dot, label = value.data_type.partition(".")
    if base not in _TYPES or (dot and not label):
        raise ParameterValueInvalid(
            f"The message attribute '{name}' has an invalid message attribute type, the set of supported type prefixes"
            " is Binary, Number, and String."
        )
    field = "Binary" if base == "Binary" else "String"
    given, other = value.string_value, value.binary_value
    if field == "Binary":
        if given is not None and other is None:
            raise _wrong_field(name, base, field)
        is_empty = not other
    else:
        if other is not None and given is None:
            raise _wrong_field(name, base, field)
        is_empty = not given
    if is_empty:
        raise ParameterValueInvalid(
            f"The message attribute '{name}' must contain non-empty message attribute value for message attribute"
            f" type '{base}'."
        )
    if base == "Number" and not contents.NUMBER.match(given or ""):
        raise ParameterValueInvalid(f"Could not cast message attribute '{name}' value to number.")
    if field == "String":
        _check_characters(name, given or "")


def _wrong_field(name: str, base: str, field: str) -> ParameterValueInvalid:
    return ParameterValueInvalid(f"The message attribute '{name}' with type '{base}' must use field '{field}'.")


def _check_characters(name: str, text: str) -> None:
    try:
        contents.check_body(text)
    except SqsError:
        raise ParameterValueInvalid(
            f"Invalid characters were found in the value of message attribute '{name}'."
        ) from None
