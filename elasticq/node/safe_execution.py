"""Judging one command: whatever is wrong with it is an answer to its caller alone, and changes nothing.

A handler reads the state and says what should change; what it says is encoded before any of it is applied. An
exception in there that is no SqsError is a defect in one command: it becomes an InternalFailure, its cause is told to
the shell (``Effects.failures``), and the member goes on. The same holds for one in ``apply`` of a command's own
mutations, once those that were applied before it are taken back. Everything else that raises in a node is a broken
invariant of its own state.
"""

from collections.abc import Callable
from typing import Final

from elasticq.engine.apply import apply_all
from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.matching import Unfinished
from elasticq.engine.ordering.contract import ContentsMissing
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.validation import validate
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model.commands import Call
from elasticq.model.errors import InternalFailure, RequestTooLarge, SqsError
from elasticq.model.limits import ENTRY_BYTES_MAX
from elasticq.model.results import EmptyResult
from elasticq.node.decision import Decision
from elasticq.node.outputs import Failure

_OF_MESSAGES: Final = frozenset(
    (m.MessageStored, m.MessagesReceived, m.MessagesRemoved, m.VisibilityChanged, m.InvocationRecorded)
)
"""Mutations that the engine makes of numbers of its own and of bounded requests, most of all that there are."""

Handler = Callable[[State, Call, ExecutionContext], Outcome]


class SafeExecutor:
    """Judges the commands of one node, whose shell is told of ``failures``."""

    __slots__ = ("_failures",)

    def __init__(self, failures: list[Failure]) -> None:
        self._failures = failures

    def decide(self, handler: Handler, state: State, call: Call, context: ExecutionContext) -> Decision:
        """What ``handler`` decides; the state is not changed. Raises SqsError, ContentsMissing, Unfinished."""
        try:
            result, mutations = handler(state, call, context)
            decision = Decision(result, mutations, m.encode(mutations) if mutations else b"")
            _check(decision)
        except (SqsError, ContentsMissing, Unfinished):
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
        """A decision of the member itself; an exception here ends the member, as no caller can be answered."""
        return Decision(EmptyResult(), mutations, m.encode(mutations))

    def apply(self, state: State, call: Call, mutations: list[m.Mutation], undo: Undo) -> None:
        """Apply ``mutations``, and put their undo into the empty ``undo``.

        Raises InternalFailure if they cannot be applied; the state is not changed then.
        """
        try:
            apply_all(state, mutations, undo)
        except Exception as cause:
            self.failed(type(call.command).__name__, cause)
        else:
            return
        roll_back(undo)  # here, as nobody could answer for a state that is half a command's
        raise InternalFailure

    def failed(self, action: str, cause: Exception) -> None:
        """Tell the shell of an exception that is answered with InternalFailure; ``action`` is the class that failed."""
        self._failures.append(Failure(action, cause))


def _check(decision: Decision) -> None:
    """Read a decision as the other members will. Raises an exception for what they would refuse.

    An entry that they refuse would cut their links to this master, again and again.
    """
    for mutation in decision.mutations:
        if type(mutation) not in _OF_MESSAGES:
            validate(m.decode(decision.payload), index=0, voters=0)
            return
