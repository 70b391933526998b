"""The page, as a browser without scripts would see it."""

import re

from tests.admin.operator import Operator
from tests.admin.page.browser import page


def test_each_page_answers_and_loads_nothing_from_elsewhere(operator: Operator) -> None:
    operator.act("CreateQueue", {"QueueName": "shown"})
    others = ("/topics", "/groups", "/consumers", "/cluster", "/events", "/definitions", "/api/docs")
    for path in ("/", "/queues", "/queues/000000000000/shown", *others):
        text = page(operator, path)
        loaded = re.findall(r'src="([^"]*)"', text) + re.findall(r'<link rel="[a-z]*" href="([^"]*)"', text)
        assert loaded
        for address in loaded:
            assert address.startswith("/static/")
            assert operator.ask(address)[0] == 200
        assert "<script>" not in text
        assert " style=" not in text
        assert " onclick=" not in text
