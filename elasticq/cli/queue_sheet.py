"""The command ``elasticq queues show``: all settings of one queue, for people or as JSON."""

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from elasticq.cli.show import json_lines, one_line
from elasticq.model.names import arn_region

if TYPE_CHECKING:
    from elasticq.client import Sqs

COUNTS: Final = {
    "visible": "ApproximateNumberOfMessages",
    "in_flight": "ApproximateNumberOfMessagesNotVisible",
    "delayed": "ApproximateNumberOfMessagesDelayed",
}
_POLICIES: Final = ("RedrivePolicy", "RedriveAllowPolicy", "Policy")
_TIMES: Final = ("CreatedTimestamp", "LastModifiedTimestamp")
_UNITS: Final = {
    "DelaySeconds": "s",
    "KmsDataKeyReusePeriodSeconds": "s",
    "MaximumMessageSize": "bytes",
    "MessageRetentionPeriod": "s",
    "ReceiveMessageWaitTimeSeconds": "s",
    "VisibilityTimeout": "s",
}


def url_of(client: "Sqs", queue: str) -> str:
    """Return the URL of a queue that is given by name or URL. Raise SqsError if there is no queue of the name."""
    return queue if "://" in queue else str(client.get_queue_url(QueueName=queue)["QueueUrl"])


def attributes_of(client: "Sqs", url: str) -> dict[str, str]:
    return dict(client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"])


def counts_of(attributes: dict[str, str]) -> dict[str, int]:
    return {name: int(attributes.get(attribute, 0)) for name, attribute in COUNTS.items()}


def region_of(attributes: dict[str, str]) -> str:
    """Return the region in the queue's ARN, empty if the server returns no ARN."""
    arn = attributes.get("QueueArn", "")
    return arn_region(arn) if arn.startswith("arn:") else ""


def show(client: "Sqs", url: str, *, as_json: bool) -> None:
    """Print the queue's counts, attributes, policies and tags. Raise SqsError if the queue cannot be read."""
    attributes = attributes_of(client, url)
    tags = dict(client.list_queue_tags(QueueUrl=url).get("Tags") or {})
    counts = counts_of(attributes)
    policies = {name: _document(attributes[name]) for name in _POLICIES if attributes.get(name)}
    plain = {name: value for name, value in attributes.items() if name not in (*COUNTS.values(), *_POLICIES)}
    name = url.rpartition("/")[2]
    if as_json:
        json_lines([{"name": name, "url": url, **counts, "attributes": plain, "policies": policies, "tags": tags}])
        return
    print(f"{name}  {url}")
    print(f"messages: {counts['visible']} visible, {counts['in_flight']} in flight, {counts['delayed']} delayed")
    _section("attributes", {name: _readable(name, value) for name, value in sorted(plain.items())})
    for name, document in policies.items():
        print(f"\n{name}")
        print("\n".join(f"  {line}" for line in _lines(document)))
    _section("tags", dict(sorted(tags.items())))


def _section(title: str, rows: Mapping[str, str]) -> None:
    if rows:
        width = max(map(len, map(one_line, rows)))
        print(f"\n{title}")
        for name, value in rows.items():
            print(f"  {one_line(name).ljust(width)}  {one_line(value)}".rstrip())


def _readable(name: str, value: str) -> str:
    if name in _TIMES and value.isdigit():
        return f"{value} ({time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(int(value)))})"
    return f"{value} {_UNITS[name]}" if name in _UNITS else value


def _document(text: str) -> Any:
    """Return a policy, decoded. Return its text if it is not JSON, as some servers store any text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _lines(document: Any) -> list[str]:
    """Return the lines of a policy. In JSON, control characters of its texts are escapes already."""
    return json.dumps(document, indent=2).splitlines() if not isinstance(document, str) else [one_line(document)]
