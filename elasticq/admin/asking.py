"""Questions of one member to another for an operator: the page /cluster, history, and orders for the master.

The other member answers as its own admin port would, and this member passes the answer on unchanged.
"""

import asyncio
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from elasticq.admin import consumers, events
from elasticq.admin.attention.report import report
from elasticq.admin.attention.survey import REPORT
from elasticq.admin.cluster import document
from elasticq.admin.history import WINDOWS_S, Key, Series
from elasticq.admin.orders import BadOrder, read_order
from elasticq.admin.source import AdminSource
from elasticq.model.commands import QueueName
from elasticq.node.orders import OrderDone
from elasticq.node.proxy import PROXY
from elasticq.node.settings import NodeStatus
from elasticq.peers.questions import Answer, NotAnswered
from elasticq.runtime.runtime import RuntimeStopped

CLUSTER: Final = "cluster"
ORDER: Final = "order"
HISTORY: Final = "history"
RATES: Final = "rates"
HISTORY_S: Final = 1.0
CLUSTER_S: Final = 5.0
ORDER_S: Final = 60.0
MARGIN_S: Final = 2.0
"""The extra time that a member waits for the master's answer to an order, beyond ORDER_S."""
NO_ANSWER: Final = 502


async def answer(source: AdminSource, kind: str, body: bytes) -> Answer:
    """Answer a question that another member asks."""
    if kind == CLUSTER:
        return json_answer(200, document(source.node_name, source.status()))
    if kind == ORDER:
        return await carry_out(source, body)
    if kind == HISTORY:
        return _history(source, body)
    if kind == RATES:
        return json_answer(200, [(key, *rate) for key, rate in source.history.rates().items()])
    if kind == REPORT:
        return json_answer(200, report(source))
    if kind == events.EVENTS:
        return events.answer(source)
    try:
        if kind == consumers.WAITING:
            return await consumers.answer_waiting(source, body)
        if kind == consumers.ADDRESSES:
            return consumers.answer_addresses(source, body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return json_answer(400, {"error": str(error)})
    return json_answer(404, {"error": f"{source.node_name} does not know the question {kind}"})


_HistoryOf = tuple[
    Annotated[str, Meta(max_length=45)], QueueName, Annotated[int, Meta(ge=min(WINDOWS_S), le=max(WINDOWS_S))]
]
"""The owner and name of a queue (both empty for all queues) and the window in seconds."""


def _history(source: AdminSource, body: bytes) -> Answer:
    try:
        owner, queue, window_s = msgspec.json.decode(body, type=_HistoryOf)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return json_answer(400, {"error": str(error)})
    if window_s not in WINDOWS_S:
        return json_answer(400, {"error": f"{window_s} s is not the length of a chart"})
    return json_answer(200, source.history.series((owner, queue), window_s))


async def history_of(source: AdminSource, member_id: str, body: bytes) -> Series | None:
    """Return the history of another member; None if it does not answer."""
    try:
        status, body = await source.ask(member_id, HISTORY, body, HISTORY_S)
    except NotAnswered:
        return None
    return msgspec.json.decode(body, type=Series) if status == 200 else None


async def rates_of(source: AdminSource, member_id: str) -> list[tuple[Key, float, float, float]]:
    """Return the rates of the queues of another member; nothing if it does not answer."""
    try:
        status, body = await source.ask(member_id, RATES, b"", HISTORY_S)
    except NotAnswered:
        return []
    return msgspec.json.decode(body, type=list[tuple[Key, float, float, float]]) if status == 200 else []


async def page_of(source: AdminSource, member: str) -> Answer:
    """Return the page /cluster of the member with this id, or of the only member with this name."""
    status = source.status()
    found = [each for each in status.members if each.id == member] or [
        each for each in status.members if each.name == member
    ]
    if len(found) != 1:
        trouble = f"{len(found)} members named {member}: give the id of one" if found else f"no member {member}"
        return json_answer(404, {"error": f"{source.node_name} knows {trouble}"})
    if found[0].id == status.member_id:
        return await answer(source, CLUSTER, b"")
    return await _ask(source, found[0].id, f"{found[0].name} ({found[0].id})", CLUSTER, b"", CLUSTER_S)


async def order(source: AdminSource, body: bytes) -> Answer:
    """Execute an order here, or at the master that this member follows. A proxy refuses it.

    A proxy's admin port belongs to an application, and its users need not be operators of the cluster.
    """
    try:
        read_order(body)
    except BadOrder as error:
        return json_answer(400, {"error": str(error)})
    status = source.status()
    if status.role == PROXY or status.master in (None, status.member_id):
        return await carry_out(source, body)
    return await _ask(source, status.master, f"the master {_name(status)}", ORDER, body, ORDER_S + MARGIN_S)


async def carry_out(source: AdminSource, body: bytes) -> Answer:
    """Execute an order at this member's node, which refuses it unless it is the master."""
    try:
        outcome = await asyncio.wait_for(source.order(read_order(body)), ORDER_S)
    except BadOrder as error:
        return json_answer(400, {"error": str(error)})
    except RuntimeStopped:
        return json_answer(503, {"error": "the server is stopping"})
    except TimeoutError:
        return json_answer(504, {"error": f"no answer within {ORDER_S:g} s: it may still happen, see cluster status"})
    if isinstance(outcome, OrderDone):
        return json_answer(200, {"done": outcome.text})
    return json_answer(409, {"refused": outcome.reason})


def json_answer(status: int, content: object) -> Answer:
    """Return an answer with this status and content."""
    return status, msgspec.json.encode(content)


async def _ask(
    source: AdminSource, member_id: str | None, who: str, kind: str, body: bytes, timeout_s: float
) -> Answer:
    assert member_id is not None
    try:
        return await source.ask(member_id, kind, body, timeout_s)
    except NotAnswered as error:
        doubt = "" if kind == CLUSTER else ": the order may have been done, see cluster status"
        text = f"{source.node_name} got no answer from {who}: {error}{doubt}"
        return json_answer(NO_ANSWER, {"error": text})


def _name(status: NodeStatus) -> str:
    return next((each.name for each in status.members if each.id == status.master), status.master or "")
