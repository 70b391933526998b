"""An answer to a call, as a Node gives it to its shell."""

from elasticq.model.errors import SqsError
from elasticq.model.results import Result
from elasticq.node.orders import OrderOutcome
from elasticq.node.outputs import Ticket


class Reply:
    """An answer that may leave. ``index`` is the log index that it depends on (for checkers)."""

    __slots__ = ("index", "outcome", "ticket")

    def __init__(self, ticket: Ticket, outcome: Result | SqsError | OrderOutcome, index: int) -> None:
        self.ticket = ticket
        self.outcome = outcome
        self.index = index
