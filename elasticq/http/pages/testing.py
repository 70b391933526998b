"""The pages of ``testing.enabled``: clock, reset and faults, for tests in any language.

    GET, POST /_elasticq/clock    POST {"advance": 30} moves cluster time by seconds; both answer {"time": seconds}
    POST /_elasticq/reset         {"account": "000000000000"} deletes the queues of this account, "*" those of all
                                  accounts, {} those of the caller's; answers {"deleted": number of queues}
    POST /moto-api/reset          deletes the queues of all accounts, with the answer of moto
    POST /_localstack/state/reset deletes the queues of all accounts, as LocalStack does
    GET, POST, DELETE /_elasticq/faults   see faults.py; DELETE with {"id": 1} ends one fault, with {} all faults

If testing is not enabled, they answer 403 with the reason. With auth = strict
they require a signature, and an account can reach only its own queues.
"""

from collections.abc import Callable
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from elasticq.http.admission.caller import invocation
from elasticq.http.context import STOPPING_TEXT, ServerContext
from elasticq.http.faults import Fault, Order
from elasticq.http.pages.access import admit
from elasticq.http.pages.asked import Asked
from elasticq.model.commands import Call, Command
from elasticq.model.errors import AccessDenied, InvalidParameterValue, SqsError
from elasticq.model.extensions import AdvanceClock, DeleteAllQueues
from elasticq.model.limits import CLOCK_ADVANCE_MS_MAX, LONG_RANGE
from elasticq.model.names import account_of
from elasticq.model.results import ClockResult, QueuesDeletedResult, Result
from elasticq.runtime.runtime import RuntimeStopped
from elasticq.runtime.ticket import Awaited

METHODS: Final = {
    "/_elasticq/clock": ("GET", "POST"),
    "/_elasticq/reset": ("POST",),
    "/moto-api/reset": ("POST",),
    "/_localstack/state/reset": ("POST",),
    "/_elasticq/faults": ("GET", "POST", "DELETE"),
}
CLOSED: Final = "testing.enabled is off, so this server refuses the pages for tests."
EVERYBODY: Final = "*"

T = TypeVar("T")


class _Clock(Struct, forbid_unknown_fields=True):
    advance: Annotated[float, Meta(ge=0, le=CLOCK_ADVANCE_MS_MAX / 1_000)]


class _Reset(Struct, forbid_unknown_fields=True):
    account: Annotated[str, Meta(pattern=r"\A([0-9]{12}|\*)\Z")] | None = None


class _Removal(Struct, forbid_unknown_fields=True):
    id: Annotated[int, Meta(ge=0, le=LONG_RANGE[1])] | None = None


class _FaultRow(Struct):
    id: int
    struck: int
    spent: bool
    order: Order


async def serve(context: ServerContext, asked: Asked) -> web.Response:
    """Return the answer of a testing page, as plain JSON."""
    method, path = asked.request.method, asked.path
    try:
        caller = admit(context, asked)
        if not context.has_testing:
            raise AccessDenied(CLOSED)
        invocation_key = invocation(*caller, path, asked.head.invocation_id, asked.body)
        status, answer = await TestingPages(context).answer(method, path, asked.body, caller, invocation_key)
    except SqsError as error:
        status, answer = error.status, {"code": error.code, "message": error.message}
    except RuntimeStopped:
        status, answer = 503, {"code": "ServiceUnavailable", "message": STOPPING_TEXT}
    return web.Response(status=status, body=msgspec.json.encode(answer), content_type="application/json")


class TestingPages:
    """The handlers of the testing pages. Each answers a status and an object for JSON."""

    __test__ = False  # for pytest

    def __init__(self, context: ServerContext) -> None:
        self._context = context

    async def answer(
        self, method: str, path: str, body: bytes, caller: tuple[str, str], invocation: bytes
    ) -> tuple[int, object]:
        """Return status and object. Raise the SqsError that the client gets.

        caller: principal and owner. invocation: the key that all attempts of one SDK call share; empty for none.
        """
        match path:
            case "/_elasticq/clock":
                return 200, await self._clock(method, body, caller, invocation)
            case "/_elasticq/faults":
                return 200, self._faults(method, body, caller)
            case "/_elasticq/reset":
                account = _read(body, _Reset).account or account_of(caller[1])
                return 200, {"deleted": await self._reset(account, caller)}
        await self._reset(EVERYBODY, caller)
        return 200, {"status": "ok"}

    async def _clock(
        self, method: str, body: bytes, caller: tuple[str, str], invocation: bytes
    ) -> dict[Literal["time"], float]:
        if method == "GET":
            return {"time": self._context.runtime.time_ms() / 1_000}
        advance_ms = round(_read(body, _Clock).advance * 1_000)
        result = await self._execute(AdvanceClock(advance_ms), caller, invocation)
        assert isinstance(result, ClockResult)
        return {"time": result.time_ms / 1_000}

    async def _reset(self, account: str, caller: tuple[str, str]) -> int:
        own = account_of(caller[1])
        if account != own and self._is_strict:
            if account != EVERYBODY:
                raise AccessDenied("An account can reset its own queues only.")
            account = own
        deleted, is_more = 0, True
        while is_more:
            command = DeleteAllQueues(None if account == EVERYBODY else account)
            result = await self._execute(command, caller)
            assert isinstance(result, QueuesDeletedResult)
            deleted, is_more = deleted + result.count, result.is_more
        if account == EVERYBODY:
            self._context.faults.remove()
        return deleted

    @property
    def _is_strict(self) -> bool:
        return self._context.authenticator is not None and self._context.authenticator.is_strict

    async def _execute(self, command: Command, caller: tuple[str, str], invocation: bytes = b"") -> Result:
        principal, account = caller
        ticket = Awaited()
        self._context.runtime.submit(Call(command, principal, account, "", invocation), ticket)
        outcome = await ticket.outcome
        if isinstance(outcome, SqsError):
            raise outcome
        return outcome

    def _faults(self, method: str, body: bytes, caller: tuple[str, str]) -> object:
        faults = self._context.faults
        if method == "GET":
            return {"faults": [_row(fault) for fault in faults.faults.values()]}
        if method == "DELETE":
            return {"faults": [_row(fault) for fault in faults.remove(_read(body, _Removal).id)]}
        order = _read(body, Order)
        if order.action != "*" and order.action not in self._context.meter.counts:
            raise InvalidParameterValue(f"{order.action} is not an action of SQS.")
        if self._is_strict:
            order = msgspec.structs.replace(order, account=account_of(caller[1]))
        try:
            return _row(faults.add(order))
        except ValueError as error:
            raise InvalidParameterValue(str(error)) from error


def _row(fault: Fault) -> _FaultRow:
    return _FaultRow(fault.id, fault.struck, fault.is_spent, fault.order)


def _read(body: bytes, kind: Callable[..., T]) -> T:
    """Return a body decoded as a ``kind``; an empty body counts as ``{}``. Raise InvalidParameterValue."""
    try:
        return msgspec.json.decode(body or b"{}", type=kind)  # type: ignore[no-any-return]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidParameterValue(str(error)) from error
