"""What a handler is told besides state and call: the entry's time, the term, the rules in force."""

import re
from collections.abc import Callable
from typing import Final

from elasticq.engine.matching import Matching
from elasticq.engine.state import Queue, State
from elasticq.engine.stored.identity import TERM_SHIFT
from elasticq.engine.stored.mutations import Mutation
from elasticq.engine.tally import Tally
from elasticq.model.commands import Call, DeclareQueue
from elasticq.model.errors import MissingParameter, SqsError
from elasticq.model.limits import STRICT, Limits
from elasticq.model.names import queue_path, region_of
from elasticq.model.results import Result

IGNORED_MAX: Final = 100
NUMBERS_FROM: Final = 1 << (TERM_SHIFT - 1)
"""Queue ids and sequences count from 1 in each term; numbers of topics and what belongs to them begin half-way."""
_IGNORED: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")

Outcome = tuple[Result | SqsError, list[Mutation]]
"""What a handler gives back; it raises an SqsError instead when the call is refused.

It gives one back where something must be written down before the client is told.
"""


Sign = Callable[[bytes, dict[str, str]], tuple[str, str]]
"""Called with the cluster's key and the members of an envelope that are signed; returns the signature, and the name of
the certificate that it is verified with. The same again for the same arguments.
"""


class ExecutionContext:
    """now_ms: cluster time of the entry that the mutations will stand in; term: of the master that executes.

    region: the node's own; has_one_region: queues are not told apart by the regions of calls, and ARNs not by theirs.
    sign: signs envelopes for queues; None: they are not signed.
    template: what a queue is made from at its first use; None: a missing queue is an error.
    tally: counts for the metrics, of what is executed with this.
    matching: what is known of a publish that is executed again; None: it is executed for the first time.
    ignored: names of queue attributes that calls gave and that were passed over, for the log: the first IGNORED_MAX.
    """

    __slots__ = (
        "_numbers",
        "has_one_region",
        "ignored",
        "limits",
        "matching",
        "now_ms",
        "region",
        "sign",
        "sixty_second_rules",
        "tally",
        "template",
        "term",
    )

    def __init__(
        self,
        now_ms: int,
        term: int,
        region: str,
        sixty_second_rules: bool,
        template: DeclareQueue | None = None,
        limits: Limits = STRICT,
        has_one_region: bool = False,
        sign: Sign | None = None,
    ) -> None:
        self.now_ms = now_ms
        self.term = term
        self.region = region
        self.sixty_second_rules = sixty_second_rules
        self.template = template
        self.limits = limits
        self.has_one_region = has_one_region
        self.sign = sign
        self.tally = Tally()
        self.matching: Matching | None = None
        self.ignored: set[str] = set()
        self._numbers = 0

    def next_number(self) -> int:
        """A number for a topic, a subscription or a publish, larger than all before it and never given twice.

        A term has one master, and this counts in it, so that nothing has to be written down. No queue has such an id.
        """
        self._numbers += 1
        return self.term << TERM_SHIFT | NUMBERS_FROM + self._numbers

    def ignore(self, name: str) -> None:
        """Note that a queue attribute was passed over. What could not be a name is no text for a log."""
        if len(self.ignored) < IGNORED_MAX and _IGNORED.fullmatch(name) is not None:
            self.ignored.add(name)

    def is_in_region(self, region: str, owner: str) -> bool:
        """Whether an ARN of this region may mean a queue in the region of ``owner``."""
        return self.has_one_region or region in ("", region_of(owner, self.region))


def named_queue(state: State, call: Call, queue_url: str | None) -> Queue:
    """The queue of a QueueUrl. Raises MissingParameter, QueueDoesNotExist."""
    if not queue_url:
        raise MissingParameter("The request must contain the parameter QueueUrl.")
    owner, name = queue_path(queue_url, call.account)
    return state.queue(owner, name)
