"""What the command line and the page tell of a consumer group, from the answer of ElasticqDescribeGroups."""

from collections import Counter
from collections.abc import Mapping
from typing import Any


def shares_out(group: Mapping[str, Any]) -> str:
    """Return what makes the group's resources, in a few words."""
    if group.get("PartitionsOf"):
        return f"partitions of {group['PartitionsOf']}"
    if group.get("QueueNames"):
        return f"queues {', '.join(group['QueueNames'])}"
    return f"queues {group.get('QueueNamePrefix') or ''}*"


def held_by(group: Mapping[str, Any]) -> Counter[str]:
    """Return how many resources each consumer has, by its id; those that it is to give up count as well."""
    return Counter(each["ConsumerId"] for each in group["Resources"] if each.get("ConsumerId"))


def figures(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line about the group. without_work: consumers that have nothing."""
    held = held_by(group)
    return {
        "name": group["GroupName"],
        "shares_out": shares_out(group),
        "generation": group["Generation"],
        "resources": len(group["Resources"]),
        "free": sum(each["State"] == "free" for each in group["Resources"]),
        "consumers": len(group["Consumers"]),
        "without_work": sum(each["ConsumerId"] not in held for each in group["Consumers"]),
    }
