"""A cluster inside a test: members in one process with real sockets. Tests can kill members and cut their links."""

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION
from elasticq.testing.calls import Caller
from elasticq.testing.host import Host, overlaid
from elasticq.testing.view import LOOK_S

if TYPE_CHECKING:
    from elasticq.testing.member import EmbeddedMember, LoopThread

READY_S: Final = 30.0
HOST: Final = "127.0.0.1"


class Cluster(Host):
    """A cluster of members named node1, node2, ... Each has a data directory, so it can be killed and started again.

    As a View it sends its calls to the master. settings: sections of the configuration file, for every member.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        account: str = DEFAULT_ACCOUNT,
        region: str = DEFAULT_REGION,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(account, region)
        self.names = tuple(f"node{number}" for number in range(1, nodes + 1))
        self._settings = settings or {}
        self._members: dict[str, EmbeddedMember] = {}
        self._addresses: dict[str, str] = {}
        self._thread: LoopThread | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    # --- life -----------------------------------------------------------------------

    def start(self, name: str | None = None) -> None:
        """Start the cluster and wait until it is ready, or start the killed member ``name`` and wait likewise."""
        if name is not None:
            self._start_member(name)
            self.wait_until_ready()
            return
        from elasticq.testing.member import LoopThread

        self._directory = tempfile.TemporaryDirectory(prefix="elasticq-cluster-")
        self._thread = LoopThread("elasticq-cluster")
        try:
            for each in self.names:
                self._start_member(each)
            self.wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def _start_member(self, name: str) -> None:
        from elasticq.server.settings import load
        from elasticq.testing.member import EmbeddedMember

        assert name in self.names, f"{name} is not one of {', '.join(self.names)}"
        assert name not in self._members, f"{name} is running"
        member = EmbeddedMember(load(None, {}, self._sections(name)))
        self._loop.run(member.start())
        self._members[name] = member
        self._addresses[name] = self._loop.ask(lambda: member.member.peer_address)

    def _sections(self, name: str) -> dict[str, dict[str, Any]]:
        assert self._directory is not None
        sections: dict[str, dict[str, Any]] = {
            "http": {"host": HOST, "port": 0},
            "admin": {"port": -1},
            "node": {"id": name, "account": self.account, "region": self._region},
            "storage": {"data_dir": str(Path(self._directory.name) / name), "durability": "none"},
            "cluster": {
                "nodes": len(self.names),
                "discovery": "seeds",
                "seeds": list(self._addresses.values()),
                "peer_host": HOST,
                "peer_port": 0,
            },
            "testing": {"enabled": True},
        }
        return overlaid(sections, self._settings)

    def stop(self) -> None:
        """Stop the cluster. Do nothing if it is not running."""
        self._close_views()
        thread, self._thread = self._thread, None
        if thread is not None:
            try:
                for member in self._members.values():
                    thread.run(member.kill())
            finally:
                self._members.clear()
                self._addresses.clear()
                thread.stop()
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    @property
    def _loop(self) -> "LoopThread":
        assert self._thread is not None, "the cluster is not running: use it as a context manager, or start() it"
        return self._thread

    # --- failures ---------------------------------------------------------------------

    def kill(self, name: str) -> None:
        """Kill a member at once: calls that wait there get no answer. ``start(name)`` starts it again."""
        self._loop.run(self._members.pop(name).kill())

    def kill_master(self) -> str:
        """Kill the master. Return the name of that member."""
        name = self.master
        self.kill(name)
        return name

    def partition(self, *sides: str | tuple[str, ...] | list[str]) -> None:
        """Cut the links between the sides. A side is one name or several: partition("node1", ("node2", "node3"))."""
        groups = [{side} if isinstance(side, str) else set(side) for side in sides]
        for group in groups:
            others = set().union(*(each for each in groups if each is not group))
            for name in sorted(group):
                for other in sorted(others):
                    self._cut(name, other)

    def _cut(self, name: str, other: str) -> None:
        member, other_id = self._members[name].member, self._id(other)
        self._loop.ask(lambda: member.cut_link(other_id))

    def heal(self) -> None:
        """Restore all links."""
        for member in self._members.values():
            self._loop.ask(member.member.restore_links)

    # --- roles --------------------------------------------------------------------------

    @property
    def living(self) -> tuple[str, ...]:
        return tuple(self._members)

    @property
    def master(self) -> str:
        """Wait for a member that accepts writes, and return its name. Raise TimeoutError after READY_S."""
        return str(self._wait(self._serving, "no member became master"))

    def _serving(self) -> str | None:
        serving = [name for name, member in self._members.items() if self._ask(member, lambda node: node.serving)]
        return max(serving, key=lambda name: self._ask(self._members[name], _term), default=None)

    def _ask(self, member: "EmbeddedMember", question: Any) -> Any:
        return self._loop.ask(lambda: question(member.runtime.node))

    def _id(self, name: str) -> str:
        return str(self._ask(self._members[name], lambda node: node.settings.member_id))

    def wait_until_ready(self, timeout_s: float = READY_S) -> None:
        """Wait until all living members are ready and have the same master. Raise TimeoutError after the timeout."""
        self._wait(self._are_ready, "not every member is ready", timeout_s)

    def _are_ready(self) -> bool:
        statuses = [self._loop.ask(member.runtime.status) for member in self._members.values()]
        masters = {status.master for status in statuses}
        return len(masters) == 1 and None not in masters and all(status.ready for status in statuses)

    def _wait(self, condition: Any, trouble: str, timeout_s: float = READY_S) -> Any:
        until_s = time.monotonic() + timeout_s
        while not (value := condition()):
            if time.monotonic() >= until_s:
                raise TimeoutError(f"{trouble} within {timeout_s} s")
            time.sleep(LOOK_S)
        return value

    # --- views ----------------------------------------------------------------------

    @property
    def endpoint_url(self) -> str:
        """Return the URL of the master."""
        return self._members[self.master].url

    def endpoint_url_of(self, name: str) -> str:
        return self._members[name].url

    @property
    def endpoint_urls(self) -> list[str]:
        """Return the URLs of all living members. Each member accepts all calls."""
        return [member.url for member in self._members.values()]

    def callers(self, account: str) -> list[Caller]:
        """Return the callers of all living members, the master's first."""
        master = self.master
        names = [master, *(name for name in self._members if name != master)]
        return [Caller(self._members[name].url, account, self._region) for name in names]


def _term(node: Any) -> int:
    return int(node.replica.term)
