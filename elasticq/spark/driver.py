"""mode=driver: the driver receives while it plans, and writes the log; executors only read files.

For queues that executors must not or cannot reach, and for file systems
without exclusive creation. One process receives, so it is the slowest mode.
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
    """Receive the batch and writes it to the log. Return its offset, None if the queues are empty. Raise TooSlow."""
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
    """Return the batch that an earlier driver received and wrote down before it died, unknown to Spark; else None.

    Files without a plan are of a driver that died while writing: they are removed, as their ids would pass for read
    ones. Their messages come again when their visibility timeout is over.
    """
    plan = store.read(f"{name}/{batch}{PLAN}")
    if plan is not None:
        return from_json(json.loads(plan))
    for file in store.names(name):
        if file.endswith(WAL) and batch_of(file) == batch:
            store.remove(f"{name}/{file}")
    return None


def _divided(received: Received, partitions: int) -> list[Received]:
    """Divide what was received into runs of neighbours, so that messages stay in order within a task."""
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
