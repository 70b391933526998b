"""The receives of the whole cluster that wait for messages, and the addresses of their clients.

They wait at the master, which knows by which process each came. That process knows the address of its client.
"""

import asyncio
from collections.abc import Iterable
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from elasticq.admin.source import AdminSource, Waiting
from elasticq.model.limits import LONG_RANGE
from elasticq.peers.questions import BODY_BYTES_MAX, Answer, NotAnswered

WAITING: Final = "waiting"
"""The kind of question that the master answers with the receives that wait, in the form ``list[Waiting]``."""
ADDRESSES: Final = "addresses"
"""The kind of question with the numbers of calls, which a process answers with the addresses of their clients."""
ASK_S: Final = 1.0
ASKED_MAX: Final = 1_000
_Number = Annotated[int, Meta(ge=0, le=LONG_RANGE[1])]
_Numbers = Annotated[list[_Number], Meta(max_length=ASKED_MAX)]


async def of_cluster(source: AdminSource, limit: int) -> list[Waiting]:
    """Return at most ``limit`` receives that wait anywhere in the cluster. Return none if there is no master."""
    status = source.status()
    if status.master is None or status.master == status.member_id:
        return await _of_master(source, limit)
    body = await _asked(source, status.master, WAITING, msgspec.json.encode(limit))
    return [] if body is None else msgspec.json.decode(body, type=list[Waiting])


async def answer_waiting(source: AdminSource, body: bytes) -> Answer:
    """Answer the question WAITING with as many receives as fit."""
    limit = msgspec.json.decode(body, type=Annotated[int, Meta(ge=0, le=ASKED_MAX)])
    return 200, fitting(await _of_master(source, limit))


def answer_addresses(source: AdminSource, body: bytes) -> Answer:
    """Answer the question ADDRESSES: one address for each number, empty if it is unknown."""
    numbers = msgspec.json.decode(body, type=_Numbers)
    return 200, msgspec.json.encode([source.address_of(number) for number in numbers])


def fitting(items: Iterable[object]) -> bytes:
    """Return the leading items as JSON, as many as fit into an answer over a link."""
    parts, size_bytes = [], 2
    for item in items:
        part = msgspec.json.encode(item)
        size_bytes += len(part) + 1
        if size_bytes > BODY_BYTES_MAX:
            break
        parts.append(part)
    return b"[" + b",".join(parts) + b"]"


async def _of_master(source: AdminSource, limit: int) -> list[Waiting]:
    """Return the receives that wait at this member, with the addresses that other processes know."""
    receives = source.waiting(limit)
    found, numbers = [each for each, _ in receives], [number for _, (_, number) in receives]
    passed_on = dict[str, list[int]]()
    for at, (_, (member_id, _)) in enumerate(receives):
        if member_id:
            passed_on.setdefault(member_id, []).append(at)
    questions = [msgspec.json.encode([numbers[at] for at in places]) for places in passed_on.values()]
    asked = zip(passed_on, questions, strict=True)
    answers = await asyncio.gather(*(_asked(source, member_id, ADDRESSES, body) for member_id, body in asked))
    for places, body in zip(passed_on.values(), answers, strict=True):
        if body is not None:
            for at, address in zip(places, msgspec.json.decode(body, type=list[str]), strict=False):
                found[at] = msgspec.structs.replace(found[at], address=address)
    return found


async def _asked(source: AdminSource, member_id: str, kind: str, body: bytes) -> bytes | None:
    """Return the body of a process's answer; None if it gives none."""
    try:
        status, answer = await source.ask(member_id, kind, body, ASK_S)
    except NotAnswered:
        return None
    return answer if status == 200 else None
