"""Backups of a running member: the state at one index, as a file that an operator's program fetches in parts.

    POST /backups {}            ──> 200 {"id", "index", "term", "member", "size_bytes"}, or 202 {"index"} before
    POST /backups {"index": 7}  ──> asks again for a file that is being made
    GET /backups/ID?offset=0    ──> at most PART_BYTES of the file

The file holds all that was acknowledged in the whole cluster before the first request. It is released when no program
has read it for KEPT_S.
"""

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from elasticq.admin import asking
from elasticq.admin.source import AdminSource
from elasticq.node.proxy import PROXY
from elasticq.peers.questions import Answer
from elasticq.peers.transfer import Snapshot
from elasticq.storage.errors import DataError

PART_BYTES: Final = 1_048_576
WAIT_S: Final = 20.0
"""A request for a file that is being made is answered after this time; the program then asks again."""
KEPT_S: Final = 60.0
MAKING_MAX: Final = 4
"""The number of files that may be made or held for programs at the same time."""


class _Request(Struct, forbid_unknown_fields=True):
    index: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None


class Backups:
    """The files of one member's backups."""

    def __init__(self, source: AdminSource) -> None:
        self._source = source
        self._making: dict[int, asyncio.Task[Snapshot]] = {}
        self._held: dict[str, Snapshot] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def add_to(self, app: web.Application) -> None:
        app.router.add_post("/backups", self._begin)
        app.router.add_get("/backups/{id}", self._part)
        app.on_cleanup.append(self._end)

    async def _begin(self, request: web.Request) -> web.Response:
        if "Origin" in request.headers:
            return _reply(asking.json_answer(403, {"error": "web pages cannot fetch backups"}))
        if request.content_type != "application/json":
            return _reply(asking.json_answer(415, {"error": "the content type of the request is application/json"}))
        try:
            wanted = msgspec.json.decode(await request.read(), type=_Request).index
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return _reply(asking.json_answer(400, {"error": str(error)}))
        return _reply(await self._begun(wanted))

    async def _begun(self, wanted: int | None) -> Answer:
        status = self._source.status()
        if status.role == PROXY:
            return asking.json_answer(409, {"error": "a proxy stores nothing: ask a member"})
        if wanted is None:
            wanted = await self._committed()
        if wanted is None:
            reason = status.reason or "wait for an election"
            return asking.json_answer(503, {"error": f"no master, so acknowledged messages could be missing: {reason}"})
        held = next((each for each in self._held.values() if each.index >= wanted), None)
        if held is not None:
            self._touch(held.id)
            return self._described(held)
        if wanted not in self._making and len(self._making) + len(self._held) >= MAKING_MAX:
            return asking.json_answer(503, {"error": f"{MAKING_MAX} backups are being fetched already"})
        task = self._making.get(wanted)
        if task is None:
            task = self._making[wanted] = asyncio.create_task(self._source.open_snapshot(wanted))
            task.add_done_callback(partial(self._made, wanted))
        await asyncio.wait({task}, timeout=WAIT_S)
        if not task.done():
            return asking.json_answer(202, {"index": wanted})
        try:
            return self._described(task.result())
        except DataError as error:
            return asking.json_answer(503, {"error": f"no backup can be made now: {error}"})

    def _described(self, snapshot: Snapshot) -> Answer:
        """Return the answer for a file that was made. The term is the newest that this member knows now."""
        status = self._source.status()
        return asking.json_answer(
            200,
            {
                "id": snapshot.id,
                "index": snapshot.index,
                "term": status.term,
                "member": status.member_id,
                "size_bytes": snapshot.size_bytes,
            },
        )

    async def _committed(self) -> int | None:
        """Return the master's commit index: all that is acknowledged now is at or below it. None without a master."""
        status = self._source.status()
        if status.master is None:
            return None
        code, body = await asking.page_of(self._source, status.master)
        page = msgspec.json.decode(body, type=dict[str, object])
        return int(str(page["commit"])) if code == 200 and page.get("role") == "master" else None

    def _made(self, wanted: int, task: asyncio.Task[Snapshot]) -> None:
        """Hold a file that was made. Release it at once if the same file is held already."""
        self._making.pop(wanted, None)
        if task.cancelled() or task.exception() is not None:
            return
        snapshot = task.result()
        if snapshot.id in self._held:
            self._source.release_snapshot(snapshot)
        self._held[snapshot.id] = snapshot
        self._touch(snapshot.id)

    def _touch(self, name: str) -> None:
        if name in self._timers:
            self._timers[name].cancel()
        self._timers[name] = asyncio.get_running_loop().call_later(KEPT_S, self._drop, name)

    def _drop(self, name: str) -> None:
        del self._timers[name]
        self._source.release_snapshot(self._held.pop(name))

    async def _part(self, request: web.Request) -> web.Response:
        """Return the part of a file that begins at an offset, empty at its end."""
        snapshot, offset = self._held.get(request.match_info["id"]), request.query.get("offset", "0")
        if snapshot is None:
            return _reply(asking.json_answer(404, {"error": "this member has no such backup, or no longer"}))
        if not (offset.isascii() and offset.isdigit() and len(offset) < 20):
            return _reply(asking.json_answer(400, {"error": "offset is a number of bytes"}))
        self._touch(snapshot.id)
        try:
            part = await asyncio.to_thread(_read, snapshot.path, int(offset))
        except FileNotFoundError:  # the storage was replaced meanwhile
            return _reply(asking.json_answer(404, {"error": "this member has removed the backup"}))
        return web.Response(body=part, content_type="application/octet-stream")

    async def _end(self, _: web.Application) -> None:
        for timer in self._timers.values():
            timer.cancel()
        for task in self._making.values():
            task.cancel()
        while self._held:
            self._source.release_snapshot(self._held.popitem()[1])


def _read(path: Path, offset: int) -> bytes:
    with path.open("rb") as file:
        return os.pread(file.fileno(), PART_BYTES, offset)


def _reply(answer: Answer) -> web.Response:
    return web.Response(status=answer[0], body=answer[1], content_type="application/json")
