"""Shows statistics of a queue of elasticq without changing it: ages, sizes and the largest groups, with a plot.

    python examples/spark/queue_statistics.py QUEUE_URL [--plot queue.png]     (the plot needs matplotlib)

A batch read without ackMode is a peek: no message is received, becomes invisible or counts as received.
"""

import argparse
from pathlib import Path
from typing import Any

from elasticq.spark import session

GROUPS_SHOWN = 10


def look(spark: Any, queue_url: str) -> Any:
    """Return a row for each message: age_s, size_bytes, group, receiveCount."""
    from pyspark.sql import functions

    return (
        spark.read.format("sqs")
        .load(queue_url)
        .select(
            (functions.unix_millis(functions.current_timestamp()) - functions.unix_millis("sentTimestamp")).alias(
                "age_ms"
            ),
            functions.octet_length("body").alias("size_bytes"),
            functions.coalesce("messageGroupId", functions.lit("")).alias("group"),
            "receiveCount",
        )
        .selectExpr("age_ms / 1000 as age_s", "size_bytes", "group", "receiveCount")
        .localCheckpoint()
    )


def figures(messages: Any) -> dict[str, Any]:
    from pyspark.sql import functions

    row = messages.agg(
        functions.count("*").alias("messages"),
        functions.max("age_s").alias("oldest_s"),
        functions.percentile_approx("age_s", 0.5).alias("median_age_s"),
        functions.avg("size_bytes").alias("mean_size_bytes"),
        functions.max("size_bytes").alias("largest_bytes"),
        functions.count_if(functions.col("receiveCount") > 0).alias("received_before"),
        functions.countDistinct("group").alias("groups"),
    ).first()
    return dict(row.asDict())


def largest_groups(messages: Any) -> list[tuple[str, int]]:
    from pyspark.sql import functions

    counted = messages.groupBy("group").count().orderBy(functions.desc("count"), "group").limit(GROUPS_SHOWN)
    return [(row["group"], row["count"]) for row in counted.collect()]


def plot(messages: Any, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    sample = messages.select("age_s", "size_bytes").limit(100_000).toPandas()
    groups = largest_groups(messages)
    figure, (ages, sizes, skew) = pyplot.subplots(1, 3, figsize=(12, 4))
    ages.hist(sample["age_s"], bins=30)
    ages.set(title="age", xlabel="seconds", ylabel="messages")
    sizes.hist(sample["size_bytes"], bins=30)
    sizes.set(title="size", xlabel="bytes")
    skew.barh([name or "(none)" for name, _ in groups][::-1], [count for _, count in groups][::-1])
    skew.set(title="largest groups", xlabel="messages")
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queue_url")
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    arguments = parser.parse_args()
    messages = look(session(name="statistics"), arguments.queue_url)
    for name, value in figures(messages).items():
        print(f"{name:16} {value}")
    for group, count in largest_groups(messages):
        print(f"{count:8} {group or '(no group)'}")
    if arguments.plot:
        plot(messages, arguments.plot)


if __name__ == "__main__":
    main()
