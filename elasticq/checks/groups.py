"""Checks of a consumer group's history: never two holders, and an even assignment without needless moves.

two_holders    two consumers held one resource at the same moment of true time
token_fell     a token was not greater than earlier ones, or one token was assigned twice
stale_act      an act with a token succeeded although it began after another consumer held a newer one
not_held       at rest a resource has no holder although an active consumer could hold it, or its holder is gone
uneven         at rest a consumer holds more or less than its share, rounded up or down
needless_move  more resources were revoked than an even assignment needed
joined_twice   one call made two consumers
session_short  a session ended too early

The share of a consumer is resources times weight divided by the sum of weights. If its share exceeds the bound for one
consumer, it gets exactly that bound, and the others share the rest. If the history allows two interpretations, nothing
is reported.

``jumps`` are the times at which the cluster's clock may have jumped forward. A jump ends sessions early by true time. A
consumer may then believe that it holds a resource of another one, and only its token shows the truth.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import floor

from elasticq.checks.group_history import (
    Act,
    Added,
    Assigned,
    Event,
    Freed,
    Held,
    Joined,
    Left,
    Ordered,
    Removed,
    Renewed,
    Rest,
    Revoked,
    TookOver,
)
from elasticq.checks.queue_history import ROUNDING_US, Finding, Jump

TWO_HOLDERS, TOKEN_FELL, STALE_ACT = "two_holders", "token_fell", "stale_act"
NOT_HELD, UNEVEN = "not_held", "uneven"
NEEDLESS_MOVE, SESSION_SHORT, JOINED_TWICE = "needless_move", "session_short", "joined_twice"
_NEVER_US = 1 << 62


def check(
    events: Iterable[Event], session_us: int, *, jumps: Iterable[Jump] = (), rest: Rest | None = None
) -> list[Finding]:
    """Return all findings, in order of time. Decisions must come in the order in which they were made.

    session_us: how long a session lasts without a call.
    """
    history, advances = list(events), list(jumps)
    jumped_us = [jump.at_us for jump in advances]
    held: defaultdict[str, list[Held]] = defaultdict(list)
    for event in history:
        if isinstance(event, Held):
            held[event.resource].append(event)
    findings = list(_tokens(history))
    if findings:
        return findings  # without tokens that name one assignment each, the other events prove nothing
    for of_resource in held.values():
        of_resource.sort(key=lambda each: (each.from_us, each.token))
        findings += _two_holders(of_resource, session_us, jumped_us)
    findings += _stale(history, held)
    findings += _needless(history)
    findings += _short(history, session_us, advances)
    findings += _joined_twice(history)
    if rest is not None:
        findings += _at_rest(held, rest, session_us)
    return sorted(findings, key=lambda finding: (finding.at_us, finding.name, finding.evidence))


def _describe(held: Held) -> str:
    return f"{held.consumer} held it [{held.from_us}..{held.until_us} us] with {held.token}"


# --- holders and tokens -----------------------------------------------------------------


def _two_holders(of_resource: list[Held], session_us: int, jumped_us: list[int]) -> Iterator[Finding]:
    open_: list[Held] = []
    for one in of_resource:
        open_ = [each for each in open_ if _end_us(each) > one.from_us]
        for other in open_:
            is_same = one.consumer == other.consumer
            if is_same or one.until_us == one.from_us or _is_excused(other, one, session_us, jumped_us):
                continue
            yield Finding(TWO_HOLDERS, f"{one.resource}: {_describe(other)}, and {_describe(one)}", one.from_us)
        open_.append(one)


def _end_us(held: Held) -> int:
    return _NEVER_US if held.until_us is None else held.until_us


def _is_excused(one: Held, other: Held, session_us: int, jumped_us: list[int]) -> bool:
    """Return whether the clock jumped forward while the session of one of them was about to end."""
    older, newer = (one, other) if one.token < other.token else (other, one)
    until_us = newer.from_us if older.until_us is None else older.until_us
    return any(until_us - session_us <= at_us <= newer.from_us for at_us in jumped_us)


def _tokens(history: list[Event]) -> Iterator[Finding]:
    newest = 0
    owners: dict[int, tuple[str, str]] = {}
    for event in history:
        if not isinstance(event, (Assigned, Held)):
            continue
        at_us = event.at_us if isinstance(event, Assigned) else event.from_us
        owner = event.resource, event.consumer
        if owners.setdefault(event.token, owner) != owner:
            evidence = f"{event.token} is of {owners[event.token]} and of {owner}"
            yield Finding(TOKEN_FELL, evidence, at_us)
        if isinstance(event, Assigned):
            if event.token <= newest:
                evidence = f"{event.resource} was given to {event.consumer} with {event.token} after {newest}"
                yield Finding(TOKEN_FELL, evidence, at_us)
            newest = max(newest, event.token)


def _stale(history: list[Event], held: dict[str, list[Held]]) -> Iterator[Finding]:
    """Yield the acts that began after an act with a newer token had succeeded, or after a newer token was known."""
    acts = [event for event in history if isinstance(event, Act) and event.outcome == "ok"]
    known: defaultdict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for act in acts:
        if act.complete_us is not None:
            known[act.resource].append((act.complete_us, act.token, f"{act.consumer} had acted with"))
    for resource, of_resource in held.items():
        known[resource] += [(each.from_us, each.token, f"{each.consumer} held it with") for each in of_resource]
    for act in acts:
        newer = [each for each in known[act.resource] if each[0] < act.invoke_us and each[1] > act.token]
        if newer:
            at_us, token, words = min(newer)
            evidence = f"{act.resource}: {words} {token} by {at_us} us, then {act}"
            yield Finding(STALE_ACT, evidence, act.invoke_us)


# --- assignment -------------------------------------------------------------------------


def shares(weights: dict[str, int], resources: int, max_per_consumer: int = 0) -> dict[str, Fraction]:
    """Return each consumer's share. It is usually a fraction, and the consumer gets it rounded up or down."""
    found = {consumer: Fraction(0) for consumer in weights}
    sharing = {consumer: weight for consumer, weight in weights.items() if weight}
    left = resources
    while sharing:
        total = sum(sharing.values())
        full = [
            consumer
            for consumer, weight in sharing.items()
            if max_per_consumer and left * weight >= max_per_consumer * total
        ]
        if not full:
            found.update({consumer: Fraction(left * weight, total) for consumer, weight in sharing.items()})
            break
        for consumer in full:
            found[consumer] = Fraction(max_per_consumer)
            left -= max_per_consumer
            del sharing[consumer]
    return found


