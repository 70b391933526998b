"""ElasticqChangePriority: a new priority for messages of a priority queue, given by their MessageIds.

A MessageId is a keyed hash of the queue and sequence where the message was first stored (its origin). So messages must
be searched. Each call hashes a bounded number of messages; its NextToken contains the position of the next call.

    walk 1  hashes the sequences in this queue, and the origins of messages whose contents are in memory
    walk 2  hashes the origins of all messages, if an id was not found: those that came from another queue
"""

from collections.abc import Container
from typing import Final

from elasticq.engine.actions.peek import cold_from
from elasticq.engine.context import ExecutionContext, Outcome, named_queue
from elasticq.engine.ordering.contract import ContentsMissing
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.model.commands import Call
from elasticq.model.errors import InvalidParameterValue, MissingParameter, UnsupportedOperation, quoted
from elasticq.model.extensions import ById, ElasticqChangePriority
from elasticq.model.results import PrioritiesChangedResult

WALK_MAX: Final = 10_000  # sequences that one call looks at, including those of deleted messages
IDS_MAX: Final = 1_000
BY_PLACE: Final = 1
BY_ORIGIN: Final = 2


def change_priority(state: State, call: Call, command: ElasticqChangePriority, context: ExecutionContext) -> Outcome:
    """Set the priority of the messages found. Raise ContentsMissing as ``look_for`` does."""
    queue = named_queue(state, call, command.queue_url)
    check_has_priorities(queue)
    check_ids(command)
    priority = command.priority
    if priority is None:
        raise MissingParameter("The request must contain the parameter Priority.")
    found, next_token = look_for(state, queue, command)
    moved = [sequence for sequence in sorted(found.values()) if queue.order.priority(sequence) != priority]
    mutations: list[m.Mutation] = [m.PrioritiesSet(queue.id, part, [priority] * len(part)) for part in m.chunks(moved)]
    return answer_of(command, found, next_token), mutations


def check_has_priorities(queue: Queue) -> None:
    """Raise UnsupportedOperation unless the queue is a priority queue."""
    if not queue.kind.has_priorities:
        raise UnsupportedOperation("Only messages of queues with ElasticqOrder = priority have priorities.")


def check_ids(command: ById) -> None:
    """Raise MissingParameter or InvalidParameterValue unless there are 1 to IDS_MAX ids."""
    ids = command.message_ids
    if not ids:
        raise MissingParameter("The request must contain the parameter MessageIds.")
    if len(ids) > IDS_MAX:
        raise InvalidParameterValue(f"MessageIds has {len(ids)} items. Reason: Must have 1 to {IDS_MAX}.")


def look_for(state: State, queue: Queue, command: ById) -> tuple[dict[str, int], str | None]:
    """Return the sequences of the messages found, by id, and the token of the next call (None at the end).

    Raise ContentsMissing if the first message needs its origin and its content is on disk only.
    """
    search = _Search(state, queue, command.message_ids)
    next_token = search.walk(*_place(command.next_token))
    return search.found, next_token


def answer_of(command: ById, changed: Container[str], next_token: str | None) -> PrioritiesChangedResult:
    """Return the answer: the distinct ids that were changed, the other ids, and the token."""
    names = dict.fromkeys(command.message_ids)
    others = [name for name in names if name not in changed]
    return PrioritiesChangedResult([name for name in names if name in changed], others, next_token)


def places_of(command: ById, result: PrioritiesChangedResult) -> list[tuple[int, int]]:
    """Return the answer as the invocation log stores it: the position of the next call, and which ids were changed."""
    changed = frozenset(result.changed)
    found = [(0, at) for at, name in enumerate(dict.fromkeys(command.message_ids)) if name in changed]
    return [_place(result.next_token) if result.next_token else (0, 0), *found]


def result_of(command: ById, places: list[tuple[int, int]]) -> PrioritiesChangedResult:
    """Return the answer from the value that ``places_of`` returned."""
    (walk, sequence), *found = places
    names = list(dict.fromkeys(command.message_ids))
    changed = frozenset(names[at] for _, at in found)
    return answer_of(command, changed, f"{walk}.{sequence}" if walk else None)


def _place(token: str | None) -> tuple[int, int]:
    """Return the walk (BY_PLACE or BY_ORIGIN) and the sequence at which it continues.

    Raise InvalidParameterValue if the token is malformed.
    """
    if not token:
        return BY_PLACE, 0
    walk, _, sequence = token.partition(".")
    if walk not in (str(BY_PLACE), str(BY_ORIGIN)) or not (sequence.isascii() and sequence.isdigit()):
        raise InvalidParameterValue(f"Value {quoted(token)} for parameter NextToken is invalid.")
    return int(walk), int(sequence[:20])


class _Search:
    """A search for messages by their MessageIds. found: the sequences of those found, by id."""

    def __init__(self, state: State, queue: Queue, ids: list[str]) -> None:
        self._identity = state.identity
        self._queue = queue
        self._wanted = {digest: name for name in ids if (digest := _digest(name))}
        self.found: dict[str, int] = {}

    def walk(self, kind: int, first: int) -> str | None:
        """Look at up to WALK_MAX sequences from ``first`` on; return the token of the next call, None at the end.

        Raise ContentsMissing if the first message needs its origin and its content is on disk only.
        """
        queue = self._queue
        for walked, sequence in enumerate(queue.issued.between(first, queue.last_sequence)):
            if not self._wanted:
                return None
            if walked == WALK_MAX:
                return f"{kind}.{sequence}"
            content = queue.contents.get(sequence)
            if kind == BY_ORIGIN and content is None and queue.row(sequence) is not None:
                if not walked:
                    raise ContentsMissing(cold_from(queue, sequence))
                return f"{kind}.{sequence}"
            if content is not None and content.origin is not None:
                self._look(content.origin, sequence)
            elif kind == BY_PLACE:
                self._look((queue.id, sequence), sequence)
        is_over = kind == BY_ORIGIN or not self._wanted or not queue.is_cold
        return None if is_over else f"{BY_ORIGIN}.0"

    def _look(self, origin: tuple[int, int], sequence: int) -> None:
        digest = self._identity.digest(*origin)
        if digest in self._wanted and self._queue.row(sequence) is not None:
            self.found[self._wanted.pop(digest)] = sequence


def _digest(message_id: str) -> bytes:
    """Return the 16 bytes of a MessageId; empty if the text is not a MessageId."""
    try:
        digest = bytes.fromhex(message_id.replace("-", ""))
    except ValueError:
        return b""
    return digest if len(message_id) == 36 and len(digest) == 16 else b""
