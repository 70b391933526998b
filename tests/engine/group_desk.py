"""A desk with consumer groups: sets them, joins, sends heartbeats, does the background work."""

from typing import Any

from elasticq.engine.consumer_groups import sweep as group_sweep
from elasticq.engine.stored.consumer_group_index import Group
from elasticq.engine.writers.contract import Undo
from elasticq.model import commands as c
from elasticq.model import group_commands as g
from elasticq.model.group_results import GroupChangedResult, GroupShown, GroupsResult, GroupViewResult
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.model.results import ReceiveMessageResult
from tests.engine.desk import Desk


class GroupDesk(Desk):
    def group(self, name: str = "g", **settings: Any) -> GroupChangedResult:
        """Sets a group, of the queues that begin with q- where nothing else is said."""
        if not {"queue_names", "partitions_of"} & set(settings):
            settings.setdefault("queue_name_prefix", "q-")
        result = self.do(g.ElasticqSetGroup(group_name=name, **settings))
        assert isinstance(result, GroupChangedResult)
        self.sweep_groups()
        return result

    def queues(self, count: int) -> None:
        for number in range(count):
            self.create(f"q-{number:05}")
        self.sweep_groups()

    def join(self, group: str = "g", *, invocation: bytes = b"", undo: Undo | None = None, **more: Any) -> Any:
        result = self.do(g.ElasticqJoinGroup(group_name=group, **more), invocation=invocation, undo=undo)
        assert isinstance(result, GroupViewResult)
        return result

    def beat(self, view: GroupViewResult, *released: int, undo: Undo | None = None, **more: Any) -> GroupViewResult:
        """A heartbeat of the consumer with this view; returns its next one."""
        command = g.ElasticqHeartbeat(view.group_name, view.consumer_id, list(released), **more)
        result = self.do(command, undo=undo)
        assert isinstance(result, GroupViewResult), result
        return result

    def give_back(self, view: GroupViewResult) -> GroupViewResult:
        """A heartbeat that releases all that is to be given back."""
        now = self.beat(view)
        return self.beat(view, *(each.token for each in now.revoking)) if now.revoking else now

    def leave(self, view: GroupViewResult) -> None:
        self.do(g.ElasticqLeaveGroup(view.group_name, view.consumer_id))

    def sweep_groups(self) -> None:
        """Does all background work that is due."""
        while (step := group_sweep.step(self.state, self.context.now_ms)).mutations or step.next_ms == 0:
            self.write(step.mutations)

    def shown(self, name: str = "g") -> GroupShown:
        result = self.do(g.ElasticqDescribeGroups([name]))
        assert isinstance(result, GroupsResult)
        return result.groups[0]

    def index(self, name: str = "g") -> Group:
        return self.state.groups.names[DEFAULT_ACCOUNT, name]

    def fenced_receive(self, queue: str, token: int, group: str = "g", partition: int | None = None) -> int:
        """Returns how many messages there were."""
        command = c.ReceiveMessage(
            queue_url=queue, elasticq_group=group, elasticq_token=token, elasticq_partition=partition
        )
        result = self.do(command)
        assert isinstance(result, ReceiveMessageResult)
        return len(result.messages)


def names(view: GroupViewResult) -> list[str]:
    """What the consumer holds."""
    return sorted(each.resource for each in view.assigned)
