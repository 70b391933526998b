"""The report that members ask each other for."""

import msgspec

from elasticq.admin.attention.finding import FINDINGS_MAX, NOTE, Finding
from elasticq.admin.attention.report import Report, report
from elasticq.peers.questions import BODY_BYTES_MAX
from tests.admin.member import Member


def test_a_report_has_a_default_for_each_member_and_fits_a_link() -> None:
    assert msgspec.json.decode(b"{}", type=Report) == Report()
    member = Member()
    long = "x" * 80
    member.watch.findings = [
        Finding(
            kind="blocked_group", severity=NOTE, what=long * 4, cause=long * 4, since_ms=1, link=long * 3, command=long
        )
    ] * FINDINGS_MAX
    encoded = msgspec.json.encode(report(member))
    assert len(encoded) < BODY_BYTES_MAX
    assert msgspec.json.decode(encoded, type=Report) == report(member)
