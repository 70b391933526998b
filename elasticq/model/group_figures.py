"""The figures of a consumer group that the command line and the page show, from ElasticqDescribeGroups."""

from collections import Counter
from collections.abc import Mapping
from typing import Any


def shares_out(group: Mapping[str, Any]) -> str:
    """Return a short description of the group's resources."""
    if group.get("PartitionsOf"):
        return f"partitions of {group['PartitionsOf']}"
    if group.get("QueueNames"):
        return f"queues {', '.join(group['QueueNames'])}"
    return f"queues {group.get('QueueNamePrefix') or ''}*"


def held_by(group: Mapping[str, Any]) -> Counter[str]:
    """Return how many resources each consumer holds, by its id. Those that it has to release count, too."""
    return Counter(each["ConsumerId"] for each in group["Resources"] if each.get("ConsumerId"))


def figures(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of the group by name. without_work: the number of consumers that hold nothing."""
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
