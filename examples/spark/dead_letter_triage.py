"""Dead letters: why each is dead, mend what can be mended, send that back, delete exactly what was sent back.

    python examples/spark/dead_letter_triage.py --dead-letters URL --source URL [--dry-run]

The dead-letter queue is read with ackMode=none: its messages are hidden for the visibility timeout and are deleted
by their receipt handles after the repaired ones were sent. What cannot be mended comes back by itself.
"""

import argparse
import json
from typing import Any

from elasticq.spark import ack, session

HIDDEN_S = 600  # longer than the triage takes


def handle(order: dict[str, Any]) -> float:
    """What the consumer of the source queue does; here the amount of an order."""
    return float(order["amount"]) * int(order["count"])


def exception_of(body: str) -> str | None:
    """The exception that the consumer raises for it, or None."""
    try:
        handle(json.loads(body))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def repaired(body: str) -> str | None:
    """The body with a decimal comma mended and a missing count filled in; None when that does not help."""
    try:
        order = json.loads(body)
        order["amount"] = str(order["amount"]).replace(",", ".")
        order.setdefault("count", 1)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    mended = json.dumps(order)
    return mended if exception_of(mended) is None else None


def read_letters(spark: Any, queue_url: str) -> Any:
    """All dead letters with the exception and the repaired body of each, read once and never again."""
    from pyspark.sql import functions

    letters = spark.read.format("sqs").option("ackMode", "none").option("visibilityTimeout", str(HIDDEN_S))
    explain, repair = functions.udf(exception_of, "string"), functions.udf(repaired, "string")
    frame = letters.load(queue_url).withColumn("exception", explain("body")).withColumn("repaired", repair("body"))
    # A queue read twice gives other messages: the checkpoint cuts the frame off from its queue.
    return frame.localCheckpoint()


def summary(letters: Any) -> Any:
    from pyspark.sql import functions

    return (
        letters.groupBy("exception")
        .agg(functions.count("*").alias("letters"), functions.count("repaired").alias("repaired"))
        .orderBy(functions.desc("letters"))
    )


def replay(letters: Any, source_url: str, endpoint: str) -> int:
    """Send what was mended to the source queue and then deletes it. Return how many were deleted."""
    mended = letters.where("repaired is not null")
    sent = mended.selectExpr("repaired as body", "attributes", "messageGroupId")
    sent.write.format("sqs").mode("append").save(source_url)
    counts = ack(mended, endpoint=endpoint).collect()
    return sum(row.deleted for row in counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dead-letters", required=True, metavar="URL")
    parser.add_argument("--source", required=True, metavar="URL")
    parser.add_argument("--endpoint", default="", help="of the server, when it is not AWS")
    parser.add_argument("--dry-run", action="store_true", help="only tell; the letters come back in ten minutes")
    arguments = parser.parse_args()
    letters = read_letters(session(name="triage"), arguments.dead_letters)
    summary(letters).show(truncate=False)
    if not arguments.dry_run:
        print(replay(letters, arguments.source, arguments.endpoint), "letters were sent back")


if __name__ == "__main__":
    main()
