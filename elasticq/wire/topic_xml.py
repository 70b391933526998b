"""The answers of SNS in XML, with the same bytes as on AWS: indented by two, and every line has an end.

The fields of a result become a tree of texts, lists and maps, which is then written. Lists and maps have an element
around them, also if they are empty. The answer to a publish is frequent, so a hand-written function writes it.
"""

from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from elasticq.model.errors import SqsError
from elasticq.model.results import BatchError, Result
from elasticq.model.topic_results import (
    NothingThereResult,
    PublishBatchResult,
    PublishedEntry,
    PublishResult,
    TopicDone,
)
from elasticq.wire.operations import Operation, Service
from elasticq.wire.xml import escape_any, message_text

Tree = dict[str, Any]
"""Elements by their names. A value is a text, a ``Map``, or a list of trees or texts, each in a <member>."""


class Map:
    """A map: pairs, each in an <entry>."""

    __slots__ = ("entries",)

    def __init__(self, entries: dict[str, str]) -> None:
        self.entries = entries


_NOTHING: Final[dict[str, Tree]] = {
    "CheckIfPhoneNumberIsOptedOut": {"isOptedOut": "false"},
    "GetSMSAttributes": {"attributes": Map({})},
    "GetSMSSandboxAccountStatus": {"IsInSandbox": "true"},
    "ListEndpointsByPlatformApplication": {"Endpoints": []},
    "ListOriginationNumbers": {"PhoneNumbers": []},
    "ListPhoneNumbersOptedOut": {"phoneNumbers": []},
    "ListPlatformApplications": {"PlatformApplications": []},
    "ListSMSSandboxPhoneNumbers": {"PhoneNumbers": []},
}
"""The fixed answers of the actions that read phones and mobile push."""
_FAULT_NAMESPACE: Final = "http://webservices.amazon.com/AWSFault/2005-15-09"
"""The namespace of the answer to an unknown action."""


def encode(operation: Operation, result: Result, request_id: str) -> bytes:
    """Return the body of the answer. TopicDone has no result element."""
    name = operation.name
    if type(result) is PublishResult:
        number = result.sequence_number
        sequence = "" if number is None else f"    <SequenceNumber>{number}</SequenceNumber>\n"
        content = f"  <{name}Result>\n    <MessageId>{result.message_id}</MessageId>\n{sequence}  </{name}Result>\n"
    elif type(result) is TopicDone:
        content = ""
    else:
        content = _element(f"{name}Result", tree_of(operation, result), "  ")
    return (
        f'<{name}Response xmlns="{operation.namespace}">\n{content}  <ResponseMetadata>\n'
        f"    <RequestId>{request_id}</RequestId>\n  </ResponseMetadata>\n</{name}Response>\n"
    ).encode()


def encode_error(service: Service, error: SqsError, request_id: str) -> bytes:
    fault = "Sender" if error.sender_fault else "Receiver"
    namespace = _FAULT_NAMESPACE if error.code == "InvalidAction" else service.namespace
    return (
        f'<ErrorResponse xmlns="{namespace}">\n  <Error>\n    <Type>{fault}</Type>\n    <Code>{error.code}</Code>\n'
        f"    <Message>{escape_any(message_text(error))}</Message>\n  </Error>\n"
        f"  <RequestId>{request_id}</RequestId>\n</ErrorResponse>\n"
    ).encode()


def encode_as_json(operation: Operation, result: Result, request_id: str) -> bytes:
    """Return the same answer for a client whose Accept header asks for JSON."""
    answer: Tree = {"ResponseMetadata": {"RequestId": request_id}}
    if type(result) is not TopicDone:
        answer[f"{operation.name}Result"] = plain_of(operation, result)
    return msgspec.json.encode({f"{operation.name}Response": answer})


def plain_of(operation: Operation, result: Result) -> Tree:
    """Return ``tree_of`` with dicts instead of ``Map``, for JSON."""
    tree = tree_of(operation, result)
    return {name: value.entries if isinstance(value, Map) else value for name, value in tree.items()}


def tree_of(operation: Operation, result: Result) -> Tree:
    """Return the content of the result element."""
    if type(result) is NothingThereResult:
        return _NOTHING[operation.name]
    if type(result) is PublishResult:
        return _of_published(result)
    if type(result) is PublishBatchResult:
        return {
            "Successful": [{"Id": each.id, **_of_published(each)} for each in result.successful],
            "Failed": [_of_failure(each) for each in result.failed],
        }
    tree: Tree = {}
    for field in structs.fields(result):
        value = getattr(result, field.name)
        name = "".join(map(str.capitalize, field.name.split("_")))
        if isinstance(value, dict):
            tree[name] = Map(value)
        elif isinstance(value, list):
            tree[name] = [_of_struct(each) for each in value]
        elif isinstance(value, str):
            tree[name] = value
    return tree


def _of_struct(each: Struct) -> Tree:
    return {field.encode_name: getattr(each, field.name) for field in structs.fields(each)}


def _of_published(published: PublishResult | PublishedEntry) -> Tree:
    tree: Tree = {"MessageId": published.message_id}
    if published.sequence_number is not None:
        tree["SequenceNumber"] = published.sequence_number
    return tree


def _of_failure(failure: BatchError) -> Tree:
    fault = "true" if failure.sender_fault else "false"
    return {"Id": failure.id, "Code": failure.code, "Message": failure.message, "SenderFault": fault}


# --- elements ---------------------------------------------------------------------------


def _element(name: str, value: Any, indent: str) -> str:
    if isinstance(value, str):
        return f"{indent}<{name}>{escape_any(value)}</{name}>\n" if value else f"{indent}<{name}/>\n"
    inner = _children(value, f"{indent}  ")
    return f"{indent}<{name}>\n{inner}{indent}</{name}>\n" if inner else f"{indent}<{name}/>\n"


def _children(value: Any, indent: str) -> str:
    if isinstance(value, Map):
        pairs = value.entries.items()
        return "".join([_element("entry", {"key": key, "value": text}, indent) for key, text in pairs])
    if isinstance(value, list):
        return "".join([_element("member", each, indent) for each in value])
    return "".join([_element(name, each, indent) for name, each in value.items()])
