"""The translation of HTML forms into members of SQS or SNS actions, and of members into commands of other tools.

A field has the name of the member of AWS JSON 1.0 that it fills. ``Attributes.NAME`` and
``MessageAttributes.NAME:TYPE`` fill one item of a map. Some members are lines of text in a form: ``Tags`` as
NAME=VALUE, ``MessageAttributes`` as NAME:TYPE=VALUE, weights as GROUP=WEIGHT. ``NAME/PART`` fills one part of a member
that is a JSON object; queues in it may be named by their names instead of ARNs. A time is written as 2027-01-31T08:00
in UTC, or in ms since the epoch. Empty fields are left out.
"""

import base64
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from elasticq.admin.calls import ACTIONS, TOPIC_ACTIONS, NotExecuted
from elasticq.engine.ordering.schedule import DELIVER_AT
from elasticq.engine.ordering.sharing import WEIGHTS
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION, queue_arn
from elasticq.wire.operations import BY_SEQUENCE, PEEK

LINES: Final = frozenset(("Tags", "tags"))
KEPT_EMPTY: Final = "+"
"""The suffix of a field that is sent even if it is empty, to remove an attribute."""


def members(
    action: str, fields: Iterable[tuple[str, str]], region: str = DEFAULT_REGION, owner: str = DEFAULT_ACCOUNT
) -> dict[str, Any]:
    """Return the members of a request of SQS or SNS from the fields of its form.

    Raise NotExecuted if there is no such action, or if a line or number is malformed.

    region: ``node.region``; owner: that of the queues that fields name.
    """
    if action not in ACTIONS:
        raise NotExecuted(404, "InvalidAction", f"There is no action {action[:80]}.")
    integers, found = ACTIONS[action].shape.integers | _INTEGERS, dict[str, Any]()
    objects: dict[str, dict[str, Any]] = {}
    for name, value in fields:
        is_kept = name.endswith(KEPT_EMPTY)
        name, is_object, member = name.removesuffix(KEPT_EMPTY).partition("/")
        if not value and not is_kept:
            continue
        whole, _, part = name.partition(".")
        if is_object:
            objects.setdefault(name, {}).update(_member(member, value, region, owner))
            continue
        if whole == "MessageAttributes":
            pairs = [(part, value)] if part else _pairs(name, value)
            given = {key.partition(":")[0]: attribute(key, _timed(key, text)) for key, text in pairs}
            found.setdefault(whole, {}).update(given)
        elif part:
            found.setdefault(whole, {})[part] = _weights(value) if part == WEIGHTS else value
        elif name in LINES:
            pairs = _pairs(name, value)
            is_list = action in TOPIC_ACTIONS
            found[name] = [{"Key": key, "Value": text} for key, text in pairs] if is_list else dict(pairs)
        elif name in integers:
            found[name] = _integer(name, _timed(name, value))
        elif name in _LISTS:
            found[name] = [each for each in re.split(r"[\s,]+", value) if each]
        else:
            found[name] = value.replace("\r\n", "\n") if name in _BODIES else value
    for name, members_of in objects.items():
        whole, _, part = name.partition(".")
        text = json.dumps(members_of) if members_of else ""
        found.update({whole: {**found.get(whole, {}), part: text}} if part else {whole: text})
    return found


def _member(name: str, value: str, region: str, owner: str) -> dict[str, Any]:
    """Return one member of a JSON object in a field, none if it is empty."""
    if not value:
        return {}
    if name in _ARNS:
        names = [each for each in re.split(r"[\s,]+", value) if each]
        queues = [each if ":" in each else queue_arn(region, owner, each) for each in names]
        return {name: queues if name == "sourceQueueArns" else queues[0]}
    return {name: value}


_ARNS: Final = frozenset(("deadLetterTargetArn", "sourceQueueArns"))


def _weights(value: str) -> str:
    """Return weights as JSON. JSON stays as it is."""
    if value.lstrip().startswith("{") or not value.strip():
        return value.strip()
    return json.dumps({name: _integer(WEIGHTS, weight) for name, weight in _pairs(WEIGHTS, value)}, ensure_ascii=False)


_INTEGERS: Final = frozenset(("DeliverAt", "FromSequence", "Limit", "Priority", "Sequence", "VisibilityTimeout"))
_BODIES: Final = frozenset(("MessageBody", "Message"))
_LISTS: Final = frozenset(("AttributeNames", "MessageAttributeNames", "TagKeys", "States", "MessageIds"))


