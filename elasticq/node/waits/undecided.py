"""Answers of a former master whose entries are not committed yet. The next master commits them or cuts them off.

    mastership lost -> the entry is committed: the answer leaves
                    -> the entry is cut off the log: the call had no effect, and the next master executes it
                    -> the call's time is over: its outcome is unknown

A former master does not know which members have an entry. So a send that waits for every voter (mode ``all``) gets no
answer by the first rule. Its outcome is unknown when its time is over.

Only calls without an invocation id wait here. A call with one goes to the next master at once, because that master
finds the outcome in its history.
"""

from elasticq.node.outputs import HeldCall
from elasticq.node.reply import Reply
from elasticq.node.waits.replies import Pending


class Undecided:
    """The calls with their answers, in the order of the entries that the answers depend on.

    is_for_all: sends to standard queues wait for every voter, and their answers have deadlines of their own.
    """

    def __init__(self, *, is_for_all: bool = False) -> None:
        self._is_for_all = is_for_all
        self._waiting: list[tuple[HeldCall, Pending]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, held: HeldCall, answer: Pending) -> None:
        """Keep a call and its answer until the entry is committed or cut off, or until ``held.until_ms``."""
        if self._waits_for_all(answer):
            held.until_ms = min(held.until_ms, answer.until_ms)
        self._waiting.append((held, answer))

    def committed(self, index: int) -> list[Reply]:
        """Remove and return the answers that depend on entries up to ``index`` only, because these are committed."""
        done = [answer for _, answer in self._waiting if answer.index <= index and not self._waits_for_all(answer)]
        if done:
            self._waiting = [each for each in self._waiting if each[1].index > index or self._waits_for_all(each[1])]
        return [Reply(answer.ticket, answer.outcome, answer.index) for answer in done]

    def cut_off(self, index: int) -> list[HeldCall]:
        """Remove and return the calls whose entries were cut off at ``index`` or above it. They had no effect."""
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
        """Return the time on the boot clock at which the first call expires; None if no call waits."""
        return min([held.until_ms for held, _ in self._waiting], default=None)
