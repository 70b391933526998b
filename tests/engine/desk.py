"""A state with its turn for engine tests: commands in, results out, mutations kept."""

from elasticq.engine.apply import apply
from elasticq.engine.context import ExecutionContext
from elasticq.engine.execute import execute
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.writers.contract import Undo
from elasticq.model import commands as c
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION
from elasticq.model.results import QueueUrlResult, ReceivedMessage, ReceiveMessageResult, Result, SendMessageResult

START_MS = 1_700_000_000_000
ENDPOINT = "http://localhost:9324"
HOUR_S = 3_600


def replayed(log: list[m.Mutation], times: int = 1) -> State:
    """The state that the log leads to where each mutation is applied so often."""
    state = State()
    for mutation in log:
        for _ in range(times):
            apply(state, mutation)
    return state


class Desk:
    """Executes and applies at ``turn.now_ms``; ``log`` holds every mutation, ``steps`` those of each command."""

    def __init__(self, *, sixty_second_rules: bool = False, mac_key: bytes = b"k" * 32) -> None:
        self.state = State()
        self.context = ExecutionContext(START_MS, 1, DEFAULT_REGION, sixty_second_rules)
        self.log: list[m.Mutation] = []
        self.steps: list[list[m.Mutation]] = []
        self.write([m.ClusterFounded("cluster", mac_key, 1), m.TookOver(1, "a", 0, 0)])

    def write(self, mutations: list[m.Mutation], undo: Undo | None = None) -> None:
        for mutation in mutations:
            apply(self.state, mutation, undo)
        self.log.extend(mutations)
        self.steps.append(mutations)

    def do(
        self,
        command: c.Command,
        *,
        invocation: bytes = b"",
        account: str = DEFAULT_ACCOUNT,
        undo: Undo | None = None,
    ) -> Result:
        result, mutations = execute(
            self.state, c.Call(command, "anonymous", account, ENDPOINT, invocation), self.context
        )
        self.write(mutations, undo)
        return result

    def wait(self, seconds: float) -> None:
        self.context.now_ms += int(seconds * 1_000)

    # --- shorthands ---------------------------------------------------------------

    def create(self, name: str = "jobs", **attributes: str) -> str:
        result = self.do(c.CreateQueue(queue_name=name, attributes=attributes))
        assert isinstance(result, QueueUrlResult)
        return result.queue_url

    def queue(self, name: str = "jobs") -> Queue:
        return self.state.queue(DEFAULT_ACCOUNT, name)

    def send(
        self, body: str = "body", *, url: str = "jobs", delay_s: int | None = None, invocation: bytes = b""
    ) -> str:
        command = c.SendMessage(queue_url=url, message_body=body, delay_seconds=delay_s)
        result = self.do(command, invocation=invocation)
        assert isinstance(result, SendMessageResult)
        return result.message_id

    def send_group(self, group: str | None, count: int) -> None:
        """Sends so many messages of a group, whose bodies tell it, a millisecond before all that comes after."""
        for first in range(0, count, 10):
            entries = [
                c.SendMessageBatchEntry(id=str(at), message_body=str(group), message_group_id=group)
                for at in range(first, min(first + 10, count))
            ]
            self.do(c.SendMessageBatch(queue_url="jobs", entries=entries))
        self.wait(0.001)

    def receive(
        self,
        limit: int | None = None,
        *,
        url: str = "jobs",
        visibility_s: int | None = None,
        invocation: bytes = b"",
        undo: Undo | None = None,
    ) -> list[ReceivedMessage]:
        command = c.ReceiveMessage(
            queue_url=url,
            max_number_of_messages=limit,
            visibility_timeout=visibility_s,
            message_system_attribute_names=["All"],
            message_attribute_names=["All"],
        )
        result = self.do(command, invocation=invocation, undo=undo)
        assert isinstance(result, ReceiveMessageResult)
        return result.messages

    def receive_one(self, **options: int) -> ReceivedMessage:
        (message,) = self.receive(**options)
        return message

    def counts(self, name: str = "jobs") -> tuple[int, int, int]:
        """(visible, in flight, delayed) as GetQueueAttributes shows them."""
        shown = self.do(c.GetQueueAttributes(queue_url=name, attribute_names=["All"])).attributes
        return (
            int(shown["ApproximateNumberOfMessages"]),
            int(shown["ApproximateNumberOfMessagesNotVisible"]),
            int(shown["ApproximateNumberOfMessagesDelayed"]),
        )
