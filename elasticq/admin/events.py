"""The events of the whole cluster: those of all members' logs, merged."""

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from elasticq.admin.consumers import fitting
from elasticq.admin.source import AdminSource, Event
from elasticq.peers.questions import Answer, NotAnswered

EVENTS: Final = "events"
"""The kind of question that a process answers with its latest events."""
ASK_S: Final = 1.0
SAME_MS: Final = 5_000
"""Members that log the same within this time log one event."""
SHOWN_MAX: Final = 500


def own(source: AdminSource) -> list[Event]:
    """Return the events of this process, the newest first."""
    return [replace(event, member=source.node_name) for event in source.events()]


def answer(source: AdminSource) -> Answer:
    """Answer the question EVENTS with as many events as fit."""
    return 200, fitting(own(source))


async def of_cluster(source: AdminSource) -> list[Event]:
    """Return the latest events of all members that answer, the newest first."""
    status = source.status()
    others = [each.id for each in status.members if each.is_linked and each.id != status.member_id]
    answers = await asyncio.gather(*(_of(source, other) for other in others))
    return merged([own(source), *answers])


def merged(members: Iterable[list[Event]]) -> list[Event]:
    """Return at most SHOWN_MAX events of several members, the newest first.

    If several members logged the same at nearly the same time, it is one event with the names of all of them.
    """
    found: list[Event] = []
    same: dict[tuple[str, str], int] = {}
    for event in sorted((event for events in members for event in events), key=_time_ms, reverse=True):
        key = event.event, event.text
        at = same.get(key)
        if at is not None and found[at].time_ms - event.time_ms <= SAME_MS and event.member not in found[at].member:
            names = sorted({*found[at].member.split(", "), event.member})
            found[at] = replace(found[at], member=", ".join(names))
            continue
        if len(found) == SHOWN_MAX:
            break
        same[key] = len(found)
        found.append(event)
    return found


async def _of(source: AdminSource, member_id: str) -> list[Event]:
    try:
        status, body = await source.ask(member_id, EVENTS, b"", ASK_S)
        return msgspec.json.decode(body, type=list[Event]) if status == 200 else []
    except (NotAnswered, msgspec.DecodeError):
        return []


def _time_ms(event: Event) -> int:
    return event.time_ms
