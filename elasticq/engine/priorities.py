"""The rule that a message keeps its current priority when it moves to another priority queue."""

from elasticq.engine.ordering.priority import arrival_priority
from elasticq.engine.state import Queue
from elasticq.engine.stored import mutations as m


def kept(source: Queue, sequence: int, target: Queue, stored: m.Mutation) -> list[m.Mutation]:
    """Return the mutations that give the moved message the priority it has in ``source``.

    There are none if ``stored`` gets that priority on arrival. There are none if one of the queues has no priorities:
    then the message's own attribute sets its priority.
    sequence: the message in ``source``; stored: the same message in ``target``.
    """
    if not (source.kind.has_priorities and target.kind.has_priorities):
        return []
    assert isinstance(stored, m.MessageStored), "the stored message comes before the mutations that refer to it"
    priority = source.order.priority(sequence)
    if priority == arrival_priority(stored, target.default_priority):
        return []
    return [m.PrioritiesSet(target.id, [stored.sequence], [priority])]
