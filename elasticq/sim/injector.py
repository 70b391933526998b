"""The injector: it starts and ends the faults of the scenario.

If a fault names a role, the injector chooses its member when the fault strikes. An armed fault, such as "crash the next
voter", waits for an event. It is dropped at its end time if the event does not occur before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from elasticq.node.orders import AddVoter, RemoveVoter, ReplaceVoter, TransferMastership
from elasticq.sim.adjusters import Timekeeper
from elasticq.sim.cluster import Cluster
from elasticq.sim.faults import PHASE_PATIENCE_MS, Fault
from elasticq.sim.member import Member
from elasticq.sim.operator import Operator
from elasticq.sim.phases import TWO_AT_ONCE, Met
from elasticq.sim.process import Process
from elasticq.sim.proxy import STOP_US

ON_VOTE = ("crash_next_voter",)
ON_APPEND = ("crash_appending_master", "isolate_appending_master")
RESTART_AFTER_VOTE_MS = (30, 300)
FLAP_MS = (100, 1_200)
VOTERS_MIN = 3
STOPPED_US = 1_600_000  # longer than the longest graceful stop


class Injector:
    """The execution of the scenario's faults.

    met: how often each kind of fault met each phase. struck: the number of faults that had an effect.
    """

    def __init__(self, cluster: Cluster, operator: Operator, timekeeper: Timekeeper) -> None:
        self.cluster = cluster
        self.scheduler = cluster.scheduler
        self.trace = cluster.trace
        self.operator = operator
        self.random = self.scheduler.random("injector")
        self.armed: list[Fault] = []
        self.waiting: list[Fault] = []  # faults that wait for a phase
        self.active: list[Fault] = []  # faults that have struck; some may have ended
        self.met: Met = Counter()
        self.struck = 0
        self._strike: dict[str, Callable[[Fault], bool]] = {
            "crash": self._crash,
            "crash_all": self._crash_all,
            "restart": self._restart,
            "crash_master": lambda fault: self._crash_for(self.cluster.master, fault),
            "cut": lambda fault: self._cut_pairs(fault, [(fault.member, fault.peer), (fault.peer, fault.member)]),
            "cut_one_way": lambda fault: self._cut_pairs(fault, [(fault.member, fault.peer)]),
            "isolate": lambda fault: self._isolate(self.cluster.members[fault.member], fault),
            "isolate_master": lambda fault: self._isolate(self.cluster.master, fault),
            "cut_master_from_majority": self._cut_master_from_majority,
            "pause": lambda fault: self._pause(self.cluster.members[fault.member], fault),
            "pause_master": lambda fault: self._pause(self.cluster.master, fault),
            "loss_burst": self._loss_burst,
            "slow_disk": self._slow_disk,
            "clock_jump": self._clock_jump,
            "advance": lambda fault: timekeeper.advance(fault.amount),
            "flap": self._flap,
            "bridge": self._bridge,
            "join": self._join,
            "leave": self._leave,
            "wipe": self._wipe,
            "stop": self._stop,
            "transfer": self._transfer,
            "crash_next_voter": self._arm,
            "crash_appending_master": self._arm,
            "isolate_appending_master": self._arm,
            "crash_proxy": partial(_crash_proxy, self),
            "stop_proxy": partial(_stop_proxy, self),
            "pause_proxy": lambda fault: self._pause(self.cluster.proxies[fault.member], fault),
            "cut_proxy": partial(_cut_proxy, self),
        }

    def start(self) -> None:
        for fault in self.cluster.scenario.faults:
            self.scheduler.schedule(fault.at_ms * 1_000, partial(self.strike, fault))

    def strike(self, fault: Fault) -> None:
        if self.cluster.is_healed:
            return
        if fault.phase:
            self.waiting.append(fault)
            self.look()
            return
        self.trace.note("fault", fault.kind, fault.until_ms)
        now_ms, present = self.scheduler.now_us // 1_000, self._current_phases()
        if self._strike[fault.kind](fault):
            self.struck += 1
            self._count_phases(fault, present)
        self.active = [each for each in self.active if each.until_ms > now_ms]
        self.active.append(fault)

    def look(self) -> None:
        """Schedule the waiting faults whose phase has begun. Called after each step of a member."""
        if not self.waiting:
            return
        now_ms, present = self.scheduler.now_us // 1_000, self._current_phases()
        waiting, self.waiting = self.waiting, []
        for fault in waiting:
            if fault.phase in present:
                ready = replace(fault, phase="", at_ms=now_ms, until_ms=now_ms + fault.until_ms - fault.at_ms)
                self.scheduler.schedule(0, partial(self.strike, ready))
            elif now_ms < fault.at_ms + PHASE_PATIENCE_MS:
                self.waiting.append(fault)

    def _current_phases(self) -> set[str]:
        found = self.cluster.phases
        now_ms = self.scheduler.now_us // 1_000
        if any(each.until_ms > now_ms for each in self.active):
            found.add(TWO_AT_ONCE)
        return found

    def _count_phases(self, fault: Fault, present: set[str]) -> None:
        self.met.update((fault.kind, phase) for phase in present)

    def heal(self) -> None:
        """End all faults: all processes run and can reach each other for the rest of the run."""
        self.armed.clear()
        self.waiting.clear()
        self.cluster.network.mend_all()
        for member in self.cluster.members:
            member.disk.is_slow = False
            member.resume()
            self._start(member)
        for proxy in self.cluster.proxies:
            proxy.resume()
            proxy.start()

    # --- the events that armed faults wait for --------------------------------------

    def voted(self, member: Member) -> None:
        """Handle a granted vote that ``member`` has just sent."""
        present = self._current_phases() if self.armed else set()
        fault = self._take(ON_VOTE)
        if fault is not None and self._crashed(member, fault):
            self.struck += 1
            self._count_phases(fault, present)
            self.scheduler.schedule(self.random.randint(*RESTART_AFTER_VOTE_MS) * 1_000, lambda: self._start(member))

    def master_appended(self, member: Member) -> None:
        """Handle an entry that the master ``member`` has appended and no other member has yet."""
        present = self._current_phases() if self.armed else set()
        fault = self._take(ON_APPEND)
        if fault is None:
            return
        self.struck += 1
        self._count_phases(fault, present)
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
        now_ms = self.scheduler.now_us // 1_000
        self.armed = [fault for fault in self.armed if fault.until_ms > now_ms]
        for fault in self.armed:
            if fault.kind in kinds:
                self.armed.remove(fault)
                return fault
        return None

    # --- faults ---------------------------------------------------------------------

    def _until(self, fault: Fault, action: Callable[[], None]) -> None:
        self.scheduler.schedule_at(fault.until_ms * 1_000, action)

    def _crash(self, fault: Fault) -> bool:
        return self._crash_for(self.cluster.members[fault.member], fault)

    def _start(self, member: Member) -> None:
        if member.is_wanted:
            member.start()

    def _crashed(self, member: Member, fault: Fault, *, keeps_cache: bool = False) -> bool:
        """Crash a member and return whether it crashed. Spare a memory-only member whose data the others need."""
        if member.node is None or (member.is_volatile and not self.cluster.may_forget(member)):
            return False
        member.crash(reboots=bool(fault.amount) and not keeps_cache, keeps_cache=keeps_cache)
        return True

    def _crash_for(self, member: Member | None, fault: Fault) -> bool:
        if member is None or not self._crashed(member, fault):
            return False
        self._until(fault, lambda: self._start(member))
        return True

    def _crash_all(self, fault: Fault) -> bool:
        crashed = [self._crash_for(member, fault) for member in self.cluster.members]
        return any(crashed)

    def _restart(self, fault: Fault) -> bool:
        """Kill only the process: the page cache survives."""
        member = self.cluster.members[fault.member]
        if not self._crashed(member, fault, keeps_cache=True):
            return False
        self._until(fault, lambda: self._start(member))
        return True

    def _pause(self, process: Process[Any] | None, fault: Fault) -> bool:
        if process is None or process.node is None:
            return False
        process.pause()
        self._until(fault, process.resume)
        return True

    def _cut_pairs(self, fault: Fault, pairs: list[tuple[int, int]]) -> bool:
        members = self.cluster.members
        return self._cut(fault, [(members[sender].id, members[to].id) for sender, to in pairs])

    def _cut(self, fault: Fault, ends: list[tuple[str, str]]) -> bool:
        network = self.cluster.network
        for sender, to in ends:
            network.cut(sender, to)

        def mend() -> None:
            for sender, to in ends:
                network.mend(sender, to)

        self._until(fault, mend)
        return True

    def _flap(self, fault: Fault) -> bool:
        """Cut a link repeatedly for short times."""
        begin_us, end_us = self.scheduler.now_us, fault.until_ms * 1_000
        while begin_us < end_us:
            cut_us = begin_us + self.random.randint(*FLAP_MS) * 1_000
            cut = Fault(begin_us // 1_000, min(cut_us, end_us) // 1_000, "cut", fault.member, fault.peer)
            self.scheduler.schedule(begin_us - self.scheduler.now_us, partial(self._flap_once, cut))
            begin_us = cut_us + self.random.randint(*FLAP_MS) * 1_000
        return True

    def _flap_once(self, fault: Fault) -> None:
        if not self.cluster.is_healed:
            self._cut_pairs(fault, [(fault.member, fault.peer), (fault.peer, fault.member)])

    def _bridge(self, fault: Fault) -> bool:
        """Divide the other members into two halves without links between them. This member keeps its links to both."""
        others = [member.index for member in self.cluster.members if member.index != fault.member]
        half = len(others) // 2
        pairs = [(one, other) for one in others[:half] for other in others[half:]]
        return self._cut_pairs(fault, pairs + [(other, one) for one, other in pairs])

    def _isolate(self, member: Member | None, fault: Fault, friends: int = 0) -> bool:
        """Cut a member from all others except the next ``friends`` members."""
        if member is None:
            return False
        count = len(self.cluster.members)
        others = [(member.index + step) % count for step in range(1 + friends, count)]
        out = [(member.index, other) for other in others]
        back = [(other, member.index) for other in others]
        return self._cut_pairs(fault, out + back)

    def _cut_master_from_majority(self, fault: Fault) -> bool:
        """Cut the master from so many followers that it has no quorum. Links between followers stay."""
        return self._isolate(self.cluster.master, fault, friends=(len(self.cluster.members) - 1) // 2 - 1)

    def _loss_burst(self, fault: Fault) -> bool:
        network = self.cluster.network
        network.bursts += 1

        def calm() -> None:
            network.bursts = max(0, network.bursts - 1)

        self._until(fault, calm)
        return True

    def _slow_disk(self, fault: Fault) -> bool:
        disk = self.cluster.members[fault.member].disk
        disk.is_slow = True

        def recover() -> None:
            disk.is_slow = False

        self._until(fault, recover)
        return True

    def _clock_jump(self, fault: Fault) -> bool:
        """Set the error of a member's wall clock, unless that clock is the one that is wrong by hours."""
        member = self.cluster.members[fault.member]
        if abs(member.wall_skew_ms) > 1_000:
            return False
        member.wall_skew_ms = fault.amount
        return True

    # --- joins, leaves, lost disks and stops ------------------------------------------

    def _join(self, fault: Fault) -> bool:
        """Start a new member. The operator makes it a voter when it has caught up."""
        spare = next((member for member in self.cluster.members if not member.is_wanted and not member.process), None)
        if spare is None:
            return False
        spare.is_wanted = True
        spare.start()
        self._add(spare)
        return True

    def _leave(self, fault: Fault) -> bool:
        """Remove a voter, and end its process after that. Until then it is restarted like any other member."""
        member = self.cluster.members[fault.member]
        wanted = [each for each in self.cluster.members if each.is_wanted]
        if member.is_volatile or len(wanted) <= VOTERS_MIN or self._is_unsettled:
            return False
        if not self._is_voter(member.id) or self.operator.tasks:
            return False
        member_id = member.id

        def end() -> None:
            member.is_wanted = False
            member.resume()
            member.crash(keeps_cache=True)

        self.operator.want(lambda: RemoveVoter(member_id), lambda: self._is_no_voter(member_id), end)
        return True

    @property
    def _is_unsettled(self) -> bool:
        """Return whether an order is in progress, a voter's disk is lost for good, or there is no master."""
        return self.cluster.master is None or bool(self.cluster.lost_voters) or bool(self.operator.tasks)

    def _is_voter(self, member_id: str) -> bool:
        voters = self._voters
        return voters is not None and member_id in voters

    def _is_no_voter(self, member_id: str) -> bool:
        voters = self._voters
        return voters is not None and member_id not in voters

    @property
    def _voters(self) -> list[str] | None:
        """Return the ids of the voters that the current master knows to be committed, None without a master."""
        master = self.cluster.master
        if master is None or master.node is None:
            return None
        return [voter.id for voter in master.node.replica.membership.committed_voters]

    def _wipe(self, fault: Fault) -> bool:
        """Lose a disk. A new member with the same name starts and replaces the old one."""
        member = self.cluster.members[fault.member]
        if member.is_volatile or not member.is_wanted or self._is_unsettled:
            return False
        if not self.cluster.may_forget(member):
            return False
        old = member.id
        was_voter = self._is_voter(old)
        member.resume()
        member.crash()
        member.become_another()
        self.trace.note("wipe", member.name, member.id)
        self._until(fault, lambda: self._start(member))
        if was_voter:
            new = member.id
            # A new master may not know of the replacement. If the old member is removed already, add the new one.
            self.operator.want(
                lambda: AddVoter(new) if self._is_no_voter(old) else ReplaceVoter(old), lambda: self._is_voter(new)
            )
        return True

    def add_who_lost_its_place(self) -> None:
        """Add memory-only members that restarted while there were enough voters without them (docs/operations.md)."""
        master = self.cluster.master
        if master is None or master.node is None:
            return
        members, replica = master.node.members, master.node.replica
        if len(replica.voters) < master.node.settings.nodes:
            return
        learners = [each for each in self.cluster.members if each.is_wanted and each.id in replica.tracker.learners]
        for member in learners:
            if member.is_volatile and not members.predecessor(member.id):
                self._add(member)

    def _add(self, member: Member) -> None:
        added = member.id
        self.operator.want(lambda: AddVoter(added), lambda: member.id != added or self._is_voter(added))

    def _stop(self, fault: Fault) -> bool:
        member = self.cluster.members[fault.member] if fault.amount else self.cluster.master
        if member is None or member.node is None or not member.is_wanted:
            return False
        if member.is_volatile and not self.cluster.may_forget(member):
            return False
        member.stop()
        self.scheduler.schedule(
            fault.until_ms * 1_000 - self.scheduler.now_us + STOPPED_US, lambda: self._start(member)
        )
        return True

    def _transfer(self, fault: Fault) -> bool:
        to = self.cluster.members[fault.member]
        self.operator.try_once(TransferMastership(to.name if fault.amount else ""))
        return True


# --- proxies -----------------------------------------------------------------------------


def _crash_proxy(injector: Injector, fault: Fault) -> bool:
    proxy = injector.cluster.proxies[fault.member]
    is_up = proxy.node is not None
    proxy.crash()
    injector._until(fault, proxy.start)
    return is_up


def _stop_proxy(injector: Injector, fault: Fault) -> bool:
    """Stop a proxy gracefully, and start it again after its process has surely ended."""
    proxy = injector.cluster.proxies[fault.member]
    is_up = proxy.node is not None and not proxy.is_paused
    proxy.stop()
    injector._until(fault, lambda: injector.scheduler.schedule(STOP_US, proxy.start))
    return is_up


def _cut_proxy(injector: Injector, fault: Fault) -> bool:
    """Cut a proxy, in both directions, from the member of the fault, or from all members."""
    proxy, members = injector.cluster.proxies[fault.member], injector.cluster.members
    others = members if fault.peer < 0 else [members[fault.peer]]
    return injector._cut(fault, [pair for each in others for pair in ((proxy.id, each.id), (each.id, proxy.id))])
