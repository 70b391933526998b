"""The data of the page of consumer groups, read through their actions."""

from collections.abc import Callable
from typing import Any, Final

from elasticq.admin.calls import Ask
from elasticq.admin.page import text
from elasticq.model.group_figures import figures, held_by

SHOWN_MAX: Final = 100
"""The number of groups on the page."""
SETTINGS: Final[tuple[tuple[str, str, Callable[[int], str]], ...]] = (
    ("SessionTimeoutMs", "sessions end after", text.age),
    ("RebalanceDelayMs", "delay of a rebalance", text.age),
    ("MaxPerConsumer", "at most, for each consumer:", lambda number: text.count(number) if number else "no limit"),
    ("Moves", "moves:", text.count),
    ("RebalancedMs", "last rebalance took", lambda ms: f"{ms:,} ms"),
)
"""Members of a group that its page shows, each with its words and the function that formats it."""
RESOURCES_MAX: Final = 500
"""The number of resources of a group on the page, those that are not held first."""


async def listed(ask: Ask, wanted: str) -> list[dict[str, Any]]:
    """Return at most SHOWN_MAX groups with ``wanted`` in their names, with their consumers and resources."""
    found: list[dict[str, Any]] = []
    token = ""
    while len(found) < SHOWN_MAX:
        page = await ask("ElasticqDescribeGroups", {"NextToken": token} if token else {})
        found += [_row(each) for each in page.get("Groups", ()) if wanted in each["GroupName"]]
        token = page.get("NextToken") or ""
        if not token:
            break
    return sorted(found[:SHOWN_MAX], key=lambda each: str(each["name"]))


def _row(group: dict[str, Any]) -> dict[str, Any]:
    held = held_by(group)
    names = {each["ConsumerId"]: each.get("ConsumerName") or each["ConsumerId"] for each in group["Consumers"]}
    resources = sorted(group["Resources"], key=lambda each: (each["State"] == "held", each["Resource"]))
    return {
        **figures(group),
        "settings": [(words, show(group[name])) for name, words, show in SETTINGS if name in group],
        "all_consumers": [{**each, "held": held[each["ConsumerId"]]} for each in group["Consumers"]],
        "all_resources": [
            {**each, "holder": names.get(each.get("ConsumerId") or "", "")} for each in resources[:RESOURCES_MAX]
        ],
    }
