"""The order of findings, and their bound."""

from elasticq.admin.attention.finding import CRITICAL, FINDINGS_MAX, NOTE, WARNING, Finding, Severity, gravest


def finding(severity: Severity, since_ms: int) -> Finding:
    return Finding(kind="k", severity=severity, what="It is so.", cause="Because.", since_ms=since_ms)


def test_the_gravest_come_first_and_the_newest_of_these() -> None:
    found = [finding(NOTE, 9), finding(CRITICAL, 1), finding(WARNING, 5), finding(CRITICAL, 2)]
    assert [(each.severity, each.since_ms) for each in gravest(found)] == [
        (CRITICAL, 2),
        (CRITICAL, 1),
        (WARNING, 5),
        (NOTE, 9),
    ]


def test_only_some_are_kept() -> None:
    found = [finding(NOTE, at) for at in range(FINDINGS_MAX)] + [finding(CRITICAL, 0)]
    assert len(gravest(found)) == FINDINGS_MAX
    assert gravest(found)[0].severity == CRITICAL
