"""Rules for leases, in addition to those of every queue: each id has one answer for ever, and a lease ends as a whole.

lease_differs    one id was answered with two lists of handles, or one handle under two ids
lease_unsealed   messages under an id that was first asked after an empty answer had sealed the lease
lease_revived    messages, or a successful change, after LeaseExpired, a commit or a release
lease_short      LeaseExpired although the lease was certainly active

The rules for all messages hold, too. A message of an active lease that another client got is early. One that is
received after a commit is resurrected. One that a commit removed although no answer contained it is lost.
"""

from collections import defaultdict
from collections.abc import Iterator

from elasticq.checks.history import LeaseChange, Receive
from elasticq.checks.queue_history import Finding, LeaseHistory, QueueHistory

LEASE_DIFFERS, LEASE_UNSEALED = "lease_differs", "lease_unsealed"
LEASE_REVIVED, LEASE_SHORT = "lease_revived", "lease_short"


def check(queue_history: QueueHistory) -> Iterator[Finding]:
    for (_, lease), lease_history in queue_history.leases.items():
        yield from _differs(lease_history)
        yield from _unsealed(lease_history)
        yield from _revived(lease, lease_history)
        yield from _short(queue_history, lease, lease_history)


def _answered(lease_history: LeaseHistory) -> list[Receive]:
    return [receive for receive in lease_history.receives if receive.outcome == "ok"]


def _differs(lease_history: LeaseHistory) -> Iterator[Finding]:
    first: dict[str, Receive] = {}
    ids: dict[str, str] = {}
    for receive in _answered(lease_history):
        one = first.setdefault(receive.attempt_id, receive)
        handles = [message.receipt_handle for message in receive.messages]
        if handles != [message.receipt_handle for message in one.messages]:
            evidence = f"{receive.attempt_id}: {_describe(one)}, then {_describe(receive)}"
            yield Finding(LEASE_DIFFERS, evidence, receive.complete_us or 0)
        for handle in handles:
            if (before := ids.setdefault(handle, receive.attempt_id)) != receive.attempt_id:
                evidence = f"{handle} under {before} and {receive.attempt_id}"
                yield Finding(LEASE_DIFFERS, evidence, receive.complete_us or 0)


def _describe(receive: Receive) -> str:
    got = ", ".join(message.message_id for message in receive.messages) or "nothing"
    return f"{receive.client} [{receive.invoke_us}..{receive.complete_us} us] {got}"


def _unsealed(lease_history: LeaseHistory) -> list[Finding]:
    sealed_us = min((each.complete_us or 0 for each in _answered(lease_history) if not each.messages), default=None)
    if sealed_us is None:
        return []
    asked_us: defaultdict[str, int] = defaultdict(lambda: 1 << 62)
    for receive in lease_history.receives:
        asked_us[receive.attempt_id] = min(asked_us[receive.attempt_id], receive.invoke_us)
    return [
        Finding(LEASE_UNSEALED, f"sealed by {sealed_us} us, then {_describe(receive)}", receive.complete_us or 0)
        for receive in lease_history.receives
        if receive.messages and asked_us[receive.attempt_id] > sealed_us
    ]


def _revived(lease: str, lease_history: LeaseHistory) -> list[Finding]:
    over: list[Receive | LeaseChange] = [receive for receive in lease_history.receives if receive.is_expired]
    # A LeaseExpired for a whole batch may have been about another lease.
    over += [
        change for change in lease_history.changes if _ends(change) or (change.is_expired and change.lease == lease)
    ]
    over_us = min((each.complete_us for each in over if each.complete_us is not None), default=None)
    if over_us is None:
        return []
    late: list[Receive | LeaseChange] = [receive for receive in lease_history.receives if receive.messages]
    late += [
        each
        for each in lease_history.changes
        if each.action != "commit" and each.lease == lease and each.outcome == "ok"
    ]
    return [
        Finding(LEASE_REVIVED, f"{lease}: over by {over_us} us, then {each}", each.complete_us or 0)
        for each in late
        if each.invoke_us > over_us
    ]


def _ends(change: LeaseChange) -> bool:
    return change.action in ("commit", "give_back") and change.outcome == "ok"


def _short(queue_history: QueueHistory, lease: str, lease_history: LeaseHistory) -> list[Finding]:
    """Return the findings about LeaseExpired that came too early.

    A commit or release may have its effect even without an ok answer.
    """
    ends_us = min((each.invoke_us for each in lease_history.changes if each.action != "renew"), default=1 << 62)
    return [
        Finding(LEASE_SHORT, f"{lease}: LeaseExpired to {_describe(receive)}", receive.complete_us)
        for receive in lease_history.receives
        if receive.is_expired and receive.complete_us is not None
        if receive.complete_us
        < min(
            ends_us,
            lease_history.deadline_us(receive.complete_us)
            - queue_history.early_us(lease_history.began_us, receive.complete_us),
        )
    ]
