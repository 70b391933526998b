"""Every member of every action has its bound in one table, and both protocols refuse what is beyond it."""

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
import pytest
from msgspec import Struct

from elasticq.model import errors, limits
from elasticq.model.commands import Command
from elasticq.model.errors import SqsError
from elasticq.wire import json, query
from elasticq.wire.operations import OPERATIONS, PEEK, SQS, Operation
from tests.wire.reference import form_of, parameters_of_members

Path = tuple[str, ...]
FENCE = ("ElasticqGroup", "ElasticqToken", "ElasticqPartition")
ERRORS = {
    "QueueUrl": errors.QueueDoesNotExist,
    "ReceiptHandle": errors.ReceiptHandleIsInvalid,
    "Id": errors.InvalidBatchEntryId,
    "Entries": errors.TooManyEntriesInBatchRequest,
    "SourceArn": errors.ResourceNotFound,
    "DestinationArn": errors.ResourceNotFound,
    "AttributeNames.item": errors.InvalidAttributeName,
    "MessageSystemAttributeNames.item": errors.InvalidAttributeName,
    "Attributes.key": errors.InvalidAttributeName,
    "Attributes.value": errors.InvalidAttributeValue,
}


class Leaf(Struct, frozen=True):
    """A text, number, blob, list or map that a request may hold: where it stands, of which type, up to where."""

    operation: Operation
    path: Path
    kind: Any
    bound: msgspec.Meta | None

    @property
    def name(self) -> str:
        """In the table."""
        named = [step for step in self.path if step not in ("item", "key", "value")][-1].replace("tags", "Tags")
        suffix = self.path[-1] if self.path[-1] in ("item", "key", "value") else ""
        if "MessageSystemAttributes" in self.path and named in ("StringValue", "BinaryValue"):
            return f"System{named}"
        return f"{named}.{suffix}" if suffix else named


def leaves(operation: Operation, kind: Any, path: Path, bound: msgspec.Meta | None = None) -> Iterator[Leaf]:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        (arm,) = (arm for arm in arguments if arm is not type(None))
        yield from leaves(operation, arm, path)
    elif origin is Annotated:
        yield from leaves(operation, arguments[0], path, arguments[1])
    elif isinstance(kind, type) and issubclass(kind, Struct):
        for field in msgspec.structs.fields(kind):
            yield from leaves(operation, field.type, (*path, field.encode_name))
    else:
        yield Leaf(operation, path, origin or kind, bound)
        steps = {list: ("item",), dict: ("key", "value")}.get(origin, ())
        for step, argument in zip(steps, arguments, strict=bool(steps)):
            yield from leaves(operation, argument, (*path, step))


LEAVES = [leaf for operation in (*OPERATIONS.values(), PEEK) for leaf in leaves(operation, operation.command, ())]
ALL = pytest.mark.parametrize("leaf", [pytest.param(x, id=".".join((x.operation.name, *x.path))) for x in LEAVES])
LARGE = [leaf for leaf in LEAVES if leaf.bound is not None and leaf.bound.max_length == limits.REQUEST_BYTES_MAX]
WITHIN = pytest.mark.parametrize(
    "leaf", [pytest.param(x, id=".".join((x.operation.name, *x.path))) for x in LEAVES if x not in LARGE]
)


def members_with(path: Path, value: Any, above: str = "") -> Any:
    """The smallest request that holds ``value`` at ``path``."""
    if not path:
        return value
    step, inner = path[0], members_with(path[1:], value, path[0])
    if step == "item":
        return [inner]
    if step == "key":
        return {inner: {"DataType": "String"} if above.startswith("Message") else "x"}
    return {"x": inner} if step == "value" else {step: inner}


def sized(leaf: Leaf, more: int) -> Any:
    """What is as large as the bound, and ``more``."""
    bound = leaf.bound
    assert bound is not None
    if leaf.kind is int:
        return bound.le + more
    assert bound.max_length is not None
    count = bound.max_length + more
    if leaf.kind is list:
        if leaf.name == "Released":
            return list(range(count))
        return [{"Id": f"{number}"} if leaf.name == "Entries" else "x" for number in range(count)]
    if leaf.kind is dict:
        value = {"DataType": "String"} if leaf.name.startswith("Message") else "x"
        return {f"{number}": value for number in range(count)}
    return b"x" * count if leaf.kind is bytes else "x" * count


def decoded(operation: Operation, members: Any, *, by_form: bool) -> Command:
    body = msgspec.json.encode(members)
    if not by_form:
        return json.decode(operation, body)
    parameters = parameters_of_members(msgspec.json.decode(body), operation.name)
    return query.decode(SQS, form_of([("Action", operation.name), *parameters]))[1]


