"""The job of test_connect.py: all that a program with Spark Connect does with queues; it prints what came."""

import json
import sys
import tempfile
from typing import Any

from elasticq.client import Sqs
from elasticq.spark import consume, session

endpoint = sys.argv[1]
sqs = Sqs(endpoint, "us-east-1")
first, second, third = (sqs.create_queue(QueueName=f"connected-{n}")["QueueUrl"] for n in range(3))


def send(rows: Any) -> None:
    with Sqs(endpoint, "us-east-1") as client:
        for row in rows:
            client.send_message(QueueUrl=third, MessageBody=row.body)


def handle(message: dict[str, Any]) -> None:
    """Do nothing."""


spark = session(remote="local[2]")
assert "connect" in type(spark).__module__, type(spark)
bodies = spark.range(25).selectExpr("cast(id as string) body")
bodies.write.format("sqs").mode("append").save(first)
with tempfile.TemporaryDirectory() as checkpoint:
    stream = spark.readStream.format("sqs").load(first).select("body").writeStream.format("sqs").queryName("copy")
    query = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(second)
    query.awaitTermination()
    if (error := query.exception()) is not None:
        raise error
looked = spark.read.format("sqs").load(second).count()
consumed = consume(spark, second, handle, region="us-east-1").agg({"deleted": "sum"}).first()[0]
bodies.foreachPartition(send)
sent = consume(spark, third, handle, partitions=1).first().deleted
print("CONNECTED", json.dumps([looked, consumed, sent]))
spark.stop()
