"""A message that goes from one priority queue to another keeps its priority, whatever it was given first."""

from elasticq.engine.ordering.priority import arrival_priority
from elasticq.engine.state import Queue
from elasticq.engine.stored import mutations as m


def kept(source: Queue, sequence: int, target: Queue, stored: m.Mutation) -> list[m.Mutation]:
    """What gives ``stored``, which is ``sequence`` of ``source`` in its new place, the priority that it has there.

    Nothing where it has that by itself, or where one of the queues knows no priorities: then its attribute counts.
    """
    if not (source.kind.has_priorities and target.kind.has_priorities):
        return []
    assert isinstance(stored, m.MessageStored), "it stands in front of what belongs to it"
    priority = source.order.priority(sequence)
    if priority == arrival_priority(stored, target.default_priority):
        return []
    return [m.PrioritiesSet(target.id, [stored.sequence], [priority])]
