"""Fair shares: the choice of the group whose turn it is, exactly by weight and without random numbers.

Groups form a tree: the groups under one node divide the messages that the node gets. Each node with work has a turn, a
span of virtual time that is shorter the larger its weight is. Among the nodes whose turn has begun, the node with the
earliest end goes next. This is worst-case fair weighted fair queueing (WF2Q+):

    start   Virtual time at which the turn begins: the finish of the last turn. If the node had no work, the clock.
    finish  start + TURN / weight
    clock   Virtual time of the nodes under one node. Each message that they get adds TURN / (sum of their weights).

So a node that always has work gets its k-th message within k * (sum of weights) / (its weight) messages, however heavy
the others are. TURN divides without remainder, which keeps the sums exact. If only one node has work, there is nothing
to divide, and its turns are not recorded.

All members choose equally. Which groups have work follows from the rows. All other state is ``stored`` as absolute
values in the entry of each receive (``turns``). A node may have got or lost its work since then, which is not stored.
Such a node starts at the clock, which only receives move. Only if more than SETTLED_MAX groups got work since the last
choice, some of them wait for later choices, and members may choose differently until their turns are stored.

    path   Of a group: its name, or empty for messages without a group. Of an inner node: a space, and the common
           prefix of the names under it; group names have no spaces. With a separator, each group has an inner node
           of its own above it, so "a" shares with "a.b".
"""

from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final

from elasticq.engine.ordering.sharing import ADAPTIVE_MAX, Sharing
from elasticq.model.limits import GROUP_LEVELS_MAX

TURN: Final = 5_354_228_880  # divisible by each number up to 24
ROOT: Final = " "
STORED_MAX: Final = 500  # nodes with new or ended work that one receive stores; the next receive stores more
SETTLED_MAX: Final = 2_048  # nodes with new work that get their place in one choice
FORGOTTEN_MAX: Final = 16  # nodes without work that one receive checks, to delete what is stored of them

Stored = tuple[int, int, int]
"""The stored state of a node: its start, its weight in this turn (0: it had no work), its clock."""
GONE: Final = -1
"""The weight that means: delete the stored state."""

_NOWHERE, _WAITING, _READY = 0, 1, 2


