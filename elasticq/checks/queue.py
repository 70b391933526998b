"""Judges a history of queue operations: lost, duplicated, resurrected, early, unexpected.

lost         an acknowledged send that nobody received by the end of the drain and
             nobody may have deleted; or one that was received before the drain, was
             never deleted, and did not come again in it
duplicated   one message of one send operation (one GUID, all attempts) under two MessageIds
resurrected  handed out by a receive that was invoked after an acknowledged delete with
             the live handle had completed
early        in two hands at once: handed out again although the first hand-out's
             visibility timeout cannot have passed
unexpected   a body that nobody sent to this queue, or another body under a MessageId

Only what is certain is a finding. Clients know intervals, not moments: a take
happened somewhere between invoke and completion, so two hand-outs A and B
overlap for certain only if each completed before the other's earliest possible
deadline. ``clock_bound_ms`` is what cluster time may jump ahead of true time
where all members restarted at once (they then go by their wall clocks).
"""

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from elasticq.checks.history import ChangeVisibility, Delete, Event, HandedOut, Receive, Send, SentMessage

LOST, DUPLICATED, RESURRECTED, EARLY, UNEXPECTED = "lost", "duplicated", "resurrected", "early", "unexpected"


class Finding(Struct, frozen=True):
    """What went wrong and what shows it."""

    name: str
    evidence: str
    at_us: int


class HandOut(Struct, frozen=True):
    """A message in the answer of the receive ``taken_by``."""

    taken_by: Receive
    message: HandedOut


