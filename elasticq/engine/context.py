"""What a handler is told besides state and call: the entry's time, the term, the rules in force."""

from elasticq.engine.mutations import Mutation
from elasticq.engine.state import Queue, State
from elasticq.model.commands import Call, DeclareQueue
from elasticq.model.errors import MissingParameter, SqsError
from elasticq.model.limits import STRICT, Limits
from elasticq.model.names import queue_path
from elasticq.model.results import Result

Outcome = tuple[Result | SqsError, list[Mutation]]
"""What a handler gives back; it raises an SqsError instead when the call is refused.

It gives one back where something must be written down before the client is told.
"""


class ExecutionContext:
    """now_ms: cluster time of the entry that the mutations will stand in; term: of the master that executes.

    template: what a queue is made from at its first use; None: a missing queue is an error.
    """

    __slots__ = ("limits", "now_ms", "region", "sixty_second_rules", "template", "term")

    def __init__(
        self,
        now_ms: int,
        term: int,
        region: str,
        sixty_second_rules: bool,
        template: DeclareQueue | None = None,
        limits: Limits = STRICT,
    ) -> None:
        self.now_ms = now_ms
        self.term = term
        self.region = region
        self.sixty_second_rules = sixty_second_rules
        self.template = template
        self.limits = limits


def named_queue(state: State, call: Call, queue_url: str | None) -> Queue:
    """The queue of a QueueUrl. Raises MissingParameter, QueueDoesNotExist."""
    if not queue_url:
        raise MissingParameter("The request must contain the parameter QueueUrl.")
    account, name = queue_path(queue_url, call.account)
    return state.queue(account, name)
