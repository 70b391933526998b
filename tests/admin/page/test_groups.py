"""Consumer groups on the page."""

import re
from typing import Any

from elasticq.admin.page.groups import RESOURCES_MAX, SHOWN_MAX, listed
from tests.admin.operator import Operator
from tests.admin.page.browser import BROWSER, page

HOSTILE = "<b>nobody</b>"


def group(number: int, resources: int = 0) -> dict[str, Any]:
    held = [{"Resource": f"r{at:04}", "State": "held", "ConsumerId": "c1", "Token": at + 1} for at in range(resources)]
    return {"GroupName": f"g{number:03}", "Generation": 1, "Consumers": [], "Resources": held}


async def test_no_more_is_listed_than_is_shown() -> None:
    asked: list[dict[str, Any]] = []

    async def ask(action: str, given: dict[str, Any]) -> dict[str, Any]:
        asked.append(given)
        first = len(asked) * 60
        return {"Groups": [group(number) for number in range(first, first - 60, -1)], "NextToken": "more"}

    found = await listed(ask, "g")
    assert len(found) == SHOWN_MAX
    assert [each["name"] for each in found] == sorted(each["name"] for each in found)
    assert asked == [{}, {"NextToken": "more"}]


async def test_resources_without_a_steady_holder_come_first() -> None:
    long = group(1, RESOURCES_MAX)
    long["Resources"].append({"Resource": "z", "State": "free"})

    async def ask(action: str, given: dict[str, Any]) -> dict[str, Any]:
        return {"Groups": [long]}

    (told,) = await listed(ask, "")
    assert len(told["all_resources"]) == RESOURCES_MAX
    assert told["all_resources"][0] == {"Resource": "z", "State": "free", "holder": ""}
    assert told["resources"] == RESOURCES_MAX + 1


def test_a_group_is_shown_with_its_consumers_and_holders(operator: Operator) -> None:
    assert "There are no consumer groups yet" in page(operator, "/groups?filter=")
    operator.act("CreateQueue", {"QueueName": "shared-1"})
    operator.act("ElasticqSetGroup", {"GroupName": "sharing", "QueueNames": ["shared-1"]})
    consumer = operator.act("ElasticqJoinGroup", {"GroupName": "sharing", "ConsumerName": HOSTILE})[1]["ConsumerId"]
    operator.act("ElasticqJoinGroup", {"GroupName": "sharing", "ConsumerName": "idle"})
    status, text, _ = operator.ask("/groups", headers=BROWSER)
    assert status == 200
    row = re.search(r'<a href="#group-sharing">.*</tr>', text)
    assert row
    assert re.findall(r'class="number">(\d+)<', row[0])[1:] == ["1", "0", "2", "1"]
    assert consumer in text
    assert HOSTILE not in text
    assert "/page/as/curl/ElasticqDrainConsumer" in text
    assert "/page/as/cli/" not in text
    assert "queues shared-1" in text
    assert "No group has" in page(operator, "/groups?filter=none")
    operator.act("ElasticqDeleteGroup", {"GroupName": "sharing"})


def test_a_region_that_is_none_is_told(operator: Operator) -> None:
    assert operator.ask("/groups?region=No", headers=BROWSER)[0] == 400