class _History:
    """The events, indexed the way the rules ask for them."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.sends: list[Send] = []
        self.sent: dict[str, tuple[Send, SentMessage]] = {}
        self.hand_outs: defaultdict[str, list[HandOut]] = defaultdict(list)  # by body
        self.deletes: defaultdict[str, list[Delete]] = defaultdict(list)  # by message id
        self.changes: defaultdict[str, list[ChangeVisibility]] = defaultdict(list)  # by handle
        for event in events:
            self._add(event)

    def _add(self, event: Event) -> None:
        match event:
            case Send():
                self.sends.append(event)
                self.sent.update((message.body, (event, message)) for message in event.messages)
            case Receive():
                for message in event.messages:
                    self.hand_outs[message.body].append(HandOut(event, message))
            case Delete():
                if event.outcome != "fail":
                    self.deletes[event.message_id].append(event)
            case ChangeVisibility():
                if event.outcome != "fail":
                    self.changes[event.receipt_handle].append(event)


def check(events: Iterable[Event], *, clock_bound_ms: int = 0, drain_us: int | None = None) -> list[Finding]:
    """All findings, in order of time.

    drain_us: from when on consumers took and deleted everything, until nothing came any more;
    None: the history was not drained, and nothing can be called lost.
    """
    history = _History(events)
    bound_us = clock_bound_ms * 1_000
    findings = _unexpected(history) + _duplicated(history)
    for hand_outs in history.hand_outs.values():
        findings += _early(history, hand_outs, bound_us)
        findings += _resurrected(history, hand_outs, bound_us)
    if drain_us is not None:
        findings += _lost(history, drain_us)
    return sorted(findings, key=lambda finding: (finding.at_us, finding.name, finding.evidence))


def _completed_us(hand_out: HandOut) -> int:
    complete_us = hand_out.taken_by.complete_us
    assert complete_us is not None, "a receive with messages has completed"
    return complete_us


def _tell(hand_out: HandOut) -> str:
    receive = hand_out.taken_by
    return (
        f"{receive.client} [{receive.invoke_us}..{receive.complete_us} us, visibility {receive.visibility_ms} ms] "
        f"got {hand_out.message.message_id}"
    )


def _unexpected(history: _History) -> list[Finding]:
    findings = []
    body_of: dict[tuple[str, str], str] = {}
    for body, (send, message) in history.sent.items():
        for message_id in message.message_ids:
            body_of.setdefault((send.queue, message_id), body)
    for body, hand_outs in history.hand_outs.items():
        known = history.sent.get(body)
        for hand_out in hand_outs:
            queue, message_id = hand_out.taken_by.queue, hand_out.message.message_id
            if known is None or known[0].queue != queue:
                evidence = f"{_tell(hand_out)}: nobody sent {body[:60]!r} to {queue}"
            elif body_of.setdefault((queue, message_id), body) != body:
                evidence = f"{_tell(hand_out)}: body {body[:60]!r}, before {body_of[queue, message_id][:60]!r}"
            else:
                continue
            findings.append(Finding(UNEXPECTED, evidence, _completed_us(hand_out)))
    return findings


def _duplicated(history: _History) -> list[Finding]:
    findings = []
    for send in history.sends:
        for message in send.messages:
            hand_outs = history.hand_outs.get(message.body, [])
            seen = dict.fromkeys([*message.message_ids, *(hand_out.message.message_id for hand_out in hand_outs)])
            if len(seen) > 1:
                evidence = f"send {send.guid} of {send.client}: {message.body[:60]!r} is {' and '.join(seen)}"
                findings.append(Finding(DUPLICATED, evidence, send.invoke_us))
    return findings


def _hidden_until_us(history: _History, hand_out: HandOut, by_us: int, bound_us: int) -> int:
    """The earliest moment at which the message may be visible again, as far as ``by_us`` can tell.

    A change that completed while the message was certainly in flight is the new truth. One that may or
    may not have had its effect (its outcome is unknown, or it may have come after the deadline, where it
    succeeds and does nothing) counts only where it brings the deadline nearer. A change of unknown
    outcome may take effect after a later one, so then the nearest of all counts.
    """
    until_us = hand_out.taken_by.invoke_us + hand_out.taken_by.visibility_ms * 1_000 - bound_us
    handle = hand_out.message.receipt_handle
    changes = [change for change in history.changes.get(handle, ()) if change.invoke_us <= by_us]
    changes.sort(key=lambda change: change.invoke_us)
    certain = all(change.outcome == "ok" for change in changes)
    for change in changes:
        changed_us = change.invoke_us + change.visibility_ms * 1_000 - bound_us
        took_effect = certain and change.complete_us is not None and change.complete_us < min(by_us, until_us)
        until_us = changed_us if took_effect else min(until_us, changed_us)
    return until_us


def _overlap(history: _History, one: HandOut, other: HandOut, bound_us: int) -> bool:
    one_us, other_us = _completed_us(one), _completed_us(other)
    return other_us < _hidden_until_us(history, one, other_us, bound_us) and one_us < _hidden_until_us(
        history, other, one_us, bound_us
    )


def _early(history: _History, hand_outs: list[HandOut], bound_us: int) -> list[Finding]:
    findings = []
    ordered = sorted(hand_outs, key=_completed_us)
    for at, other in enumerate(ordered):
        for one in ordered[:at]:
            same_message = one.message.message_id == other.message.message_id
            if same_message and one.taken_by is not other.taken_by and _overlap(history, one, other, bound_us):
                findings.append(Finding(EARLY, f"{_tell(one)}, then {_tell(other)}", _completed_us(other)))
    return findings


def _is_certain(history: _History, delete: Delete, hand_outs: list[HandOut], bound_us: int) -> bool:
    """The delete used a live handle: an older one may succeed and leave the message there (AWS)."""
    if delete.outcome != "ok" or delete.complete_us is None:
        return False
    return any(
        hand_out.message.receipt_handle == delete.receipt_handle
        and delete.complete_us < _hidden_until_us(history, hand_out, delete.complete_us, bound_us)
        for hand_out in hand_outs
    )


def _resurrected(history: _History, hand_outs: list[HandOut], bound_us: int) -> list[Finding]:
    findings = []
    for message_id in dict.fromkeys(hand_out.message.message_id for hand_out in hand_outs):
        same = [hand_out for hand_out in hand_outs if hand_out.message.message_id == message_id]
        deletes = history.deletes.get(message_id, [])
        certain = [delete for delete in deletes if _is_certain(history, delete, same, bound_us)]
        if not certain:
            continue
        first = min(certain, key=lambda delete: delete.complete_us or 0)
        deleted_us = first.complete_us or 0
        for hand_out in same:
            if hand_out.taken_by.invoke_us > deleted_us:
                evidence = f"{first.client} deleted {message_id} by {deleted_us} us, then {_tell(hand_out)}"
                findings.append(Finding(RESURRECTED, evidence, _completed_us(hand_out)))
    return findings


def _lost(history: _History, drain_us: int) -> list[Finding]:
    findings = []
    for body, (send, message) in history.sent.items():
        hand_outs = history.hand_outs.get(body, [])
        is_acknowledged = send.outcome == "ok" and bool(message.message_ids)
        if not is_acknowledged and not hand_outs:
            continue
        ids = [*message.message_ids, *(hand_out.message.message_id for hand_out in hand_outs)]
        if any(history.deletes.get(message_id) for message_id in ids):
            continue
        if any(_completed_us(hand_out) >= drain_us for hand_out in hand_outs):
            continue
        evidence = f"send {send.guid} of {send.client} at {send.invoke_us} us, {ids[0]}: {_last_seen(hand_outs)}"
        findings.append(Finding(LOST, evidence, send.invoke_us))
    return findings


def _last_seen(hand_outs: list[HandOut]) -> str:
    if not hand_outs:
        return "never received"
    return f"not deleted and not seen again after {_tell(max(hand_outs, key=_completed_us))}"
