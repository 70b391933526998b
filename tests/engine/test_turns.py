"""Turns as mutations: bounded, absolute, and nothing where groups do not share."""

from elasticq.engine import turns
from elasticq.engine.ordering.shares import GONE
from elasticq.engine.stored import mutations as m
from elasticq.model.limits import MUTATION_ROWS_MAX
from tests.engine.desk import Desk


def test_receive_of_a_queue_whose_groups_do_not_share_stores_no_turns() -> None:
    desk = Desk()
    desk.create()
    desk.send()
    desk.receive_one()
    assert not any(isinstance(mutation, m.TurnsSet) for mutation in desk.log)


def test_no_mutation_has_more_rows_than_allowed_and_forgetting_goes_by_steps() -> None:
    desk = Desk()
    desk.create(ElasticqFairness="round_robin")
    queue = desk.queue()
    desk.write(turns.stored(queue, {f"g{at}": (1 << 90, 1, 0) for at in range(2 * MUTATION_ROWS_MAX + 1)}))
    assert [len(x.paths) for x in desk.log if isinstance(x, m.TurnsSet)] == [MUTATION_ROWS_MAX, MUTATION_ROWS_MAX, 1]
    assert queue.turns["g7"] == (1 << 90, 1, 0)
    steps = 0
    while found := turns.forgotten(queue):
        assert [set(x.weights) for x in found if isinstance(x, m.TurnsSet)] == [{GONE}]
        desk.write(found)
        steps += 1
    assert (steps, queue.turns) == (3, {})


def test_what_is_kept_is_told_in_one_order() -> None:
    desk = Desk()
    desk.create(ElasticqFairness="round_robin")
    queue = desk.queue()
    desk.write(turns.stored(queue, {"b": (2, 1, 0), "a": (1, 0, 0), " ": (0, 1, 5)}))
    assert turns.kept(queue) == [
        m.TurnsSet(queue.id, [" ", "a", "b"], [b"", b"\x01", b"\x02"], [1, 0, 1], [b"\x05", b"", b""])
    ]