def has_form(leaf: Leaf) -> bool:
    return leaf.operation is not PEEK and (leaf.path[0] in FENCE or not leaf.path[0].startswith("Elasticq"))


@ALL
def test_a_member_has_its_bound_in_the_table(leaf: Leaf) -> None:
    assert leaf.bound == limits.MEMBERS[leaf.name]


def test_the_table_holds_nothing_else() -> None:
    assert set(limits.MEMBERS) == {leaf.name for leaf in LEAVES}


def test_a_member_that_is_a_request_by_itself_makes_one_that_is_too_large() -> None:
    assert LARGE
    for leaf in LARGE:
        with pytest.raises(errors.RequestTooLarge):
            decoded(leaf.operation, members_with(leaf.path, sized(leaf, 0)), by_form=False)


@WITHIN
def test_what_is_beyond_gets_the_error_of_its_parameter(leaf: Leaf) -> None:
    members = members_with(leaf.path, sized(leaf, 1))
    for by_form in (False, True) if has_form(leaf) else (False,):
        with pytest.raises(SqsError) as caught:
            decoded(leaf.operation, members, by_form=by_form)
        error = caught.value
        assert type(error) is ERRORS.get(leaf.name, errors.InvalidParameterValue)
        assert 400 <= error.status < 500
        assert len(error.message) < 512, "what was sent is quoted in part only"


@WITHIN
def test_what_is_as_large_as_the_bound_is_a_command(leaf: Leaf) -> None:
    members = members_with(leaf.path, sized(leaf, 0))
    commands = [
        decoded(leaf.operation, members, by_form=by_form) for by_form in ((False, True) if has_form(leaf) else (False,))
    ]
    assert all(command == commands[0] for command in commands)
    assert commands[0] != leaf.operation.command()


INTEGERS = [leaf for leaf in LEAVES if leaf.kind is int]


@pytest.mark.parametrize("value", [2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**30, -(10**300)])
@pytest.mark.parametrize("leaf", [pytest.param(x, id=".".join((x.operation.name, *x.path))) for x in INTEGERS])
def test_an_integer_of_any_size_is_read_or_refused(leaf: Leaf, value: int) -> None:
    """What is read can be passed on, whatever is made of it."""
    assert leaf.bound is not None
    members = members_with(leaf.path, value)
    is_inside = leaf.bound.ge <= value <= leaf.bound.le
    for by_form in (False, True) if has_form(leaf) else (False,):
        if is_inside:
            msgspec.msgpack.encode(decoded(leaf.operation, members, by_form=by_form))
            continue
        with pytest.raises(errors.InvalidParameterValue, match=leaf.name.partition(".")[0]):
            decoded(leaf.operation, members, by_form=by_form)


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("Policy", errors.OverLimit, "Submitted policy is over max allowed size."),
        ("RedrivePolicy", errors.InvalidParameterValue, "for parameter RedrivePolicy is invalid."),
        ("RedriveAllowPolicy", errors.InvalidParameterValue, "for parameter RedriveAllowPolicy is invalid."),
        ("KmsMasterKeyId", errors.InvalidAttributeValue, "Invalid value for the parameter KmsMasterKeyId."),
    ],
)
def test_a_long_attribute_gets_the_error_of_that_attribute(name: str, kind: type[SqsError], words: str) -> None:
    members = {"QueueUrl": "q", "Attributes": {"VisibilityTimeout": "1", name: "{}" + " " * limits.POLICY_BYTES_MAX}}
    for by_form in (False, True):
        with pytest.raises(kind) as caught:
            decoded(OPERATIONS["SetQueueAttributes"], members, by_form=by_form)
        assert words in caught.value.message


def test_the_number_that_was_sent_is_told() -> None:
    with pytest.raises(errors.InvalidParameterValue, match=r"^Value 18446744073709551616 for parameter DelaySeconds "):
        json.decode(OPERATIONS["SendMessage"], b'{"MessageBody":"x","DelaySeconds":18446744073709551616}')


def test_a_value_that_has_no_name_in_the_request_is_not_quoted() -> None:
    header = {"AWSTraceHeader": {"DataType": "String", "StringValue": "t" * 1_025}}
    with pytest.raises(
        errors.InvalidParameterValue, match=r"^Value for parameter StringValue is invalid\. Reason: Must"
    ):
        decoded(OPERATIONS["SendMessage"], {"MessageSystemAttributes": header}, by_form=False)


def test_a_wrong_type_is_not_taken_for_a_bound() -> None:
    with pytest.raises(errors.SerializationError, match="STRING_VALUE can not be converted to an Integer"):
        json.decode(OPERATIONS["SendMessage"], b'{"DelaySeconds":"1"}')