class Share:
    """A node of the tree: one group, or an inner node above groups.

    - has_work: Whether a message of it may be handed out.
    - place: Its state among the nodes under its parent: _NOWHERE, _WAITING for its turn to begin, or _READY.
    - total: The sum of the weights of the nodes under it that are waiting or ready.
    - reach: No ready node under it starts later.
    - is_stale: Whether the clock or the ready nodes changed, so some of these may start after the clock.
    - waiting: A heap of (start, path) of waiting nodes, with stale entries.
    - ready: A heap of (finish, path) of ready nodes, with stale entries.
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
        self.nodes = 0  # number of nodes under it
        self.busy = 0  # number of nodes under it with work
        self.clock = self.reach = self.total = 0
        self.is_stale = False
        self.waiting: list[tuple[int, str]] = []
        self.ready: list[tuple[int, str]] = []


class Shares:
    """The tree of one queue. ``end`` undoes what was charged since ``begin``.

    ``stored`` holds the stored states by path, also those of nodes that are not in the tree yet. A node gets its stored
    state when it enters the tree.

    The nodes whose work differs from what is stored, or that may be forgotten:

    - ``_came``: Nodes with work, stored without. They have no place yet.
    - ``_unsaved``: Nodes with work, stored without. They have a place.
    - ``_went``: Nodes without work, stored with work.
    - ``_forgettable``: Nodes without work that have a stored state.
    """

    __slots__ = (
        "_by_path",
        "_came",
        "_forgettable",
        "_journal",
        "_root",
        "_stored",
        "_to_load",
        "_unsaved",
        "_went",
        "sharing",
    )

    def __init__(self, sharing: Sharing, stored: dict[str, Stored]) -> None:
        self.sharing = sharing
        self._stored = stored
        self._to_load = list(stored)
        self._root = Share(ROOT, None, 1)
        self._by_path: dict[str, Share] = {ROOT: self._root}
        self._came: dict[str, None] = {}
        self._unsaved: dict[str, None] = {}
        self._went: dict[str, None] = {}
        self._forgettable: dict[str, None] = {}
        self._journal: list[tuple[Share, int, int, int, int, int]] | None = None
        self._load(self._root)

    # --- the tree -------------------------------------------------------------

    def leaf(self, name: str) -> Share:
        """Return the node of the group ``name``. Create it if it does not exist."""
        found = self._by_path.get(name)
        return found if found is not None else self._add_node(name)

    def _add_node(self, path: str) -> Share:
        parent = self._root
        above = self._above(path)
        if above is not None:
            parent = self._by_path.get(above) or self._add_node(above)
        share = self._by_path[path] = Share(path, parent, self._weight_of(path))
        parent.nodes += 1
        self._load(share)
        return share

    def _load(self, share: Share) -> None:
        """Give the new node its stored state, if it has one."""
        stored = self._stored.get(share.path)
        if stored is not None:
            share.stored, share.clock = stored, stored[2]
            self._compare(share)

    def load(self, limit: int) -> bool:
        """Add the nodes of ``limit`` stored states to the tree. Return whether more are left."""
        for _ in range(min(limit, len(self._to_load))):
            path = self._to_load.pop()
            if path in self._stored and path not in self._by_path:
                self._add_node(path)
        return bool(self._to_load)

    def _above(self, path: str) -> str | None:
        """Return the path of the parent; None if the parent is the root."""
        separator = self.sharing.separator
        if not separator:
            return None
        if not path.startswith(ROOT):
            return ROOT + separator.join(path.split(separator)[:GROUP_LEVELS_MAX]) + separator
        begin = path[1:-1].rpartition(separator)[0]
        return ROOT + begin + separator if begin else None

    def _weight_of(self, path: str) -> int:
        sharing = self.sharing
        if sharing.is_adaptive:
            return ADAPTIVE_MAX
        if not sharing.separator:
            return sharing.weights.get(path, 1)
        return sharing.weights.get(path[1:-1], 1) if path.startswith(ROOT) else 1

    def _discard(self, share: Share) -> None:
        """Delete the node and those above it, while they have no work, nothing in flight, no nodes and no
        stored state.
        """
        while share.parent is not None and not (
            share.has_work or share.in_flight or share.nodes or share.stored is not None
        ):
            self._by_path.pop(share.path, None)
            share = share.parent
            share.nodes -= 1

    # --- written by the order --------------------------------------------------

    def note(self, name: str, has_work: bool, in_flight: int) -> None:
        """Set whether a message of the group may be handed out, and how many of its messages are in flight."""
        share = self._by_path.get(name)
        if share is None:
            if not has_work and not in_flight:
                return
            share = self._add_node(name)
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
        """Update the lists that contain the node. If its stored state already has work, enter it with its
        stored turn.
        """
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
        """Set the stored state of a node. None: nothing is stored."""
        share = self._by_path.get(path)
        if share is None:
            if stored is None:
                return
            share = self._add_node(path)
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
        self._place(share, parent)

    def _place(self, share: Share, parent: Share) -> None:
        """Make the node ready if its turn has begun, else waiting."""
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

    @property
    def has_new_work(self) -> bool:
        """Return whether ``settle`` has something left to do."""
        return bool(self._came)

    def settle(self) -> None:
        """Give at most SETTLED_MAX nodes with new work a turn that starts at the clock, or at a later stored start.

        The caller must call this before each choice.
        """
        if self.sharing.is_adaptive:
            # the number in flight may have changed since they got work; the next receive stores the first ones
            for path in islice(self._unsaved, STORED_MAX):
                share = self._by_path[path]
                self._enter(share, share.start, self._present_weight(share))
        if self._came:
            for path in list(islice(self._came, SETTLED_MAX)):
                share = self._by_path[path]
                stored, parent = share.stored, share.parent
                assert parent is not None
                start = parent.clock if stored is None else max(parent.clock, stored[0])
                self._enter(share, start, self._present_weight(share))
                self._unsaved[path] = None
                del self._came[path]

    def _present_weight(self, share: Share) -> int:
        """Return the weight of the next turn. An adaptive weight falls from 10 to 1 with the node's part of all in
        flight.
        """
        if not self.sharing.is_adaptive:
            return share.own_weight
        parent = share.parent
        assert parent is not None
        together = parent.in_flight
        return ADAPTIVE_MAX - (ADAPTIVE_MAX - 1) * share.in_flight // together if together else ADAPTIVE_MAX

    def first(self) -> Share | None:
        """Return the group whose turn it is; None if no settled group has work."""
        share = self._root
        while share.nodes:
            following = self._next(share)
            if following is None:
                return None
            share = following
        return share if share.parent is not None else None

    def _next(self, parent: Share) -> Share | None:
        """Return the node under ``parent`` whose turn ends first, among those whose turn has begun."""
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
        """Make ready nodes wait again if their turn begins after the clock."""
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
        """End the turn of the group, and of each node above it, because the group gets a message."""
        while (parent := share.parent) is not None:
            if share.place and parent.total > share.weight:
                self._save(parent)
                self._save(share)
                behind = min(max(share.start, parent.clock), max(parent.reach, parent.clock))
                parent.clock = behind + TURN // parent.total
                parent.is_stale = True
                self._enter(share, share.finish, self._present_weight(share))
            share = parent

    def rest(self, share: Share) -> None:
        """Take the group out of the choice, because it has no more messages to hand out."""
        while (parent := share.parent) is not None and share.place:
            self._save(share)
            self._save(parent)
            self._leave(share)
            if parent.total:
                return
            share = parent

    # --- trying out ------------------------------------------------------------------

    def begin(self) -> None:
        assert self._journal is None, "one choice at a time"
        self._journal = []

    def end(self) -> None:
        """Undo what was charged since ``begin``."""
        journal, self._journal = self._journal, None
        assert journal is not None
        for share, start, weight, place, clock, total in reversed(journal):
            share.start, share.weight, share.finish = start, weight, start + TURN // weight
            share.place, share.clock, share.total = place, clock, total
            share.is_stale = True
        for share, *_ in journal:
            if share.place and share.parent is not None:
                self._place(share, share.parent)

    def _save(self, share: Share) -> None:
        if self._journal is not None:
            self._journal.append((share, share.start, share.weight, share.place, share.clock, share.total))

    # --- what is stored ---------------------------------------------------------------

    def turns(self, names: list[str]) -> dict[str, Stored]:
        """Return the states to store once each of these groups got one message, by path. The weight GONE deletes a
        state.
        """
        found: dict[str, Stored] = {}
        for path in islice(self._unsaved, STORED_MAX):
            share = self._by_path[path]
            found[path] = (share.start, share.weight, share.clock)
        for path in islice(self._went, STORED_MAX):
            self._note_rest(self._by_path[path], found)
        for path in list(islice(self._forgettable, FORGOTTEN_MAX)):
            share = self._by_path[path]
            self._forgettable[path] = self._forgettable.pop(path)  # move it to the end, so the others are checked, too
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
        """Add to ``found`` that the node has no work; or GONE if also its last turn is over and it has no nodes under
        it.
        """
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