def attribute(name: str, text: str) -> dict[str, str]:
    """Return a message attribute. ``name`` is NAME or NAME:TYPE; the text of a binary attribute is base64."""
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


def _timed(name: str, value: str) -> str:
    """Return the value of a time field in ms since the epoch, any other value unchanged."""
    if name.partition(":")[0] not in _TIMES:
        return value
    try:
        return str(round(datetime.fromisoformat(value).replace(tzinfo=UTC).timestamp() * 1_000))
    except ValueError:
        return value  # in ms already, or malformed: the action refuses it


_TIMES: Final = frozenset(("DeliverAt", DELIVER_AT))


def _integer(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise NotExecuted(400, "InvalidParameterValue", f"{name}: {value[:80]!r} is not an integer.") from None


# --- commands of other tools -------------------------------------------------------------


def is_ours(action: str) -> bool:
    """Return whether the action is elasticq's own. The AWS CLI and boto3 have no such action."""
    return action in BY_SEQUENCE or action == PEEK.name or action.startswith("Elasticq")


def tools_of(action: str) -> dict[str, str]:
    """Return the tools for which the page shows a command of this action: curl, or the AWS CLI and boto3.

    The values are the tools' names on the page.
    """
    return {"curl": "curl"} if is_ours(action) else {"cli": "AWS CLI", "boto3": "boto3"}


AS_JSON: Final = "-H 'Content-Type: application/json'"
TOKEN: Final = ' -H "Authorization: Bearer $TOKEN"'
"""An option of curl, without the token itself."""


def as_curl(path: str, given: Mapping[str, Any], admin: str, *, has_token: bool = False) -> str:
    """Return the curl command that sends the members to the admin port. ``admin``: scheme://host:port of that port."""
    body = shlex.quote(json.dumps(given, ensure_ascii=False))
    return f"curl -s {shlex.quote(admin + path)}{TOKEN if has_token else ''} {AS_JSON} -d {body}"


def as_cli(action: str, given: Mapping[str, Any], endpoint: str, region: str) -> str:
    """Return the command of the AWS CLI that executes the action with these members."""
    service, name = service_of(action)
    words = ["aws", "--endpoint-url", endpoint, "--region", region, service, _kebab(name)]
    for name, value in given.items():
        option, values = f"--{_OPTIONS.get((action, name), _kebab(name))}", _cli_value(value)
        if name in _FLAGS:
            words.append(option if value == "true" else f"--no-{_kebab(name)}")
        elif len(values) == 1 and values[0].startswith("-"):
            words.append(f"{option}={values[0]}")
        else:
            words += [option, *values]
    return shlex.join(words)


_FLAGS: Final = frozenset(("ReturnSubscriptionArn",))
"""Members that are texts in AWS's Query protocol and flags in its tools."""
_OPTIONS: Final = {("Subscribe", "Endpoint"): "notification-endpoint"}
"""Options of the AWS CLI that do not have the member's name."""


def _cli_value(value: Any) -> list[str]:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    if isinstance(value, (dict, list)):
        return [json.dumps(value, ensure_ascii=False)]
    return [str(value)]


def as_boto3(action: str, given: Mapping[str, Any], endpoint: str, region: str) -> str:
    """Return the lines of Python that execute the action with boto3."""
    service, name = service_of(action)
    name = _kebab(name).replace("-", "_")
    arguments = ",\n".join(f"    {key}={_python(key, value)}" for key, value in given.items())
    call = f"{service}.{name}(\n{arguments},\n)" if arguments else f"{service}.{name}()"
    made = f"boto3.client({service!r}, endpoint_url={endpoint!r}, region_name={region!r})"
    return f"import boto3\n\n{service} = {made}\n{call}"


def service_of(action: str) -> tuple[str, str]:
    """Return AWS's service that has the action, and the action's name there."""
    return ("sns", TOPIC_ACTIONS[action].name) if action in TOPIC_ACTIONS else ("sqs", action)


def _python(name: str, value: Any) -> str:
    if name in _FLAGS:
        return repr(value == "true")
    if name != "MessageAttributes":
        return repr(value)
    shown = {}
    for key, one in value.items():
        is_binary = "BinaryValue" in one
        shown[key] = {**one, "BinaryValue": base64.b64decode(one["BinaryValue"])} if is_binary else one
    return repr(shown)


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
