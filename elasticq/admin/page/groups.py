"""What the page shows of consumer groups, asked for by their own actions."""

from typing import Any, Final

from elasticq.admin.calls import Ask
from elasticq.model.group_figures import figures, held_by

SHOWN_MAX: Final = 100
"""Groups on the page."""
RESOURCES_MAX: Final = 500
"""Resources of a group on the page: those without a holder first."""


async def listed(ask: Ask, wanted: str) -> list[dict[str, Any]]:
    """Return the groups with ``wanted`` in their names, SHOWN_MAX at most, with their consumers and resources."""
    found: list[dict[str, Any]] = []
    token = ""
    while len(found) < SHOWN_MAX:
        page = await ask("ElasticqDescribeGroups", {"NextToken": token} if token else {})
        found += [_told(each) for each in page.get("Groups", ()) if wanted in each["GroupName"]]
        token = page.get("NextToken") or ""
        if not token:
            break
    return sorted(found[:SHOWN_MAX], key=lambda each: str(each["name"]))


def _told(group: dict[str, Any]) -> dict[str, Any]:
    held = held_by(group)
    names = {each["ConsumerId"]: each.get("ConsumerName") or each["ConsumerId"] for each in group["Consumers"]}
    resources = sorted(group["Resources"], key=lambda each: (each["State"] == "held", each["Resource"]))
    settings = ("SessionTimeoutMs", "RebalanceDelayMs", "MaxPerConsumer", "Moves", "RebalancedMs")
    return {
        **figures(group),
        "settings": [(name, group[name]) for name in settings if name in group],
        "all_consumers": [{**each, "held": held[each["ConsumerId"]]} for each in group["Consumers"]],
        "all_resources": [
            {**each, "holder": names.get(each.get("ConsumerId") or "", "")} for each in resources[:RESOURCES_MAX]
        ],
    }
