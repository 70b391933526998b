"""Shares: whose turn it is among groups that have work, exactly by their weights and without random numbers.

Groups form a tree: those under one node share what it gets. Each node with work has its turn, a span of virtual
time that is the shorter the larger its weight is; the one whose turn ends first goes next, among those whose turn
has begun (worst-case fair weighted fair queueing, WF2Q+):

    start   when the turn begins: its last one's end, or for who had no work the present
    finish  start + TURN / weight
    clock   the present of those under one node; each message that they get moves it by TURN / (sum of their weights)

So who has work all the time gets its k-th message within (k * sum of weights / its weight) messages from when it
came, however heavy the others are; an exact division of TURN keeps sums exact. Where one alone has work there is
nothing to share, and nothing is noted.

What a choice rests on is the same on every member: which groups have work follows from the rows, and all else is
``stored``, absolute, by the entry of each receive (``turns``). A node that got or lost its work since then counts by
that, without being stored: it starts at the clock, which only receives move.

    path   of a group: its name, empty for messages without one; of a node above: a space, and the beginning of
           the names under it, which has no space. With a separator each group has a node of its own above it, so
           that "a" shares with "a.b".
"""

from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final

from elasticq.engine.ordering.sharing import ADAPTIVE_MAX, Sharing
from elasticq.model.limits import GROUP_LEVELS_MAX

TURN: Final = 5_354_228_880  # divided by each number up to 24 without a rest
ROOT: Final = " "
STORED_MAX: Final = 500  # nodes that got or lost their work and that one receive stores; the next one goes on
FORGOTTEN_MAX: Final = 16  # nodes without work that one receive looks at, to forget them

Stored = tuple[int, int, int]
"""What is stored of a node: its start, its weight in this turn (0: it had no work), its clock."""
GONE: Final = -1
"""In place of a weight: nothing is stored any more."""

_NOWHERE, _WAITING, _READY = 0, 1, 2


class Share:
    """One group or a node above some. has_work: some message of it may be handed out.

    place: where it stands among those that share with it, if at all; total: the weights of those under it that stand
    there; reach: none that is ``ready`` starts later; is_stale: some of them may be too early, as something changed.
    waiting: (start, path); ready: (finish, path), with stale ones.
    """

    __slots__ = (
        "busy",
        "clock",
        "finish",
        "has_work",
        "in_flight",
        "is_stale",
        "nodes",
        "own_weight",
        "parent",
        "path",
        "place",
        "reach",
        "ready",
        "start",
        "stored",
        "total",
        "waiting",
        "weight",
    )

    def __init__(self, path: str, parent: "Share | None", own_weight: int) -> None:
        self.path = path
        self.parent = parent
        self.own_weight = own_weight
        self.has_work = False
        self.in_flight = 0
        self.stored: Stored | None = None
        self.start = self.finish = self.place = 0
        self.weight = own_weight
        self.nodes = 0  # under it
        self.busy = 0  # of them, with work
        self.clock = self.reach = self.total = 0
        self.is_stale = False
        self.waiting: list[tuple[int, str]] = []
        self.ready: list[tuple[int, str]] = []


