"""Safe execution of one command: an error in it is an answer to its caller alone, and changes nothing.

A handler reads the state and returns a decision, which is encoded before any of it is applied. An exception other than
SqsError is a defect in one command. It becomes an InternalFailure, its cause goes to the shell (``Effects.failures``),
and the member continues.

The same holds for an exception in ``apply`` of a command's own mutations, after those applied before it are rolled
back. Any other exception in a node is a broken invariant of its state.
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
"""Mutations that the engine makes from its own numbers and from bounded requests. They are the most frequent ones."""

_encode: Final = m.encode  # faster: compiled code finds a name of its own module without a dict lookup

Handler = Callable[[State, Call, ExecutionContext], Outcome]


class SafeExecutor:
    """The execution of the commands of one node. Defects are added to ``failures`` for the shell."""

    def __init__(self, failures: list[Failure]) -> None:
        self._failures = failures

    def decide(self, handler: Handler, state: State, call: Call, context: ExecutionContext) -> Decision:
        """Return the decision of ``handler``, without changing the state.

        Raise SqsError, ContentsMissing or Unfinished.
        """
        try:
            result, mutations = handler(state, call, context)
            decision = Decision(result, mutations, _encode(mutations) if mutations else b"")
            for mutation in mutations:
                if type(mutation) not in _OF_MESSAGES:
                    _check(decision)
                    break
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
        # outside of the except clause, so that it keeps no reference to its cause and the request
        raise InternalFailure

    def own(self, mutations: list[m.Mutation]) -> Decision:
        """Return a decision of the member itself.

        An exception here ends the member, because it has no caller to answer.
        """
        return Decision(EmptyResult(), mutations, m.encode(mutations))

    def apply(self, state: State, call: Call, mutations: list[m.Mutation], undo: Undo) -> None:
        """Apply ``mutations``, and add their undo to the empty ``undo``.

        Raise InternalFailure if they cannot be applied. Then the state is not changed.
        """
        try:
            apply_all(state, mutations, undo)
        except Exception as cause:
            self.failed(type(call.command).__name__, cause)
        else:
            return
        roll_back(undo)  # an exception here ends the member, because a half-applied command leaves a wrong state
        raise InternalFailure

    def failed(self, action: str, cause: Exception) -> None:
        """Report an exception to the shell that its caller gets as InternalFailure.

        ``action`` names the class that failed.
        """
        self._failures.append(Failure(action, cause))


def _check(decision: Decision) -> None:
    """Validate a decision as the other members will. Raise an exception if they would refuse it.

    They would close their links to this master for such an entry, again and again.
    """
    validate(m.decode(decision.payload), index=0, voters=0)
