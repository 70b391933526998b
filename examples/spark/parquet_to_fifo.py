"""Sends rows of Parquet files to a FIFO queue, in order, at a rate that the consumers can handle.

    python examples/spark/parquet_to_fifo.py INPUT QUEUE_URL --group customer --order-by at [--rate 100]

One task sends all rows of a group in their order. The input's path is the id of the write. After a failure you can
run the example again within five minutes: the queue recognises the messages that it has and does not store them twice.
"""

import argparse
from typing import Any

from elasticq.spark import session

TASKS = 2


def backfill(rows: Any, queue_url: str, group: str, order_by: str, rate: int, write_id: str) -> None:
    """Send the rows. rate: messages a second of all tasks together. write_id: the same one in each repetition."""
    from pyspark.sql import functions

    in_order = rows.repartition(TASKS, group).sortWithinPartitions(group, order_by)
    messages = in_order.select(
        functions.col(group).cast("string").alias("messageGroupId"),
        functions.to_json(functions.struct(*rows.columns)).alias("body"),
    )
    write = messages.write.format("sqs").mode("append").option("writeId", write_id)
    write.option("maxRatePerSecond", str(max(1, rate // TASKS))).save(queue_url)  # the option limits each task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", help="Parquet files")
    parser.add_argument("queue_url", help="URL of a FIFO queue")
    parser.add_argument("--group", required=True, help="the column whose values are the message groups")
    parser.add_argument("--order-by", required=True, help="the column by which a group is ordered")
    parser.add_argument("--rate", type=int, default=100, help="messages a second")
    arguments = parser.parse_args()
    rows = session(name="backfill").read.parquet(arguments.input)
    backfill(rows, arguments.queue_url, arguments.group, arguments.order_by, arguments.rate, arguments.input)


if __name__ == "__main__":
    main()
