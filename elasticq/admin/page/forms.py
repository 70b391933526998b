"""Turns the fields of an HTML form into the members of an action of SQS or SNS, and those into commands of other tools.

A field is named as the member of AWS JSON 1.0 that it fills; ``Attributes.NAME`` fills one item of that map. Some
members are lines of text in a form: ``Tags`` as NAME=VALUE, ``MessageAttributes`` as NAME:TYPE=VALUE. Empty fields
are left out.
"""

import base64
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

from elasticq.admin.calls import ACTIONS, TOPIC_ACTIONS, NotExecuted

LINES: Final = frozenset(("Tags", "tags"))
KEPT_EMPTY: Final = "+"
"""A field whose name ends so is kept though it is empty: to take an attribute away."""


def members(action: str, fields: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the members that the fields give. Raises NotExecuted for a line or number that cannot be read."""
    if action not in ACTIONS:
        raise NotExecuted(404, "InvalidAction", f"There is no action {action[:80]}.")
    integers, found = ACTIONS[action].shape.integers | _INTEGERS, dict[str, Any]()
    for name, value in fields:
        is_kept = name.endswith(KEPT_EMPTY)
        name = name.removesuffix(KEPT_EMPTY)
        if not value and not is_kept:
            continue
        whole, _, part = name.partition(".")
        if part:
            found.setdefault(whole, {})[part] = value
        elif name in LINES:
            pairs = _pairs(name, value)
            is_list = action in TOPIC_ACTIONS
            found[name] = [{"Key": key, "Value": text} for key, text in pairs] if is_list else dict(pairs)
        elif name == "MessageAttributes":
            found[name] = {key.partition(":")[0]: attribute(key, text) for key, text in _pairs(name, value)}
        elif name in integers:
            found[name] = _integer(name, value)
        elif name in _LISTS:
            found[name] = [each for each in re.split(r"[\s,]+", value) if each]
        else:
            found[name] = value.replace("\r\n", "\n") if name in _BODIES else value
    return found


_INTEGERS: Final = frozenset(("FromSequence", "Limit", "Sequence", "VisibilityTimeout"))
_BODIES: Final = frozenset(("MessageBody", "Message"))
_LISTS: Final = frozenset(("AttributeNames", "MessageAttributeNames", "TagKeys", "States"))


def attribute(name: str, text: str) -> dict[str, str]:
    """Return a message attribute; ``name`` is NAME or NAME:TYPE, and the text of a binary one is base64."""
    kind = name.partition(":")[2] or "String"
    if kind.partition(".")[0] == "Binary":
        return {"DataType": kind, "BinaryValue": text}
    return {"DataType": kind, "StringValue": text}


def _pairs(name: str, value: str) -> list[tuple[str, str]]:
    pairs = []
    for line in value.splitlines():
        key, equals, text = line.partition("=")
        if not line.strip():
            continue
        if not equals or not key.strip():
            raise NotExecuted(
                400, "InvalidParameterValue", f"{name}: each line is NAME=VALUE, and {line[:80]!r} is not."
            )
        pairs.append((key.strip(), text.strip()))
    return pairs


def _integer(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise NotExecuted(400, "InvalidParameterValue", f"{name}: {value[:80]!r} is no whole number.") from None


# --- the same for other tools ------------------------------------------------------------


def as_cli(action: str, given: Mapping[str, Any], endpoint: str, region: str) -> str:
    """Return the command of the AWS CLI that does the same."""
    service, name = _service(action)
    words = ["aws", "--endpoint-url", endpoint, "--region", region, service, _kebab(name)]
    for name, value in given.items():
        words += [f"--{_kebab(name)}", *_cli_value(value)]
    return shlex.join(words)


def _cli_value(value: Any) -> list[str]:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    if isinstance(value, (dict, list)):
        return [json.dumps(value, ensure_ascii=False)]
    return [str(value)]


def as_boto3(action: str, given: Mapping[str, Any], endpoint: str, region: str) -> str:
    """Return the lines of Python that do the same with boto3."""
    service, name = _service(action)
    name = _kebab(name).replace("-", "_")
    told = ",\n".join(f"    {key}={_python(key, value)}" for key, value in given.items())
    call = f"{service}.{name}(\n{told},\n)" if told else f"{service}.{name}()"
    made = f"boto3.client({service!r}, endpoint_url={endpoint!r}, region_name={region!r})"
    return f"import boto3\n\n{service} = {made}\n{call}"


def _service(action: str) -> tuple[str, str]:
    """The service of an action, and its name there."""
    return ("sns", TOPIC_ACTIONS[action].name) if action in TOPIC_ACTIONS else ("sqs", action)


def _python(name: str, value: Any) -> str:
    if name != "MessageAttributes":
        return repr(value)
    shown = {}
    for key, one in value.items():
        is_binary = "BinaryValue" in one
        shown[key] = {**one, "BinaryValue": base64.b64decode(one["BinaryValue"])} if is_binary else one
    return repr(shown)


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
