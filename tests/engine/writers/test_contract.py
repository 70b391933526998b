"""What was written is taken back newest first."""

from elasticq.engine.writers.contract import Undo, roll_back


def test_newest_is_taken_back_first_and_nothing_is_left_to_take_back() -> None:
    taken: list[int] = []
    undo: Undo = [(taken.append, 1), (taken.append, 2), (taken.extend, (3, 4))]
    roll_back(undo)
    assert (taken, undo) == ([3, 4, 2, 1], [])