def fewest_moves(counts: dict[str, int], wanted: dict[str, Fraction]) -> int:
    """Return how many resources must be revoked so that each consumer can have its share.

    counts: how many resources each holds that are not already moving to another one.
    """
    least = {consumer: floor(share) for consumer, share in wanted.items()}
    beyond = int(sum(wanted.values())) - sum(least.values())  # this many consumers have one more than the least
    above = {consumer: count - least.get(consumer, 0) for consumer, count in counts.items()}
    keeping = sum(each > 0 and wanted.get(consumer, 0) != least.get(consumer, 0) for consumer, each in above.items())
    return sum(each for each in above.values() if each > 0) - min(beyond, keeping)


class _GroupState:
    """The group as the decisions of its masters made it."""

    def __init__(self) -> None:
        self.weights: dict[str, int] = {}
        self.max_per_consumer = 0
        self.resources: set[str] = set()
        self.holder: dict[str, str] = {}
        self.revoking: set[str] = set()
        self.ordered: set[tuple[str, str]] = set()  # (resource, consumer to which an operator wanted to move it)
        self.moving: dict[str, str] = {}  # resource -> consumer to which an operator moves it

    def decide(self, event: Event) -> None:
        match event:
            case Joined():
                self.weights[event.consumer] = event.weight
                self.max_per_consumer = event.max_per_consumer
                self.moving.clear()  # a change of the consumers cancels the wishes of operators
            case Left():
                self.weights.pop(event.consumer, None)
                self.moving.clear()
                for resource in [each for each, holder in self.holder.items() if holder == event.consumer]:
                    self._free(resource)
            case Added():
                self.resources.add(event.resource)
            case Removed():
                self.resources.discard(event.resource)
                if event.resource in self.holder:
                    self.revoking.add(event.resource)  # even if it is created again before its holder is asked
            case Assigned():
                self._free(event.resource)
                self.holder[event.resource] = event.consumer
            case Revoked():
                self.revoking.add(event.resource)
                if self.is_ordered(event):
                    self.moving[event.resource] = event.wanted_by
            case Freed():
                self._free(event.resource)
            case Ordered():
                self.ordered.add((event.resource, event.consumer))

    def _free(self, resource: str) -> None:
        self.holder.pop(resource, None)
        self.revoking.discard(resource)
        self.moving.pop(resource, None)

    def is_ordered(self, event: Revoked) -> bool:
        return (event.resource, event.wanted_by) in self.ordered

    def is_needless(self, event: Revoked) -> bool:
        return event.resource not in self.revoking and not self.is_ordered(event) and not self.needed()

    def needed(self) -> int:
        """Return how many resources must be revoked now.

        A resource that an operator moves counts for its new consumer. The others share the rest.
        """
        counts = dict.fromkeys(self.weights, 0)
        for resource, holder in self.holder.items():
            if resource in self.resources and resource not in self.revoking and holder in counts:
                counts[holder] += 1
        for resource, consumer in self.moving.items():
            if resource in self.resources and consumer in counts:
                counts[consumer] += 1
        wanted = shares(self.weights, len(self.resources), self.max_per_consumer)
        return fewest_moves(counts, wanted)


