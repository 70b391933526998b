"""A scripted history that uses every action, the same each time."""

from elasticq.model import commands as c
from elasticq.model.commands import MessageAttributeValue
from elasticq.model.errors import SqsError
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.replication.seeded_random import SeededRandom
from tests.node.cluster import Solo

QUEUES = ("red", "green", "blue")


def scripted_workload(solo: Solo, steps: int = 400) -> None:
    random = SeededRandom(b"workload")
    handles: list[str] = []
    calls = 0

    def attempt(command: c.Command) -> Result | None:
        nonlocal calls
        calls += 1
        guid = random.token(b"%d" % calls, 16) if random.between(0, 2) else b""
        try:
            return solo.do(command, guid)
        except SqsError:
            return None

    for name in QUEUES:
        attempt(c.CreateQueue(queue_name=name, attributes={"MessageRetentionPeriod": "60"}, tags={"x": name, "y": "z"}))
    for step in range(steps):
        url = QUEUES[random.between(0, 2)]
        attempt(_command(step, url, handles, random))
        found = attempt(c.ReceiveMessage(queue_url=url, max_number_of_messages=random.between(1, 3)))
        if isinstance(found, ReceiveMessageResult):
            handles += [message.receipt_handle for message in found.messages]
            if step % 13 == 0:
                solo.call_node("undelivered", found)
        solo.advance(random.between(0, 600))


def _command(step: int, url: str, handles: list[str], random: SeededRandom) -> c.Command:
    handle = handles[random.between(0, len(handles) - 1)] if handles else "none"
    attributes = {
        "b": MessageAttributeValue("Binary", binary_value=b"\x00\xff"),
        "a": MessageAttributeValue("String", string_value="é"),
    }
    match random.between(0, 11):
        case 0:
            return c.DeleteMessage(queue_url=url, receipt_handle=handle)
        case 1:
            return c.ChangeMessageVisibility(queue_url=url, receipt_handle=handle, visibility_timeout=step % 7)
        case 2 if step % 5 == 0:
            return c.PurgeQueue(queue_url=url)
        case 3 if step % 5 == 0:
            return c.DeleteQueue(queue_url=url)
        case 4:
            return c.CreateQueue(queue_name=url, tags={"again": "yes"})
        case 5:
            return c.SetQueueAttributes(
                queue_url=url, attributes={"DelaySeconds": str(step % 3), "VisibilityTimeout": "4"}
            )
        case 6:
            return c.SendMessage(queue_url=url, message_body=f"later {step}", delay_seconds=step % 9)
        case 7:
            entries = [c.SendMessageBatchEntry(id=str(at), message_body=f"{step}.{at}") for at in range(4)]
            return c.SendMessageBatch(queue_url=url, entries=entries)
        case _:
            return c.SendMessage(queue_url=url, message_body=f"message {step}", message_attributes=attributes)
