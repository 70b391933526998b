"""The planning of mode=driver: the driver receives a batch and writes the log. Executors only read its files.

It is for queues that executors cannot or must not reach, and for file systems without exclusive creation. Only one
process receives, so it is the slowest mode.
"""

import json
from dataclasses import replace

from elasticq.spark.clients import Client
from elasticq.spark.environment import Environment
from elasticq.spark.offsets import Offset, Part, Share, from_json
from elasticq.spark.records import Received, encode
from elasticq.spark.stores import Store
from elasticq.spark.wal import PLAN, WAL, WriteAhead, batch_of


def received_batch(
    log: WriteAhead, store: Store, client: Client, draft: Offset, environment: Environment
) -> Offset | None:
    """Receive a batch and write it to the log. Return its offset, or None if the queues are empty.

    draft: the offset with the planned numbers of messages. Raise TooSlow if receiving took too much of the visibility
    timeout.
    """
    began_s = environment.now_s()
    parts: list[Part] = []
    found: list[Received] = []
    for part in draft.parts:
        whole = Share(draft.name, draft.batch, 0, "driver", part.queue_url, part.messages, draft.bytes_max)
        received = log.gather(store, client, whole, began_s)
        if received.messages or received.redelivered:
            divided = _divided(received, part.partitions)
            parts.append(Part(part.queue_url, len(divided), len(received.messages)))
            found += divided
    if not found:
        return None
    for partition, each in enumerate(found):
        store.put(f"{draft.name}/{draft.batch}-{partition}{WAL}", encode(each))
    offset = replace(draft, parts=tuple(parts))
    store.put(f"{draft.name}/{draft.batch}{PLAN}", json.dumps(offset.to_json()).encode())
    return offset


def planned_batch(store: Store, name: str, batch: int) -> Offset | None:
    """Return the offset of a batch that an earlier driver wrote completely but Spark did not log; else None.

    Files of the batch without a plan come from a driver that died while it wrote them. Remove them, because their ids
    would count as read. Their messages come again after their visibility timeout.
    """
    plan = store.read(f"{name}/{batch}{PLAN}")
    if plan is not None:
        return from_json(json.loads(plan))
    for file in store.names(name):
        if file.endswith(WAL) and batch_of(file) == batch:
            store.remove(f"{name}/{file}")
    return None


def _divided(received: Received, partitions: int) -> list[Received]:
    """Return the messages as at most ``partitions`` consecutive pieces, so they stay in order within a task.

    The first piece gets all redelivered messages.
    """
    messages = received.messages
    count = max(1, min(partitions, len(messages)))
    least, more = divmod(len(messages), count)
    pieces, start = [], 0
    for index in range(count):
        end = start + least + (index < more)
        pieces.append(Received(messages[start:end]))
        start = end
    pieces[0].redelivered = received.redelivered
    return pieces
