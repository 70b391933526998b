"""What all pages share: who gets a page and who JSON, unknown paths, and the state that each page refreshes."""

import json
import re

import pytest

from tests.admin.operator import FORM, Operator
from tests.admin.page.browser import BROWSER, page


@pytest.mark.parametrize("path", ["/groups", "/cluster"])
def test_browsers_get_a_page_and_tools_get_json(operator: Operator, path: str) -> None:
    assert page(operator, path).startswith("<!doctype html>")
    for accept in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
        status, text, headers = operator.ask(path, headers=accept)
        assert (status, headers["Content-Type"].partition(";")[0]) == (200, "application/json")
        assert isinstance(json.loads(text), dict)
        assert headers["Vary"] == "Accept, HX-Request"
    assert operator.ask(path, headers={"HX-Request": "true"})[1].startswith("<!doctype html>")


def test_an_unknown_path_is_a_page_for_browsers_and_json_for_tools(operator: Operator) -> None:
    status, text, headers = operator.ask("/no/such/page", headers=BROWSER)
    assert (status, "There is no such page." in text, 'aria-label="Pages"' in text) == (404, True, True)
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    status, text, headers = operator.ask("/no/such/page")
    assert (status, json.loads(text)) == (404, {"error": "There is no such page."})
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    status, text, headers = operator.ask("/metrics", b"", FORM)
    assert (status, "POST is not allowed here." in text, "GET" in headers["Allow"]) == (405, True, True)


def test_each_page_refreshes_role_and_warnings(operator: Operator) -> None:
    text = page(operator, "/definitions")
    (asked,) = re.findall(r'id="who"[^>]* hx-get="([^"]*)"', text)
    status, again, _ = operator.ask(asked, headers={"HX-Request": "true"})
    assert (status, again.count('id="who"'), again.count('id="alarms"')) == (200, 1, 1)
    assert re.search(r">node1 · master<", re.sub(r"<span[^>]*></span>", "", again))
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", again)