def _needless(history: list[Event]) -> Iterator[Finding]:
    sharing = _GroupState()
    for event in history:
        if isinstance(event, Revoked) and sharing.is_needless(event):
            evidence = f"{event.resource} was revoked from {sharing.holder.get(event.resource)}, though all was even"
            yield Finding(NEEDLESS_MOVE, evidence, event.at_us)
        sharing.decide(event)


def _at_rest(held: dict[str, list[Held]], rest: Rest, session_us: int) -> Iterator[Finding]:
    """Yield the findings at rest.

    A holder that stopped by itself within the last session still counts as the holder. It waits for an answer, and then
    continues with its token.
    """
    wanted = shares(rest.weights, len(rest.resources), rest.max_per_consumer)
    counts = dict.fromkeys(rest.weights, 0)
    idle = []
    for resource in rest.resources:
        known = [each for each in held.get(resource, ()) if each.from_us <= rest.at_us]
        newest = max(known, key=lambda each: (each.token, each.from_us), default=None)
        if newest is None or newest.consumer not in counts or _end_us(newest) <= rest.at_us - session_us:
            idle.append(f"{resource} ({'never' if newest is None else _describe(newest)})")
        else:
            counts[newest.consumer] += 1
    if len(idle) > len(rest.resources) - sum(wanted.values()):
        evidence = f"{len(rest.weights)} consumers live, and held by none of them: {', '.join(idle)}"
        yield Finding(NOT_HELD, evidence, rest.at_us)
    wrong = [consumer for consumer, share in wanted.items() if abs(counts[consumer] - share) >= 1]
    if wrong and not idle:
        counts_text = ", ".join(f"{each} holds {counts[each]} of {float(wanted[each]):.2f}" for each in wanted)
        yield Finding(UNEVEN, f"{', '.join(wrong)}: {counts_text}", rest.at_us)


def _joined_twice(history: list[Event]) -> Iterator[Finding]:
    made: dict[str, str] = {}
    for event in history:
        if isinstance(event, Joined) and event.call and made.setdefault(event.call, event.consumer) != event.consumer:
            evidence = f"{event.call} made {made[event.call]} and {event.consumer}"
            yield Finding(JOINED_TWICE, evidence, event.at_us)


# --- sessions ---------------------------------------------------------------------------


def _short(history: list[Event], session_us: int, jumps: list[Jump]) -> Iterator[Finding]:
    """Yield the findings about sessions that ended too soon.

    An answered call may have renewed its session at any moment between call and answer, so the earliest possible end
    counts.
    """
    renewed: defaultdict[str, list[Renewed]] = defaultdict(list)
    for event in history:
        if isinstance(event, Renewed):
            renewed[event.consumer].append(event)
    silences: list[TookOver] = []
    for event in history:
        if isinstance(event, TookOver):
            silences.append(event)
        if not isinstance(event, Left) or not event.is_over:
            continue
        for call in renewed[event.consumer]:
            jumped_ms = sum(jump.ahead_ms for jump in jumps if call.at_us <= jump.at_us <= event.at_us)
            lives_us = _lives_until_us(call, session_us, silences) - 1_000 * jumped_ms - ROUNDING_US
            if call.at_us <= event.at_us < lives_us:
                evidence = f"{event.consumer}: over at {event.at_us} us, renewed by {call}"
                yield Finding(SESSION_SHORT, evidence, event.at_us)
                break


def _lives_until_us(call: Renewed, session_us: int, silences: list[TookOver]) -> int:
    first_us, last_us = call.at_us + session_us, call.answered_us + session_us
    for silence in sorted(silences, key=lambda each: each.from_us):
        if silence.from_us <= first_us and last_us < silence.until_us:
            first_us = last_us = silence.until_us  # spans may follow one another
    return first_us
