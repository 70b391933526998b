"""The entry point of ``format("sqs")``. Spark imports all modules named pyspark_*, so nobody has to register it."""

from elasticq.spark.datasource import DefaultSource

__all__ = ["DefaultSource"]
