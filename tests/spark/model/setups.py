"""Which runs of the model are made: every mode, sink and queue, with kind and unkind times."""

from tests.spark.model.loop import Faults, Setup

KILLS = Faults(driver_kill=0.06, task_kill=0.08, overlap=0.05)
SLOW = Faults(latency_ms=(2, 400, 1500), restart_ms=(0, 6_000))
AWAY = Faults(0.04, 0.08, latency_ms=(2, 300, 900), restart_ms=(0, 12_000), late_request=0.04, late_task=0.05)
SHORT = {"lease_seconds": 4.0}
ALONE = {**SHORT, "heartbeat": "off", "partitions": 1}
WAL = {"mode": "wal"}
DRIVER = {"mode": "driver"}
BRIEF = {"visibility_timeout": 4.0}

SETUPS = {
    "lease": Setup(faults=KILLS),
    "lease_two_actions": Setup(faults=KILLS, two_actions=True),
    "lease_fifo": Setup(faults=KILLS, fifo_groups=5),
    "lease_append": Setup(faults=KILLS, sink="append"),
    "lease_expires": Setup(faults=SLOW, options=SHORT),
    "lease_expires_fifo": Setup(faults=SLOW, options=SHORT, fifo_groups=5),
    "lease_expires_while_away": Setup(faults=AWAY, options=ALONE, sent_at_once=50),
    "wal": Setup(faults=KILLS, options=WAL),
    "wal_append": Setup(faults=KILLS, options=WAL, sink="append"),
    "wal_expires": Setup(faults=SLOW, options=WAL | BRIEF, two_actions=True),
    "wal_expires_fifo": Setup(faults=SLOW, options=WAL | BRIEF, fifo_groups=5),
    "driver": Setup(faults=KILLS, options=DRIVER),
    "driver_expires": Setup(faults=SLOW, options=DRIVER | BRIEF),
    "driver_expires_fifo": Setup(faults=SLOW, options=DRIVER | BRIEF, fifo_groups=5),
}
# Where nothing can expire, or where ids are known: a sink that knows its batches has each message once.
ONCE = {"lease", "lease_two_actions", "lease_fifo", "wal", "driver"}
# An idle queue has nothing in flight, whatever was killed before. (A log does not know what a dead task received.)
NOTHING_STUCK = {"lease", "lease_two_actions", "lease_fifo", "lease_append"}
