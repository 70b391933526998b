"""Spark imports every module named pyspark_*: so ``format("sqs")`` is there without a call to register it."""

from elasticq.spark.datasource import DefaultSource

__all__ = ["DefaultSource"]
