"""The context in which a handler executes a call: the time of the entry, the term, and the rules in force."""

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
"""The start of the numbers of topics, subscriptions and publishes in each term.

It is half of the range of a term, so they never equal queue ids and sequences, which start at 1.
"""
_IGNORED: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")

Outcome = tuple[Result | SqsError, list[Mutation]]
"""The return value of a handler: the result, and the mutations to apply.

A handler raises an SqsError if it refuses the call. It returns an SqsError if mutations must be stored together with
the refusal.
"""


Sign = Callable[[bytes, dict[str, str]], tuple[str, str]]
"""A function that signs an SNS envelope. Its arguments are the cluster's key and the signed members of the envelope.

It returns the signature, and the name of the certificate that verifies it. It is deterministic.
"""


class ExecutionContext:
    """The context of the calls that a master executes for one entry.

    now_ms: cluster time of the entry that will hold the mutations.
    term: term of the master that executes the call.
    region: region of the node.
    has_one_region: regions in calls and ARNs are ignored, so all of them name the same queues.
    sign: signs the envelopes that topics send to queues; None: they are not signed.
    template: used to create a missing queue at its first use; None: a missing queue is an error.
    tally: counts for the metrics.
    matching: the search for subscriptions of a publish that is executed again; None at its first execution.
    ignored: names of unknown queue attributes in calls, for the log; at most IGNORED_MAX.
    """

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
        """Return a unique number for a topic, a subscription or a publish. Each is larger than all before.

        The number contains the term, and a term has only one master, so the counter need not be stored. It never
        equals the id of a queue.
        """
        self._numbers += 1
        return self.term << TERM_SHIFT | NUMBERS_FROM + self._numbers

    def ignore(self, name: str) -> None:
        """Record that a queue attribute was ignored. A text that cannot be a name is not recorded, to protect logs."""
        if len(self.ignored) < IGNORED_MAX and _IGNORED.fullmatch(name) is not None:
            self.ignored.add(name)

    def is_in_region(self, region: str, owner: str) -> bool:
        """Return whether an ARN with this region can name a queue in the region of ``owner``."""
        return self.has_one_region or region in ("", region_of(owner, self.region))


def named_queue(state: State, call: Call, queue_url: str | None) -> Queue:
    """Return the queue that a QueueUrl names. Raise MissingParameter or QueueDoesNotExist if there is none."""
    if not queue_url:
        raise MissingParameter("The request must contain the parameter QueueUrl.")
    owner, name = queue_path(queue_url, call.account)
    return state.queue(owner, name)
