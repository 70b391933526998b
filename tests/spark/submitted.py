"""The job that test_submit.py hands to spark-submit; the zip is all that it has of elasticq."""

import sys
from pathlib import Path

import elasticq
from elasticq.client import Sqs
from elasticq.spark import consume, session

endpoint, archive, output = sys.argv[1:]


def check_surroundings(where: str) -> None:
    assert Path(archive).name in elasticq.__file__, f"{where} has elasticq of {elasticq.__file__}"
    strangers = {"msgspec", "aiohttp", "aiosqlite"} & set(sys.modules)
    assert not strangers, f"{where} needs {strangers}"


def handle(message: dict[str, object]) -> None:
    check_surroundings("an executor")


check_surroundings("the driver")
spark = session()
spark.sparkContext.setLogLevel("ERROR")
sqs = Sqs(endpoint, "us-east-1")
first, second = (sqs.create_queue(QueueName=f"submitted-{name}")["QueueUrl"] for name in ("first", "second"))
spark.range(25).selectExpr("cast(id as string) body").write.format("sqs").mode("append").save(first)
events = spark.readStream.format("sqs").load(first).select("body")
query = events.writeStream.format("sqs").option("checkpointLocation", f"{output}/checkpoint")
query.trigger(availableNow=True).start(second).awaitTermination()
counts = consume(spark, second, handle, partitions=1).first()
Path(output, "counts").write_text(f"{counts.processed} {counts.deleted} {counts.firstError}")
spark.stop()