class Shares:
    """The tree of one queue; what is tried out between ``begin`` and ``end`` is taken back.

    ``_came`` and ``_unsaved`` have work, which is not stored; these stand in their places, and those do not yet.
    ``_went`` have none, which is not stored, ``_forgettable`` have none and something is stored of them.
    """

    __slots__ = ("_by_path", "_came", "_forgettable", "_journal", "_root", "_sharing", "_unsaved", "_went")

    def __init__(self, sharing: Sharing) -> None:
        self._sharing = sharing
        self._root = Share(ROOT, None, 1)
        self._by_path: dict[str, Share] = {ROOT: self._root}
        self._came: dict[str, None] = {}
        self._unsaved: dict[str, None] = {}
        self._went: dict[str, None] = {}
        self._forgettable: dict[str, None] = {}
        self._journal: list[tuple[Share, int, int, int, int, int]] | None = None

    # --- the tree -------------------------------------------------------------

    def leaf(self, name: str) -> Share:
        """Returns the node of the group ``name``, which is made if need be."""
        found = self._by_path.get(name)
        return found if found is not None else self._made(name)

    def _made(self, path: str) -> Share:
        parent = self._root
        above = self._above(path)
        if above is not None:
            parent = self._by_path.get(above) or self._made(above)
        share = self._by_path[path] = Share(path, parent, self._weight_of(path))
        parent.nodes += 1
        return share

    def _above(self, path: str) -> str | None:
        """The path of the node above; None where that is the root."""
        separator = self._sharing.separator
        if not separator:
            return None
        if not path.startswith(ROOT):
            return ROOT + separator.join(path.split(separator)[:GROUP_LEVELS_MAX]) + separator
        begin = path[1:-1].rpartition(separator)[0]
        return ROOT + begin + separator if begin else None

    def _weight_of(self, path: str) -> int:
        sharing = self._sharing
        if sharing.is_adaptive:
            return ADAPTIVE_MAX
        if not sharing.separator:
            return sharing.weights.get(path, 1)
        return sharing.weights.get(path[1:-1], 1) if path.startswith(ROOT) else 1

    def _discard(self, share: Share) -> None:
        """Forget nodes that say nothing: of no work, nothing in flight and nothing stored."""
        while share.parent is not None and not (
            share.has_work or share.in_flight or share.nodes or share.stored is not None
        ):
            self._by_path.pop(share.path, None)
            share = share.parent
            share.nodes -= 1

    # --- written by the order --------------------------------------------------

    def note(self, name: str, has_work: bool, in_flight: int) -> None:
        """Notes whether a message of the group may be handed out now, and how many are in flight."""
        share = self._by_path.get(name)
        if share is None:
            if not has_work and not in_flight:
                return
            share = self._made(name)
        if in_flight != share.in_flight:
            more = in_flight - share.in_flight
            above: Share | None = share
            while above is not None:
                above.in_flight += more
                above = above.parent
        if has_work != share.has_work:
            self._set_work(share, has_work)
        if not has_work and not in_flight:
            self._discard(share)

    def _set_work(self, share: Share, has_work: bool) -> None:
        while True:
            share.has_work = has_work
            if not has_work:
                self._leave(share)
            self._compare(share)
            parent = share.parent
            if parent is None:
                return
            parent.busy += 1 if has_work else -1
            if parent.has_work == bool(parent.busy):
                return
            share = parent

    def _compare(self, share: Share) -> None:
        """Enter the node into the lists that it belongs to, and where its work is as stored, into its place."""
        if share.parent is None:
            return
        path, stored = share.path, share.stored
        was_working = stored is not None and stored[1] > 0
        self._unsaved.pop(path, None)
        if share.has_work:
            self._went.pop(path, None)
            self._forgettable.pop(path, None)
            if stored is not None and was_working:
                self._came.pop(path, None)
                self._enter(share, stored[0], stored[1])
            else:
                self._came[path] = None
            return
        self._came.pop(path, None)
        if was_working:
            self._went[path] = None
        else:
            self._went.pop(path, None)
        if stored is not None:
            self._forgettable[path] = None
        else:
            self._forgettable.pop(path, None)

    def set_stored(self, path: str, stored: Stored | None) -> None:
        """Notes what is stored of a node from now on."""
        share = self._by_path.get(path)
        if share is None:
            if stored is None:
                return
            share = self._made(path)
        share.stored = stored
        clock = stored[2] if stored is not None else 0
        if clock != share.clock:
            share.clock = clock
            share.is_stale = True
        self._leave(share)
        self._compare(share)
        if stored is None:
            self._discard(share)

    # --- places ------------------------------------------------------------------

    def _enter(self, share: Share, start: int, weight: int) -> None:
        parent = share.parent
        assert parent is not None
        if share.place:
            parent.total -= share.weight
        share.start, share.weight, share.finish = start, weight, start + TURN // weight
        parent.total += weight
        self._stand(share, parent)

    def _stand(self, share: Share, parent: Share) -> None:
        """Let the node stand where its turn puts it."""
        if share.start <= parent.reach:
            share.place = _READY
            heappush(parent.ready, (share.finish, share.path))
            parent.is_stale = True
        else:
            share.place = _WAITING
            heappush(parent.waiting, (share.start, share.path))
        if len(parent.ready) + len(parent.waiting) > 64 + 4 * parent.nodes:
            self._tidy(parent)

    def _tidy(self, parent: Share) -> None:
        by_path = self._by_path
        ready = {path for finish, path in parent.ready if _is_ready(by_path.get(path), finish)}
        waiting = {path for start, path in parent.waiting if _is_waiting(by_path.get(path), start)}
        parent.ready = [(by_path[path].finish, path) for path in ready]
        parent.waiting = [(by_path[path].start, path) for path in waiting]
        heapify(parent.ready)
        heapify(parent.waiting)

    def _leave(self, share: Share) -> None:
        if share.place:
            assert share.parent is not None
            share.parent.total -= share.weight
            share.place = _NOWHERE

    # --- choosing ------------------------------------------------------------------

    def settle(self) -> None:
        """Lets nodes with new work take part from the clock on; before each choice."""
        if self._sharing.is_adaptive:
            for path in self._unsaved:  # what is in flight may have changed since they came
                share = self._by_path[path]
                self._enter(share, share.start, self._present_weight(share))
        if self._came:
            for path in self._came:
                share = self._by_path[path]
                stored, parent = share.stored, share.parent
                assert parent is not None
                start = parent.clock if stored is None else max(parent.clock, stored[0])
                self._enter(share, start, self._present_weight(share))
                self._unsaved[path] = None
            self._came = {}

    def _present_weight(self, share: Share) -> int:
        """The weight of the next turn: the adaptive one falls with the share of what is in flight, from 10 to 1."""
        if not self._sharing.is_adaptive:
            return share.own_weight
        parent = share.parent
        assert parent is not None
        together = parent.in_flight
        return ADAPTIVE_MAX - (ADAPTIVE_MAX - 1) * share.in_flight // together if together else ADAPTIVE_MAX

    def first(self) -> Share | None:
        """Returns the group whose turn it is; None if none that takes part has work."""
        share = self._root
        while share.nodes:
            following = self._next(share)
            if following is None:
                return None
            share = following
        return share if share.parent is not None else None

    def _next(self, parent: Share) -> Share | None:
        """The node under ``parent`` whose turn ends first, among those whose turn has begun."""
        by_path, ready, waiting = self._by_path, parent.ready, parent.waiting
        if parent.is_stale:
            parent.is_stale = False
            if parent.reach > parent.clock:
                self._push_back(parent)
                ready, waiting = parent.ready, parent.waiting
        reach = max(parent.reach, parent.clock)
        while True:
            while waiting and waiting[0][0] <= reach:
                start, path = heappop(waiting)
                share = by_path.get(path)
                if share is not None and _is_waiting(share, start):
                    share.place = _READY
                    heappush(ready, (share.finish, path))
            while ready:
                finish, path = ready[0]
                share = by_path.get(path)
                if share is not None and _is_ready(share, finish):
                    parent.reach = reach
                    return share
                heappop(ready)
            while waiting and not _is_waiting(by_path.get(waiting[0][1]), waiting[0][0]):
                heappop(waiting)
            if not waiting:
                return None
            reach = waiting[0][0]

    def _push_back(self, parent: Share) -> None:
        """Let those wait again whose turn has not begun by the clock."""
        parent.reach = parent.clock
        kept: list[tuple[int, str]] = []
        for finish, path in parent.ready:
            share = self._by_path.get(path)
            if share is None or not _is_ready(share, finish):
                continue
            if share.start > parent.clock:
                share.place = _WAITING
                heappush(parent.waiting, (share.start, path))
            else:
                kept.append((finish, path))
        heapify(kept)
        parent.ready = kept

    def charge(self, share: Share) -> None:
        """Notes that the group gets a message: its turn, and that of each node above it, is over."""
        while (parent := share.parent) is not None:
            if share.place and parent.total > share.weight:
                self._keep(parent)
                self._keep(share)
                behind = min(max(share.start, parent.clock), max(parent.reach, parent.clock))
                parent.clock = behind + TURN // parent.total
                parent.is_stale = True
                self._enter(share, share.finish, self._present_weight(share))
            share = parent

    def rest(self, share: Share) -> None:
        """Lets the group, which has no more messages to hand out, stand aside."""
        while (parent := share.parent) is not None and share.place:
            self._keep(share)
            self._keep(parent)
            self._leave(share)
            if parent.total:
                return
            share = parent

    # --- trying out ------------------------------------------------------------------

    def begin(self) -> None:
        assert self._journal is None, "one choice at a time"
        self._journal = []

    def end(self) -> None:
        """Takes back what was charged since ``begin``."""
        journal, self._journal = self._journal, None
        assert journal is not None
        for share, start, weight, place, clock, total in reversed(journal):
            share.start, share.weight, share.finish = start, weight, start + TURN // weight
            share.place, share.clock, share.total = place, clock, total
            share.is_stale = True
        for share, *_ in journal:
            if share.place and share.parent is not None:
                self._stand(share, share.parent)

    def _keep(self, share: Share) -> None:
        if self._journal is not None:
            self._journal.append((share, share.start, share.weight, share.place, share.clock, share.total))

    # --- what is stored ---------------------------------------------------------------

    def turns(self, names: list[str]) -> dict[str, Stored]:
        """Returns what is to be stored once each of these groups got a message: by path, GONE for a weight of none."""
        found: dict[str, Stored] = {}
        for path in islice(self._unsaved, STORED_MAX):
            share = self._by_path[path]
            found[path] = (share.start, share.weight, share.clock)
        for path in islice(self._went, STORED_MAX):
            self._note_rest(self._by_path[path], found)
        for path in list(islice(self._forgettable, FORGOTTEN_MAX)):
            share = self._by_path[path]
            self._forgettable[path] = self._forgettable.pop(path)  # last, so that the others have their look, too
            self._note_rest(share, found)
        self.begin()
        for name in names:
            self.charge(self.leaf(name))
        assert self._journal is not None
        for share, *_ in self._journal:
            found[share.path] = (share.start, share.weight, share.clock)
        self.end()
        return found

    def _note_rest(self, share: Share, found: dict[str, Stored]) -> None:
        """Note that the node has no work, or nothing once its last turn is over and what is under it is forgotten."""
        if share.has_work or share.stored is None or share.parent is None:
            return
        start = share.stored[0]
        if start > share.parent.clock or share.nodes:
            if share.stored[1]:
                found[share.path] = (start, 0, share.clock)
        else:
            found[share.path] = (0, GONE, 0)


def _is_ready(share: Share | None, finish: int) -> bool:
    return share is not None and share.place == _READY and share.finish == finish


def _is_waiting(share: Share | None, start: int) -> bool:
    return share is not None and share.place == _WAITING and share.start == start
