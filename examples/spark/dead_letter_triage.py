"""Triage of dead letters: find why each one failed, repair what can be repaired, and send it back to its queue.

    python examples/spark/dead_letter_triage.py --dead-letters URL --source URL [--dry-run]

The dead-letter queue is read with ackMode=none, so its messages are invisible for the visibility timeout. After the
repaired messages were sent, exactly these are deleted by their receipt handles. The others become visible again.
"""

import argparse
import json
from typing import Any

from elasticq.spark import ack, session

HIDDEN_S = 600  # longer than the triage takes


def handle(order: dict[str, Any]) -> float:
    """Do what the consumer of the source queue does. In this example, compute the amount of an order."""
    return float(order["amount"]) * int(order["count"])


def exception_of(body: str) -> str | None:
    """Return the exception that the consumer raises for a body, or None."""
    try:
        handle(json.loads(body))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def repaired(body: str) -> str | None:
    """Return the body with a decimal point and a count, or None if the consumer fails for that, too."""
    try:
        order = json.loads(body)
        order["amount"] = str(order["amount"]).replace(",", ".")
        order.setdefault("count", 1)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    mended = json.dumps(order)
    return mended if exception_of(mended) is None else None


def read_letters(spark: Any, queue_url: str) -> Any:
    """Return all dead letters, each with its exception and its repaired body. They are read only once."""
    from pyspark.sql import functions

    letters = spark.read.format("sqs").option("ackMode", "none").option("visibilityTimeout", str(HIDDEN_S))
    explain, repair = functions.udf(exception_of, "string"), functions.udf(repaired, "string")
    frame = letters.load(queue_url).withColumn("exception", explain("body")).withColumn("repaired", repair("body"))
    # A second read of a queue gives other messages. After the checkpoint, Spark does not read the queue again.
    return frame.localCheckpoint()


def summary(letters: Any) -> Any:
    from pyspark.sql import functions

    return (
        letters.groupBy("exception")
        .agg(functions.count("*").alias("letters"), functions.count("repaired").alias("repaired"))
        .orderBy(functions.desc("letters"))
    )


def replay(letters: Any, source_url: str, endpoint: str) -> int:
    """Send the repaired messages to the source queue, then delete them. Return how many were deleted."""
    mended = letters.where("repaired is not null")
    sent = mended.selectExpr("repaired as body", "attributes", "messageGroupId")
    sent.write.format("sqs").mode("append").save(source_url)
    counts = ack(mended, endpoint=endpoint).collect()
    return sum(row.deleted for row in counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dead-letters", required=True, metavar="URL")
    parser.add_argument("--source", required=True, metavar="URL")
    parser.add_argument("--endpoint", default="", help="URL of the server, if it is not AWS")
    parser.add_argument("--dry-run", action="store_true", help="send nothing; the letters come back in ten minutes")
    arguments = parser.parse_args()
    letters = read_letters(session(name="triage"), arguments.dead_letters)
    summary(letters).show(truncate=False)
    if not arguments.dry_run:
        print(replay(letters, arguments.source, arguments.endpoint), "letters were sent back")


if __name__ == "__main__":
    main()
