"""Answers of a former master whose entries the next master may still commit, or cut off the log.

    mastership lost -> the entry is committed: the answer leaves, as it would have
                    -> the entry is cut off the log: the call had no effect, and goes on at the next master
                    -> the call's time is over: its outcome is unknown

A send that waits for every voter (mode ``all``) is never answered so: a former master does not know who has its entry,
and a majority is not all. Its outcome is unknown when its own time is over.

This is for calls without a GUID. One that has a GUID goes on at once, as the next master finds in its history what
became of it.
"""

from elasticq.node.outputs import HeldCall, Reply
from elasticq.node.waits.replies import Pending


class Undecided:
    """The calls and their answers, in the order of the entries on which the answers rest.

    is_for_all: sends to standard queues, whose answers have a time of their own, wait for every voter.
    """

    __slots__ = ("_is_for_all", "_waiting")

    def __init__(self, *, is_for_all: bool = False) -> None:
        self._is_for_all = is_for_all
        self._waiting: list[tuple[HeldCall, Pending]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, held: HeldCall, answer: Pending) -> None:
        """Keep the answer to a call until its entry is committed or cut off, or ``held.until_ms`` comes."""
        if self._waits_for_all(answer):
            held.until_ms = min(held.until_ms, answer.until_ms)
        self._waiting.append((held, answer))

    def committed(self, index: int) -> list[Reply]:
        """Remove and return the answers that rest on entries up to ``index`` only: these are committed."""
        done = [answer for _, answer in self._waiting if answer.index <= index and not self._waits_for_all(answer)]
        if done:
            self._waiting = [each for each in self._waiting if each[1].index > index or self._waits_for_all(each[1])]
        return [Reply(answer.ticket, answer.outcome, answer.index) for answer in done]

    def cut_off(self, index: int) -> list[HeldCall]:
        """Remove and return the calls without an effect: their entries were cut off the log, which ends before it."""
        without_effect = [held for held, answer in self._waiting if answer.index >= index]
        self._waiting = [each for each in self._waiting if each[1].index < index]
        return without_effect

    def expired(self, now_ms: int) -> list[HeldCall]:
        """Remove and return the calls whose time is over."""
        over = [held for held, _ in self._waiting if held.until_ms <= now_ms]
        if over:
            self._waiting = [each for each in self._waiting if each[0].until_ms > now_ms]
        return over

    def take_all(self) -> list[HeldCall]:
        """Remove and return all calls."""
        taken = [held for held, _ in self._waiting]
        self._waiting = []
        return taken

    def _waits_for_all(self, answer: Pending) -> bool:
        return self._is_for_all and answer.until_ms != 0

    @property
    def next_deadline_ms(self) -> int | None:
        """The boot-clock time at which the first of the calls is over; None without any."""
        return min([held.until_ms for held, _ in self._waiting], default=None)
