"""Makes the scenario's faults happen, and undoes them.

A fault that aims at a role finds its member when it strikes. An armed one
("crash whoever votes next") waits for its moment until its end, then lapses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from elasticq.sim.faults import Fault

if TYPE_CHECKING:
    from elasticq.sim.member import Member
    from elasticq.sim.world import World

ON_VOTE = ("crash_next_voter",)
ON_APPEND = ("crash_appending_master", "isolate_appending_master")
RESTART_AFTER_VOTE_MS = (30, 300)


class Injector:
    """``struck`` counts the faults that did something."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random("injector")
        self.armed: list[Fault] = []
        self.struck = 0
        self._strike: dict[str, Callable[[Fault], bool]] = {
            "crash": self._crash,
            "crash_all": self._crash_all,
            "restart": self._restart,
            "crash_master": lambda fault: self._crash_for(self.world.master, fault),
            "cut": lambda fault: self._cut_pairs(fault, [(fault.member, fault.peer), (fault.peer, fault.member)]),
            "cut_one_way": lambda fault: self._cut_pairs(fault, [(fault.member, fault.peer)]),
            "isolate": lambda fault: self._isolate(self.world.members[fault.member], fault),
            "isolate_master": lambda fault: self._isolate(self.world.master, fault),
            "cut_master_from_majority": self._cut_master_from_majority,
            "pause": lambda fault: self._pause(self.world.members[fault.member], fault),
            "pause_master": lambda fault: self._pause(self.world.master, fault),
            "loss_burst": self._loss_burst,
            "slow_disk": self._slow_disk,
            "clock_jump": self._clock_jump,
            "crash_next_voter": self._arm,
            "crash_appending_master": self._arm,
            "isolate_appending_master": self._arm,
        }

    def start(self) -> None:
        for fault in self.world.scenario.faults:
            self.world.schedule(fault.at_ms * 1_000, partial(self.strike, fault))

    def strike(self, fault: Fault) -> None:
        if self.world.is_healed:
            return
        self.world.trace("fault", fault.kind, fault.until_ms)
        self.struck += self._strike[fault.kind](fault)

    def heal(self) -> None:
        """Everything runs and everybody hears everybody from now on."""
        self.armed.clear()
        self.world.network.mend_all()
        for member in self.world.members:
            member.disk.is_slow = False
            member.resume()
            member.start()

    # --- when armed faults see their moment -----------------------------------------

    def voted(self, member: Member) -> None:
        """``member`` let out a granted vote."""
        fault = self._take(ON_VOTE)
        if fault is not None:
            self.struck += 1
            member.crash(reboots=bool(fault.amount))
            self.world.schedule(self.random.randint(*RESTART_AFTER_VOTE_MS) * 1_000, member.start)

    def master_appended(self, member: Member) -> None:
        """``member`` is master and appended an entry that no other member has yet."""
        fault = self._take(ON_APPEND)
        if fault is None:
            return
        self.struck += 1
        if fault.kind == "crash_appending_master":
            self._crash_for(member, fault)
        else:
            self._isolate(member, fault)

    def _arm(self, fault: Fault) -> bool:
        self.armed.append(fault)
        return False

    def _take(self, kinds: tuple[str, ...]) -> Fault | None:
        if not self.armed:
            return None
        now_ms = self.world.now_us // 1_000
        self.armed = [fault for fault in self.armed if fault.until_ms > now_ms]
        for fault in self.armed:
            if fault.kind in kinds:
                self.armed.remove(fault)
                return fault
        return None

    # --- faults ---------------------------------------------------------------------

    def _until(self, fault: Fault, action: Callable[[], None]) -> None:
        self.world.schedule(max(0, fault.until_ms * 1_000 - self.world.now_us), action)

    def _crash(self, fault: Fault) -> bool:
        return self._crash_for(self.world.members[fault.member], fault)

    def _crash_for(self, member: Member | None, fault: Fault) -> bool:
        if member is None or member.node is None:
            return False
        member.crash(reboots=bool(fault.amount))
        self._until(fault, member.start)
        return True

    def _crash_all(self, fault: Fault) -> bool:
        crashed = [self._crash_for(member, fault) for member in self.world.members]
        return any(crashed)

    def _restart(self, fault: Fault) -> bool:
        """Only the process dies: the page cache survives."""
        member = self.world.members[fault.member]
        if member.node is None:
            return False
        member.crash(keeps_cache=True)
        self._until(fault, member.start)
        return True

    def _pause(self, member: Member | None, fault: Fault) -> bool:
        if member is None or member.node is None:
            return False
        member.pause()
        self._until(fault, member.resume)
        return True

    def _cut_pairs(self, fault: Fault, pairs: list[tuple[int, int]]) -> bool:
        members, network = self.world.members, self.world.network
        for sender, to in pairs:
            network.cut(members[sender].name, members[to].name)

        def mend() -> None:
            for sender, to in pairs:
                network.mend(members[sender].name, members[to].name)

        self._until(fault, mend)
        return True

    def _isolate(self, member: Member | None, fault: Fault, friends: int = 0) -> bool:
        """Cut it from everybody but the ``friends`` next to it."""
        if member is None:
            return False
        count = len(self.world.members)
        others = [(member.index + step) % count for step in range(1 + friends, count)]
        out = [(member.index, other) for other in others]
        back = [(other, member.index) for other in others]
        return self._cut_pairs(fault, out + back)

    def _cut_master_from_majority(self, fault: Fault) -> bool:
        """The master keeps all the followers that do not make a quorum; in odd cases they hear the others still."""
        return self._isolate(self.world.master, fault, friends=(len(self.world.members) - 1) // 2 - 1)

    def _loss_burst(self, fault: Fault) -> bool:
        network = self.world.network
        network.bursts += 1

        def calm() -> None:
            network.bursts = max(0, network.bursts - 1)

        self._until(fault, calm)
        return True

    def _slow_disk(self, fault: Fault) -> bool:
        disk = self.world.members[fault.member].disk
        disk.is_slow = True

        def recover() -> None:
            disk.is_slow = False

        self._until(fault, recover)
        return True

    def _clock_jump(self, fault: Fault) -> bool:
        """The wall clock is set; a wild one stays wild, or two of them could outvote the sane."""
        member = self.world.members[fault.member]
        if abs(member.wall_skew_ms) > 1_000:
            return False
        member.wall_skew_ms = fault.amount
        return True
