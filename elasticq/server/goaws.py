"""The reader of GoAWS's file of settings, goaws.yaml: its queues, topics and subscriptions."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from elasticq.engine.actions import queue_attributes
from elasticq.engine.ordering.kinds import kind_named
from elasticq.engine.stored.redrive_policies import POLICY, read_policy
from elasticq.extras import how_to_install
from elasticq.model.errors import SqsError
from elasticq.model.names import ACCOUNT, DEFAULT_ACCOUNT
from elasticq.server.hocon import MigrationError

ENVIRONMENT: Final = "Local"
"""The environment (top-level key of the file) that GoAWS uses by default."""
_IGNORED: Final = ("LogToFile", "LogFile", "LogMessages", "Debug", "EnableDuplicates", "RandomLatency")
_QUEUE_ATTRIBUTES: Final = (
    "VisibilityTimeout",
    "DelaySeconds",
    "ReceiveMessageWaitTimeSeconds",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "RedrivePolicy",
    "ContentBasedDeduplication",
)


def read(file: Path, notes: list[str]) -> dict[str, dict[str, Any]]:
    """Return our settings by section. Append a text to ``notes`` for each key that is ignored.

    Raise MigrationError if the file cannot be read.
    """
    try:
        import yaml
    except ImportError as error:
        reason = f"PyYAML reads GoAWS's files, but is not installed: {how_to_install('goaws')}"
        raise MigrationError(f"{file}: {reason}") from error
    try:
        tree = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, yaml.YAMLError, RecursionError) as error:
        raise MigrationError(f"{file}: {error}") from error
    if not isinstance(tree, dict) or not tree or not all(isinstance(each, dict) for each in tree.values()):
        raise MigrationError(f"{file}: not a file of GoAWS, which begins with an environment such as {ENVIRONMENT}")
    name = ENVIRONMENT if ENVIRONMENT in tree else next(iter(tree))
    if len(tree) > 1:
        notes.append(f"only the environment {name} is read")
    return _sections(tree[name], str(file), notes)


def _sections(given: Mapping[str, Any], source: str, notes: list[str]) -> dict[str, dict[str, Any]]:
    node = _node(given, notes)
    known = {"Host", "Port", "SqsPort", "SnsPort", "Region", "AccountId", "QueueAttributeDefaults", "Queues", "Topics"}
    others = [key for key in given if key not in known]
    notes += [f"{key} is ignored" if key in _IGNORED else f"{key} is unknown and ignored" for key in others]
    defaults = _mapping(given.get("QueueAttributeDefaults"), source, "QueueAttributeDefaults")
    queues = {_name(each, "Name", source): _queue(each, defaults, notes) for each in _list(given, "Queues", source)}
    topics = {_name(each, "Name", source): _topic(each, source, notes) for each in _list(given, "Topics", source)}
    for topic in topics.values():  # GoAWS creates the queues that subscriptions name
        for subscription in topic["subscriptions"]:
            if subscription.get("queue"):
                queues.setdefault(subscription["queue"], _queue({}, defaults, notes))
    for name, queue in list(queues.items()):
        dead = queue.get("dead_letter_queue", "")
        if dead and dead not in queues:
            queues[dead] = _queue({}, defaults, notes)
            notes.append(f"RedrivePolicy of queue {name} names {dead}, which is not in the file: it is created")
    http: dict[str, Any] = {"host": "0.0.0.0"}  # GoAWS listens at all addresses
    port = str(given.get("Port") or given.get("SqsPort") or "")
    if port.isdigit():
        http["port"] = int(port)
    if given.get("SnsPort") and str(given["SnsPort"]) != port:
        notes.append(f"SnsPort is ignored: SNS is at the port of SQS, {port or 'see http.port'}")
    auth = {"allowed_hosts": _hosts(given)} if given.get("Host") else {}
    return {"http": http, "auth": auth, "node": node, "queues": queues, "topics": topics}


def _node(given: Mapping[str, Any], notes: list[str]) -> dict[str, str]:
    """Return the region and the account. GoAWS accepts any text as account; it is left out if it is not a number."""
    node = {"region": str(given["Region"])} if given.get("Region") else {}
    if given.get("AccountId"):
        text = str(given["AccountId"])
        account = text.zfill(len(DEFAULT_ACCOUNT))
        if not ACCOUNT.match(account):
            notes.append(f"AccountId {text} is ignored: an account has 12 digits")
            return node
        node["account"] = account
        if account != text:
            notes.append(f"AccountId {text} is read as {account}")
    return node


def _hosts(given: Mapping[str, Any]) -> list[str]:
    """Return the names that clients of GoAWS call: Host, and Region.Host, which is in GoAWS's queue URLs."""
    host = str(given["Host"])
    return [host, f"{given['Region']}.{host}"] if given.get("Region") else [host]


