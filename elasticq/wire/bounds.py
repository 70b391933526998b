"""The errors of AWS for members of SQS requests that exceed their bounds.

The bounds are in ``limits.MEMBERS``. The decoder checks them and reports which bound was exceeded and where. This
module makes the error of AWS from that report. The bounds here are larger than those of AWS. The engine refuses a
value between the two, with the exact text of AWS.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from elasticq.model import limits
from elasticq.model.errors import (
    InvalidAttributeName,
    InvalidAttributeValue,
    InvalidBatchEntryId,
    InvalidParameterValue,
    OverLimit,
    QueueDoesNotExist,
    ReceiptHandleIsInvalid,
    ResourceNotFound,
    SqsError,
    TooManyEntriesInBatchRequest,
    TooManyEntriesInPublishBatch,
    TopicError,
    invalid_parameter,
    quoted,
)

_EXCEEDED: Final = re.compile(
    r"Expected `(?P<kind>\w+)` (?:of length )?[<>]= (?P<bound>-?\d+)"
    r" - at (?P<key>`key` in )?`\$(?P<place>[^`]*\.(?P<name>\w+))(?P<inside>\[[^`]*\])?`"
)
_STEP: Final = re.compile(r"\.(\w+)|\[(\d+)\]")


class Beyond(Struct, frozen=True):
    """A member that exceeded its bound.

    name: the name of the member. kind: int, str, bytes, array or object.
    value: the sent value, None if it is unknown.
    of: the name of the attribute that has the value; empty for any other member.
    """

    name: str
    kind: str
    bound: int
    value: Any
    of: str = ""

    @property
    def shown(self) -> str:
        return "" if self.value is None else quoted(str(self.value))


def beyond_bounds(error: msgspec.ValidationError, members: Any) -> SqsError | None:
    """Return the error to answer after decoding ``members`` raised ``error``. None if no bound was exceeded."""
    found = _EXCEEDED.match(str(error))
    if found is None:
        return None
    name, inside, bound = found["name"], found["inside"], int(found["bound"])
    value, of = _at(found["place"], members), ""
    if found["key"]:
        name, value = f"{name}.key", _longest(value)
    elif inside == "[...]":
        of = next((key for key, each in value.items() if len(each) > bound), "") if isinstance(value, dict) else ""
        name, value = f"{name}.value", value.get(of) if of else None
    elif inside:
        name, value = f"{name}.item", _longest(value)
    return _ERRORS.get(name, _invalid)(Beyond(name.partition(".")[0], found["kind"], bound, value, of))


def _at(place: str, value: Any) -> Any:
    """Return the value at ``place``. None inside a map, because the decoder does not report the keys."""
    for name, number in _STEP.findall(place):
        if name:
            value = value.get(name) if isinstance(value, dict) else None
        else:
            value = value[int(number)] if isinstance(value, list) else None
    return value


def _longest(texts: Any) -> str | None:
    return max((text for text in texts or () if isinstance(text, str)), key=len, default=None)


def _invalid(beyond: Beyond) -> SqsError:
    bound, shown = beyond.bound, ""
    match beyond.kind:
        case "int":
            low, high = limits.INTEGER_RANGE if abs(bound) < 2**32 else limits.LONG_RANGE
            reason, shown = f"Must be between {low} and {high}", f" {beyond.shown}"
        case "str":
            reason = f"Must be at most {bound} characters long"
            shown = f" {beyond.shown}" if beyond.shown else ""
        case "bytes":
            reason = f"Must be at most {bound} bytes long"
        case _:
            reason = f"Must have at most {bound} members"
    return InvalidParameterValue(f"Value{shown} for parameter {beyond.name} is invalid. Reason: {reason}.")


def _unknown_attribute(beyond: Beyond) -> SqsError:
    return InvalidAttributeName(f"Unknown Attribute {beyond.shown}.")


def _attribute_value(beyond: Beyond) -> SqsError:
    if beyond.of == "Policy":
        return OverLimit("Submitted policy is over max allowed size.")
    if beyond.of.startswith("Redrive"):
        return InvalidParameterValue(
            f"Value {beyond.shown} for parameter {beyond.of} is invalid. "
            f"Reason: Must be at most {beyond.bound} characters long."
        )
    return InvalidAttributeValue(f"Invalid value for the parameter {beyond.of}.")


def _missing_resource(beyond: Beyond) -> SqsError:
    return ResourceNotFound(f"The resource that you specified for the {beyond.name} parameter doesn't exist.")


_ERRORS: Final[dict[str, Callable[[Beyond], SqsError]]] = {
    "QueueUrl": lambda beyond: QueueDoesNotExist(),
    "ReceiptHandle": lambda beyond: ReceiptHandleIsInvalid(
        f'The input receipt handle "{beyond.shown}" is not a valid receipt handle.'
    ),
    "Id": lambda beyond: InvalidBatchEntryId(),
    "Entries": lambda beyond: TooManyEntriesInBatchRequest(
        f"Maximum number of entries per request are {limits.BATCH_ENTRIES_MAX}. You have sent {len(beyond.value)}."
    ),
    "NextToken": lambda beyond: InvalidParameterValue("Invalid or expired NextToken value."),
    "TaskHandle": lambda beyond: InvalidParameterValue("Value for parameter TaskHandle is invalid."),
    "SourceArn": _missing_resource,
    "DestinationArn": _missing_resource,
    "AttributeNames.item": _unknown_attribute,
    "MessageSystemAttributeNames.item": _unknown_attribute,
    "Attributes.key": _unknown_attribute,
    "Attributes.value": _attribute_value,
    "MessageAttributes": lambda beyond: InvalidParameterValue(
        f"Number of message attributes [{len(beyond.value)}] exceeds the allowed maximum"
        f" [{limits.MESSAGE_ATTRIBUTES_MAX}]."
    ),
    "MessageAttributes.key": lambda beyond: InvalidParameterValue(
        "Message (user) attribute name must be between 1 and 256 characters long."
    ),
}
"""The makers of errors by the name in ``limits.MEMBERS``. All other members use ``_invalid``."""


_PLACE: Final = re.compile(r"at (?:`key` in )?`\$\.(\w+)(\[[^`]*?\.(\w+))?")
ENTRIES: Final = "PublishBatchRequestEntries"
TOO_MANY_ENTRIES: Final = "The batch request contains more entries than permissible."


def topic_beyond_bounds(error: msgspec.ValidationError) -> TopicError:
    """Return the error to answer after decoding a command of SNS raised ``error``."""
    place = _PLACE.search(str(error))
    if place is None:
        return invalid_parameter("The request has a member of another type than it should have")
    outer, _, inner = place.groups()
    if outer == ENTRIES and inner is None:
        return TooManyEntriesInPublishBatch(TOO_MANY_ENTRIES)
    return invalid_parameter(f"{inner or outer} Reason: it is longer than it may be")
