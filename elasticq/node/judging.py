"""Judging one command: whatever is wrong with it is an answer to its caller alone, and changes nothing.

A handler reads the state and says what should change; what it says is encoded before any of it is applied. An
exception in there that is no SqsError is a fault of ours, in one command: it becomes an InternalFailure, its cause
is told to the shell (``Effects.failures``), and the member goes on. So does one in ``apply`` of a command's own
mutations, once those that were applied before it are taken back. Everything else that raises in a node is a broken
invariant of its own state.
"""

from collections.abc import Callable

from msgspec import Struct

from elasticq.engine import mutations as m
from elasticq.engine.apply import Undo, apply_all, roll_back
from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.ordering.contract import ContentsMissing
from elasticq.engine.state import State
from elasticq.model.commands import Call
from elasticq.model.errors import InternalFailure, RequestTooLarge, SqsError
from elasticq.model.limits import ENTRY_BYTES_MAX
from elasticq.model.results import EmptyResult, Result
from elasticq.node.effects import Failure

Handler = Callable[[State, Call, ExecutionContext], Outcome]


class Decision(Struct, gc=False):
    """What was decided, and what of it stands in the log: ``payload`` is ``mutations`` encoded, if there are any."""

    result: Result | SqsError
    mutations: list[m.Mutation]
    payload: bytes = b""


class Judge:
    """Judges for one node; ``failures`` are told to its shell."""

    __slots__ = ("_failures",)

    def __init__(self, failures: list[Failure]) -> None:
        self._failures = failures

    def decide(self, handler: Handler, state: State, call: Call, context: ExecutionContext) -> Decision:
        """What ``handler`` decides. Raises SqsError, ContentsMissing; the state is as it was."""
        try:
            result, mutations = handler(state, call, context)
            decision = Decision(result, mutations, m.encode(mutations) if mutations else b"")
        except (SqsError, ContentsMissing):
            raise
        except Exception as cause:
            self.failed(type(call.command).__name__, cause)
        else:
            if len(decision.payload) > ENTRY_BYTES_MAX:
                raise RequestTooLarge(
                    f"This would change {len(decision.payload)} bytes at once, at most {ENTRY_BYTES_MAX} are possible."
                )
            return decision
        raise InternalFailure  # here, so that it does not carry its cause, and with it the request, along

    def own(self, mutations: list[m.Mutation]) -> Decision:
        """What the member decided by itself. Nobody is to be told that it cannot be encoded: that is no answer."""
        return Decision(EmptyResult(), mutations, m.encode(mutations))

    def apply(self, state: State, call: Call, mutations: list[m.Mutation], undo: Undo) -> None:
        """Notes in ``undo``, which is empty, how to take them back. Raises InternalFailure; the state is as it was."""
        try:
            apply_all(state, mutations, undo)
        except Exception as cause:
            self.failed(type(call.command).__name__, cause)
        else:
            return
        roll_back(undo)  # here, as nobody could answer for a state that is half a command's
        raise InternalFailure

    def failed(self, action: str, cause: Exception) -> None:
        """For the shell: what somebody is answered with an InternalFailure for."""
        self._failures.append(Failure(action, cause))