def _list(given: Mapping[str, Any], key: str, source: str) -> Iterator[Mapping[str, Any]]:
    listed = given.get(key) or []
    if not isinstance(listed, list):
        raise MigrationError(f"{source}: {key} is not a list")
    for each in listed:
        yield _mapping(each, source, f"an entry of {key}")


def _mapping(value: object, source: str, what: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MigrationError(f"{source}: {what} is not a mapping")
    return value


def _name(given: Mapping[str, Any], key: str, source: str) -> str:
    name = given.get(key)
    if not isinstance(name, str) or not name:
        raise MigrationError(f"{source}: a queue or topic has no {key}")
    return name


def _queue(given: Mapping[str, Any], defaults: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    attributes = {}
    for key, value in {**defaults, **given}.items():
        if key in _QUEUE_ATTRIBUTES:
            attributes[key] = value if isinstance(value, str) else json.dumps(value)
        elif key != "Name":
            notes.append(f"{key} of a queue is unknown and ignored")
    _drop_what_sqs_refuses(str(given.get("Name", "")), attributes, notes)
    queue: dict[str, Any] = _dead_letters(attributes)
    return queue | {"attributes": attributes} if attributes else queue


def _drop_what_sqs_refuses(name: str, attributes: dict[str, str], notes: list[str]) -> None:
    """Remove the values that GoAWS accepts and SQS refuses. Append a note on each."""
    for key in [each for each in attributes if each != POLICY]:
        try:
            queue_attributes.checked({key: attributes[key]}, kind_named(name))
        except SqsError as error:
            notes.append(f"{key} = {attributes.pop(key)} of queue {name} is ignored: {error.message}")


def _dead_letters(attributes: dict[str, str]) -> dict[str, Any]:
    """Return our settings for a RedrivePolicy, and remove it. GoAWS reads only the name in its ARN.

    A policy that is not valid stays. Then the check of the settings reports it.
    """
    try:
        policy = read_policy(attributes.get(POLICY, ""), DEFAULT_ACCOUNT)
    except SqsError:
        return {}
    del attributes[POLICY]
    return {"dead_letter_queue": policy.target[1], "max_receive_count": policy.receives}


def _topic(given: Mapping[str, Any], source: str, notes: list[str]) -> dict[str, Any]:
    subscriptions = []
    for each in _list(given, "Subscriptions", source):
        subscription: dict[str, Any] = {}
        if each.get("QueueName"):
            subscription["queue"] = str(each["QueueName"])
        elif str(each.get("Protocol", "")) in ("http", "https"):
            subscription["url"] = str(each.get("EndPoint") or each.get("Endpoint") or "")
        else:
            notes.append(
                f"a subscription of {given.get('Name')} names neither a queue nor a web server, and is ignored"
            )
            continue
        if each.get("Raw") is True:
            subscription["raw"] = True
        if each.get("FilterPolicy"):
            policy = each["FilterPolicy"]
            subscription["attributes"] = {"FilterPolicy": policy if isinstance(policy, str) else json.dumps(policy)}
        subscriptions.append(subscription)
    return {"subscriptions": subscriptions}
