"""What a reader has of the real world: it travels to executors, and many calls go at once."""

import sys
import threading
from dataclasses import astuple

import pytest

from elasticq.spark.environment import CALLS_AT_ONCE, Environment, in_threads, random_part


def test_it_travels_to_executors_by_the_names_of_functions() -> None:
    for each in astuple(Environment()):
        assert getattr(sys.modules[each.__module__], each.__qualname__) is each


def test_calls_go_at_once_and_answer_in_their_order() -> None:
    together = threading.Barrier(CALLS_AT_ONCE, timeout=10)

    def call(number: int) -> int:
        together.wait()
        return -number

    assert in_threads(call, range(CALLS_AT_ONCE)) == [-number for number in range(CALLS_AT_ONCE)]


def test_the_first_error_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda number: 1 // number, [1, 0, 2])


def test_no_two_streams_have_one_name() -> None:
    assert len({random_part() for _ in range(100)}) == 100
