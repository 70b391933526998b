"""A browser without scripts, for tests of pages; make ui-test drives a real one."""

from urllib.parse import urlencode

from tests.admin.operator import Operator

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\u202e'\"&"
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def form(**fields: str) -> bytes:
    return urlencode(fields).encode()


def page(operator: Operator, path: str) -> str:
    status, text, headers = operator.ask(path, headers=BROWSER)
    assert status == 200, text
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    return text
